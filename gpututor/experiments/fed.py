"""Training from a real DataLoader: each way of feeding has an epoch of its own, and its workers end with it.

What is told apart: the time until the first batch is there, which has the workers' start in it; the steady steps
after it; and in them the wait for the batch and the rest. Beside stands the CPU: how many cores this process and its
workers kept busy meanwhile.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gpututor.experiments.feeds import Feed
from gpututor.progress import Progress

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Dataset

Batch = Any
Train = Callable[[Batch], Any]
"""Trains on one batch of the loader and waits until that is done, as reading the loss does."""

END_S = 5.0  # our choice: a worker that hasn't ended by then is told to


@dataclass(slots=True)
class Fed:
    """What was seen of one way of feeding. Times are nanoseconds of the clock that was given.

    `first_ns` is the time until the first batch, an epoch each; `wait_ns` and `step_ns` the wait for input and the
    whole of each steady step, `wait_cpu_ns` the CPU time of this process in that wait; `epoch_ns` a whole epoch. `who`
    are the workers that made a batch of the first epoch. `cpu_cores` and `system_cores` are cores kept busy in the
    steady steps (all, and by the system on their behalf), `n_threads` the threads of all workers together. They are
    None where nothing could be read.
    """

    first_ns: list[int] = field(default_factory=list)
    epoch_ns: list[int] = field(default_factory=list)
    wait_ns: list[int] = field(default_factory=list)
    wait_cpu_ns: list[int] = field(default_factory=list)
    step_ns: list[int] = field(default_factory=list)
    who: list[int] = field(default_factory=list)
    cpu_cores: float | None = None
    system_cores: float | None = None
    n_threads: int | None = None


def set_threads(n_threads: int, _worker: int) -> None:
    """What a worker does first: let torch use so many threads."""
    import torch

    torch.set_num_threads(n_threads)


def loader_of(feed: Feed, pictures: Dataset[Any]) -> DataLoader[Any]:
    """The DataLoader of one way of feeding; the order of its pictures is the same for all."""
    import torch
    from torch.utils.data import DataLoader

    with_workers: dict[str, Any] = {}
    if feed.n_workers:
        with_workers = {
            "prefetch_factor": feed.prefetch,
            "persistent_workers": feed.persistent,
            "multiprocessing_context": feed.start,
            "worker_init_fn": functools.partial(set_threads, feed.threads),
        }
    order = torch.Generator().manual_seed(0)
    with _unwarned():
        return DataLoader(
            pictures,
            feed.batch,
            shuffle=True,
            num_workers=feed.n_workers,
            generator=order,
            drop_last=True,
            **with_workers,
        )


@contextmanager
def _unwarned() -> Iterator[None]:
    """Torch warns of more workers than cores; that is one of the things to be seen."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


@contextmanager
def no_worker_left() -> Iterator[None]:
    """Whatever processes the block starts are gone after it, also when it was stopped half-way."""
    before = set(multiprocessing.active_children())
    try:
        yield
    finally:
        gc.collect()  # a loader's iterator ends its workers when it goes
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
            child.join(END_S)


@dataclass(frozen=True, slots=True)
class Watch:
    """What goes with a run: its clock, who hears of steps, what is done as a steady one begins and after the last."""

    now_ns: Callable[[], int]
    tell: Callable[[int], None]
    begin_step: Callable[[int], None] = lambda n_samples: None
    end_steps: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Open:
    """A loader at work. Held here alone, so that it goes when it is put down, even while an error passes by."""

    loader: DataLoader[Any] | None
    batches: Iterator[Batch] | None = None

    def begin(self) -> None:
        """An epoch begins, and with it, unless they stayed, the workers."""
        assert self.loader is not None
        with _unwarned():
            self.batches = iter(self.loader)

    def next(self) -> Batch:
        """The next batch; None after the last one."""
        assert self.batches is not None
        return next(self.batches, None)


def feed_training(feed: Feed, pictures: Dataset[Any], train: Train, watch: Watch) -> Fed:
    """Train as `feed` says and tell what was seen.

    The steady steps are those of the first epoch, from `n_skipped` on. Workers are ended before this returns, and
    when it is stopped.
    """
    fed, work = Fed(), _Open(loader_of(feed, pictures))
    try:
        for epoch in range(feed.n_epochs):
            _epoch(feed, epoch, work, train, watch, fed)
            work.batches = None  # ends the workers, unless they are to stay
    finally:
        work.batches = work.loader = None
        gc.collect()
    return fed


def _epoch(feed: Feed, epoch: int, work: _Open, train: Train, watch: Watch, fed: Fed) -> None:
    began_ns, cpu, marks_ns = watch.now_ns(), None, list[int]()
    work.begin()
    for k in range(feed.n_batches):
        steady = epoch == 0 and k >= feed.n_skipped
        if steady and cpu is None:
            cpu = Cpu()
        cpu_ns = time.process_time_ns()
        if steady:
            watch.begin_step(feed.batch)
            marks_ns.append(watch.now_ns())
        batch = work.next()
        cpu_ns = time.process_time_ns() - cpu_ns
        ready_ns = watch.now_ns()
        if k == 0:
            fed.first_ns.append(ready_ns - began_ns)
        if epoch == 0:
            fed.who.append(int(batch[2][0]))
        train(batch)
        if steady:
            fed.wait_ns.append(ready_ns - marks_ns[-1])
            fed.wait_cpu_ns.append(cpu_ns)
        watch.tell(epoch * feed.n_batches + k + 1)
    if cpu is not None:
        fed.cpu_cores, fed.system_cores, fed.n_threads = cpu.since()
        watch.end_steps()
        fed.step_ns = [b - a for a, b in pairwise([*marks_ns, watch.now_ns()])]
    if feed.ends:
        work.next()  # as a for loop does: here the workers are told to end
    fed.epoch_ns.append(watch.now_ns() - began_ns)


class Cpu:
    """CPU time of this process and of the workers it has now, from here on."""

    def __init__(self) -> None:
        import psutil  # type: ignore[import-untyped]

        self._lost = psutil.Error
        children = [child.pid for child in multiprocessing.active_children()]
        self._all = [psutil.Process(pid) for pid in (os.getpid(), *children) if pid is not None]
        self._began_s = time.perf_counter()
        self._before = self._read()

    def since(self) -> tuple[float | None, float | None, int | None]:
        """Cores kept busy since then, those by the system, and the workers' threads; None where it can't be read."""
        wall_s, now = time.perf_counter() - self._began_s, self._read()
        if now is None or self._before is None or wall_s <= 0:
            return None, None, None
        user_s, system_s = (b - a for a, b in zip(self._before[:2], now[:2], strict=True))
        return (user_s + system_s) / wall_s, system_s / wall_s, int(now[2])

    def _read(self) -> tuple[float, float, float] | None:
        try:
            times = [process.cpu_times() for process in self._all]
            n_threads = sum(process.num_threads() for process in self._all[1:])
        except self._lost:
            return None
        return sum(t.user for t in times), sum(t.system for t in times), n_threads


def teller(progress: Progress, n_before: int, n_all: int, note: str, partial: object) -> Callable[[int], None]:
    """Reports a feed's steps as part of all steps of an experiment."""
    return lambda k: progress.tick(n_before + k, n_all, note, partial)
