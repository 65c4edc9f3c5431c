"""Lesson 6: the ways of feeding that are compared, each with its DataLoader's settings."""

from __future__ import annotations

import math
import multiprocessing
import os
from dataclasses import dataclass, replace

BATCH = 32
WORKERS = (0, 1, 2, 4)
MORE_WORKERS = 8  # where there are more cores than 4
N_SKIPPED, N_KEPT = 8, 16  # steps; multiples of most numbers of workers, since their batches come in rounds
N_SHORT, N_EPOCHS = 4, 3  # batches of the short epochs
N_BLURRED_SKIPPED, N_BLURRED = 2, 4  # steps with pictures that are blurred too, which takes some times as long


@dataclass(frozen=True, slots=True)
class Feed:
    """One way to feed the training: what a DataLoader is made with, and which steps of it count.

    `n_batches` are the batches of an epoch and `n_skipped` those at its begin that aren't counted as steady. Of the
    steady steps a calm stretch of `n_calm` is kept, or all: other programs take the cores now and then.
    `ends` says that an epoch is read to its end; else the loader has more batches than are used, so that its workers
    stay at work. `start` is how worker processes are started ("fork", "spawn"; the system's own way without),
    `threads` how many each may use in torch. `smoothed` and `halved` are the photographs'. `x` is its place on the
    axis of a chart.
    """

    key: str
    label: str
    n_workers: int
    n_batches: int
    batch: int
    n_skipped: int = 0
    n_calm: int | None = None
    prefetch: int | None = None
    persistent: bool = False
    start: str | None = None
    threads: int = 1
    n_epochs: int = 1
    ends: bool = False
    smoothed: bool = False
    halved: bool = False
    x: float | None = None

    @property
    def n_steps(self) -> int:
        """Batches trained on in all."""
        return self.n_batches * self.n_epochs

    @property
    def n_ahead(self) -> int:
        """Batches that may lie ready or in work before they are asked for."""
        return self.n_workers * (self.prefetch or 2)  # 2: DataLoader's own default

    @property
    def n_pictures(self) -> int:
        """Length that the dataset must have."""
        return self.batch * (self.n_batches + (0 if self.ends else self.n_ahead))


def usable_cores() -> int:
    """Cores that this process may use; a container's limit on CPU time isn't seen here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_methods() -> tuple[str, ...]:
    """The system's own way to start a worker, then the one that starts afresh, where that is another."""
    own = multiprocessing.get_start_method()
    return (own,) if own == "spawn" else (own, "spawn")


def sweep(n_cores: int, thinned: int = 1) -> list[Feed]:
    """Workers from none to more than there are cores; `thinned` divides the batches of each."""
    n_skipped, n_kept = _thinned(thinned)
    counts = [*WORKERS, *([MORE_WORKERS] if n_cores > WORKERS[-1] else [])]
    return [
        Feed(
            f"workers-{n}",
            "no workers" if n == 0 else f"{n} worker{'' if n == 1 else 's'}",
            n,
            n_skipped + n_kept,
            BATCH,
            n_skipped,
            n_kept // 2,
            x=n,
        )
        for n in counts
    ]


def _thinned(thinned: int) -> tuple[int, int]:
    """Batches that are skipped and kept, when all are divided by this."""
    return max(2, N_SKIPPED // thinned), max(4, N_KEPT // thinned)


def others(n_cores: int, thinned: int = 1) -> list[Feed]:
    """The other settings, each beside one that differs in nothing else.

    `thinned` divides their batches; above 1 workers that start afresh, which take seconds, are left out.
    """
    n_skipped, n_kept = _thinned(thinned)
    n = max(2, min(n_cores, WORKERS[-1]))
    steady = Feed("", "", n, n_skipped + n_kept // 2, BATCH, n_skipped, n_kept // 4)
    skipped, kept = (N_BLURRED_SKIPPED, N_BLURRED) if thinned == 1 else (1, 2)
    blurred = replace(steady, smoothed=True, n_skipped=skipped, n_batches=skipped + kept, n_calm=None)
    few = Feed("", "", n, n, 2 * BATCH, ends=True)
    epochs = Feed("", "", 1, N_SHORT, BATCH, n_epochs=N_EPOCHS, ends=True)
    n_threads = max(2, n_cores)  # what OpenCV and OpenMP take in each process, unless told otherwise
    feeds = [
        replace(steady, key="prefetch-1", label="prefetch_factor=1", prefetch=1),
        replace(steady, key="prefetch-8", label="prefetch_factor=8", prefetch=8),
        replace(steady, key="halved", label="1 worker that decodes half the size", n_workers=1, halved=True),
        replace(few, key="few-0", label=f"{n} batches of {few.batch}"),
        replace(few, key="few-1", label=f"1 batch of {n * few.batch}", n_batches=1, batch=n * few.batch),
        replace(blurred, key="threads-1", label="1 thread in each"),
        replace(blurred, key="threads-n", label=f"{n_threads} threads in each", threads=n_threads),
    ]
    for method in start_methods()[: None if thinned == 1 else 1]:
        n_epochs = (
            2 if method == "spawn" or thinned > 1 else N_EPOCHS
        )  # a worker that starts afresh imports torch: seconds
        each = replace(epochs, start=method, n_epochs=n_epochs)
        feeds.append(replace(each, key=f"{method}-anew", label=f"{method}, anew each epoch"))
        feeds.append(replace(each, key=f"{method}-stay", label=f"{method}, persistent_workers", persistent=True))
    return feeds


def law_ns(load_ns: float, compute_ns: float, n_workers: int) -> float:
    """How long a step takes when so many workers load ahead of the card: the slower of the two sets the pace.

    `load_ns` is what a batch keeps one worker busy, `compute_ns` the step without any wait for input. Without workers
    the two come one after the other. Each worker is taken to have a core of its own.

    >>> [law_ns(50, 27, n) for n in (0, 1, 2, 4)]
    [77, 50.0, 27, 27]
    """
    if n_workers == 0:
        return load_ns + compute_ns
    return max(load_ns / n_workers, compute_ns)


def enough_workers(load_ns: float, compute_ns: float) -> int:
    """The fewest workers that never let the card wait, by the law, if each has a core.

    >>> enough_workers(50, 27), enough_workers(20, 27)
    (2, 1)
    """
    return max(1, math.ceil(load_ns / compute_ns))
