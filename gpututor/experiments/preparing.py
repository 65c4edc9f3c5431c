"""Lesson 8: one training job whose pictures are prepared on the host or on the card, and copied in several ways.

The first five variants ask who prepares: the host's part of them really happens and takes this computer's time (paced
clock), the card is simulated, and the network really learns. The others ask how a batch crosses the link, with larger
pictures that lie ready. There the host's time is the chosen machine's (virtual clock), so they repeat to the
nanosecond; arithmetic is followed by its shapes alone, because it is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.calm import simulate_calmly
from gpututor.experiments.sweeps import MACHINE, Step, Variant
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

    from gpututor.jobs.pictures import Trainer

WHAT = "a small network on pictures"
BATCH = 64
N_PICTURES, N_HELD_OUT = 384, 128
N_STEPS, N_KEPT = 24, 6
N_DRAWN = 64  # batches until the same draws come again
COPY_SIDE = 224  # pixels, as photographs are commonly cropped to
COPY_STEPS = 8

WHO = {
    "one by one": "Host, picture by picture",
    "batch": "Host, whole batch",
    "fp64": "Host, whole batch, left in float64",
    "card": "Card, whole batch",
    "nobody": "Nobody: the middle, as it is",
}
COPIES = {
    "copy fp64": "float64",
    "copy": "float32",
    "asked": "float32, non_blocking",
    "pinned": "float32, pinned",
    "free": "float32, pinned, non_blocking",
    "ahead": "float32, pinned, ahead in a stream",
    "bytes": "bytes",
    "bytes ahead": "bytes, pinned, ahead in a stream",
    "mean fp64": "the same, its mean in float64",
}


def run(progress: Progress, *, machine: str = MACHINE, n_steps: int = N_STEPS) -> dict[str, Any]:
    """Train every variant on `machine`'s simulated card; gives what `simulate_calmly` gives, for both clocks at once.

    Raises:
        ExperimentError: fewer than one step was asked for.
        MachineBusy: another measurement is running on this machine.
    """
    prepared, copied = who_prepares(n_steps), ways_to_copy()
    n_first = len(prepared) * n_steps
    n_all = n_first + len(copied) * (COPY_STEPS + sweeps.N_WARMUP)
    from gpututor.jobs.pictures import one_thread

    with one_thread():
        first = simulate_calmly(
            Part(progress, 0, n_all), prepared, what=WHAT, machine=machine, n_steps=n_steps, n_kept=_kept, n_warmup=2
        )
    if progress.should_stop:
        return first
    try:
        second = sweeps.simulate(Part(progress, n_first, n_all, first), copied, what=WHAT, machine=machine)
    except Stopped:
        return first
    return _both(first, second)


def _kept(variant: Variant) -> int:
    return N_KEPT


def _both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    points, tapes = first["points"] + second["points"], {**first["tapes"], **second["tapes"]}
    return {**first, "points": points, "tapes": tapes}


class Part(Progress):
    """The progress of one part of a run: its steps are counted on from those before, its points added to theirs."""

    def __init__(self, whole: Progress, n_before: int, n_all: int, done: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._whole, self._n_before, self._n_all, self._done = whole, n_before, n_all, done

    @property
    def results_dir(self) -> Path:
        """The run's folder."""
        return self._whole.results_dir

    @property
    def should_stop(self) -> bool:
        """Whether the reader asked to stop the run."""
        return self._whole.should_stop

    def tick(self, k: int, n: int, note: str = "", partial: object = None) -> None:
        """Say that `k` of this part's `n` steps are done."""
        if self._done is not None:
            partial = _both(self._done, partial) if isinstance(partial, dict) else self._done
        self._whole.tick(self._n_before + k, self._n_all, note, partial)


def measure(progress: Progress, *, device: str = "cuda", n_steps: int = N_STEPS) -> dict[str, Any]:
    """The same on this computer's GPU; on its processor, which has no link to copy over, the first five alone.

    Raises:
        ExperimentError: there is no such device, or fewer than one step was asked for.
        MachineBusy: another measurement is running on this machine.
    """
    variants = who_prepares(n_steps) if device == "cpu" else [*who_prepares(n_steps), *ways_to_copy()]
    return sweeps.measure(progress, variants, what=WHAT, device=device)


# --- who prepares -----------------------------------------------------------------------------------------------------


def who_prepares(n_steps: int = N_STEPS, n_pictures: int = N_PICTURES, batch: int = BATCH) -> list[Variant]:
    """Five variants that train on the same pictures; the first four on the same crops of them too."""

    def make(key: str) -> Callable[[torch.device], Step]:
        return lambda device: Prepared(key, device, n_pictures, batch)

    return [Variant(key, label, make(key), n_samples=batch, n_steps=n_steps) for key, label in WHO.items()]


@lru_cache(maxsize=1)
def _drawn(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures and their kinds, drawn once for all variants."""
    from gpututor.jobs.pictures import coloured

    return coloured(n)


class Prepared:
    """Steps of the job with its pictures prepared in one of the ways of `WHO`."""

    def __init__(self, key: str, device: torch.device, n_pictures: int, batch: int) -> None:
        from gpututor.jobs import pictures as job

        made, kinds = _drawn(n_pictures + N_HELD_OUT)
        self._trainer, self._device = job.Trainer(device), device
        self._held_out = made[n_pictures:], kinds[n_pictures:]
        made, kinds = made[:n_pictures], kinds[:n_pictures]
        draws = job.Draws.make(batch * N_DRAWN, n_pictures)
        self._mean, self._spread = job.mean_and_spread(device)
        if key == "nobody":
            seen = job.seen_through(made, job.middle(n_pictures))
            self._batches = job.loaded(job.Ready(job.around_zero(seen, *job.mean_and_spread()), kinds, draws, batch))
        elif key == "one by one":
            self._batches = job.loaded(job.OneByOne(made, kinds, draws), batch)
        else:
            prepared = {"batch": "fp32", "fp64": "fp64", "card": "no"}[key]
            self._batches = job.loaded(job.WholeBatch(made, kinds, draws, batch, prepared))

    def __call__(self, k: int) -> Any:
        """One step; gives the loss, left on the device."""
        from gpututor.jobs.pictures import around_zero, seen_through

        pictures, kinds, *windows = (tensor.to(self._device) for tensor in next(self._batches))
        if windows:
            pictures = around_zero(seen_through(pictures, windows[0]), self._mean, self._spread)
        return self._trainer.learn(pictures.float(), kinds)

    def held_out(self) -> float:
        """The loss on pictures that no step saw, each through a window of its own."""
        from gpututor.jobs import pictures as job

        made, kinds = self._held_out
        seen = job.seen_through(made, job.Draws.make(len(made), len(made), seed=1).windows)
        numbers = job.around_zero(seen, *job.mean_and_spread())
        return self._trainer.loss(numbers.to(self._device), kinds.to(self._device))


# --- how a batch crosses the link -------------------------------------------------------------------------------------


def ways_to_copy(n_steps: int = COPY_STEPS, batch: int = BATCH, side: int = COPY_SIDE) -> list[Variant]:
    """Nine variants whose batches lie ready in host memory, in three number formats, pageable or pinned."""

    def make(key: str) -> Callable[[torch.device], Step]:
        return lambda device: Copied(key, device, batch, side)

    return [
        Variant(key, label, make(key), n_samples=batch, n_steps=n_steps, numerics=False)
        for key, label in COPIES.items()
    ]


class Copied:
    """Steps of the job with its batches copied in one of the ways of `COPIES`."""

    def __init__(self, key: str, device: torch.device, batch: int, side: int) -> None:
        import torch

        from gpututor.jobs.pictures import Trainer, mean_and_spread

        form = torch.float64 if key == "copy fp64" else torch.float32
        form = torch.uint8 if key in ("bytes", "bytes ahead", "mean fp64") else form
        ready = [torch.zeros(batch, 3, side, side, dtype=form) for _ in range(2)]
        if key not in ("copy fp64", "copy", "asked", "bytes"):
            ready = [pictures.pin_memory() for pictures in ready]
        self._ready, self._device = ready, device
        self._kinds = torch.zeros(batch, dtype=torch.int64).to(device)
        self._trainer: Trainer = Trainer(device)
        self._mean, self._spread = mean_and_spread(device, torch.float64 if key == "mean fp64" else torch.float32)
        self._non_blocking = key in ("asked", "free")
        self._ahead = Ahead(ready, device) if key in ("ahead", "bytes ahead", "mean fp64") else None

    def __call__(self, k: int) -> Any:
        """One step; gives the loss, left on the device."""
        import torch

        from gpututor.jobs.pictures import around_zero

        if self._ahead is None:
            pictures = self._ready[k % len(self._ready)].to(self._device, non_blocking=self._non_blocking)
        else:
            pictures = self._ahead.take(k)
        if pictures.dtype == torch.uint8:
            pictures = around_zero(pictures.float() / 255, self._mean, self._spread)
        return self._trainer.learn(pictures.float(), self._kinds)


class Ahead:
    """Copies the next batch in a stream of its own while the card works on this one."""

    def __init__(self, ready: list[torch.Tensor], device: torch.device) -> None:
        import torch

        self._ready, self._device = ready, device
        self._card = getattr(torch, device.type)
        self._stream = self._card.Stream()
        self._start(0)

    def _start(self, k: int) -> None:
        with self._card.stream(self._stream):
            self._next = self._ready[k % len(self._ready)].to(self._device, non_blocking=True)

    def take(self, k: int) -> torch.Tensor:
        """Batch `k`, once it has arrived; the copy of the one after it begins."""
        here = self._card.current_stream()
        here.wait_stream(self._stream)
        pictures = self._next
        pictures.record_stream(here)  # its memory was the other stream's; it must not be given away too soon
        self._start(k + 1)
        return pictures
