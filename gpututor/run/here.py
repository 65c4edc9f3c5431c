"""A script on the real GPU of this machine, watched by torch.profiler for some of its steps."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.causes import find_causes
from gpututor.errors import CalibrationDamaged, TimelineError
from gpututor.ledger import charge
from gpututor.run.outcome import WHAT_A_STEP_IS, Outcome, died, without
from gpututor.run.parent import Ended
from gpututor.run.request import TRACE, Request
from gpututor.run.watcher import Watcher

if TYPE_CHECKING:
    from gpututor.measure.cuda import Gpu, Profiler
    from gpututor.timeline import Timeline

N_KEPT = 20
"""Our choice: steps whose trace stays small enough to be read in seconds; more can be asked for by --steps."""
SLOWED = "the profiler slows the host down while it watches, so idle time is overstated"


def no_gpu_here() -> str | None:
    """Why nothing can be measured on this machine, or None where torch finds a GPU."""
    import torch

    if torch.cuda.is_available():
        return None
    return (
        f"no GPU was found here (torch {torch.__version__} sees none), so there is nothing to measure; "
        "name a card to simulate instead, such as --gpu A100-SXM4-80GB"
    )


class Watched(Watcher):
    """A run on the real GPU: after the steps left out the profiler warms up for one more, then it keeps some."""

    def __init__(self, request: Request, folder: Path, gpu: Gpu | None = None) -> None:
        super().__init__(request, folder)
        if gpu is None:
            from gpututor.measure.cuda import this_gpu

            gpu = this_gpu()
        self._gpu = gpu
        self._n_kept = request.n_steps or N_KEPT
        if request.n_steps is not None:  # one more, in which the profiler warms up
            self._limits.skip += 1
        self._context: AbstractContextManager[Profiler] | None = None
        self._profiler: Profiler | None = None
        self._n_watched = 0

    def here(self) -> tuple[int, int, int]:
        """No tape; the host's clock; the time with kernels is in the trace."""
        return 0, time.perf_counter_ns(), 0

    def told(self) -> dict[str, Any]:
        """The pace of the last step."""
        marks = self.watch.marks.best
        step_ns = marks[-1].virtual_ns - marks[-2].virtual_ns if len(marks) > 1 else None
        return {"step_ns": step_ns, "busy_share": None, "memory_peak_bytes": None}

    def on_mark(self) -> None:
        """Start, step or stop the profiler."""
        if self._profiler is not None:
            self._profiler.step()
            self._n_watched += 1
            if self._n_watched > self._n_kept:
                self._stop_watching()
        elif self._n_watched == 0 and self.n_steps >= self.request.skip:
            self._gpu.synchronize()
            self._context = self._gpu.profiler(self._n_kept)
            self._profiler = self._context.__enter__()
        super().on_mark()

    def _stop_watching(self) -> None:
        context, profiler = self._context, self._profiler
        self._context = self._profiler = None
        if context is not None and profiler is not None:
            self._gpu.synchronize()
            context.__exit__(None, None, None)
            profiler.export_chrome_trace(str(self.folder / TRACE))

    def result(self) -> dict[str, Any]:
        """Write the trace, if it isn't written yet."""
        self._stop_watching()
        return {
            "n_left_out": self.request.skip + 1,
            "n_kept": max(0, self._n_watched - 1),
            "kept_whole": True,
            "gpu": self._gpu.name,
            "versions": list(self._gpu.versions),
            "losses": [mark.loss for mark in self.watch.marks.best[self.request.skip + 1 :]],
        }


def measured(request: Request, ended: Ended, folder: Path) -> Outcome:
    """The outcome of a run on the real GPU."""
    if not ended.whole:
        return without(request, ended, None, died(ended))
    if not ended.told["n_kept"] or not (folder / TRACE).exists():
        why = f"the script ended after {ended.told['n_steps']} steps, before one was watched; take a smaller --skip"
        return without(request, ended, None, why)
    from gpututor.own_machine import cpu_name
    from gpututor.timeline import Origin
    from gpututor.trace import read

    try:
        versions = tuple((what, version) for what, version in ended.told["versions"])
        timeline = read(folder / TRACE, origin=Origin.MEASURED, what=request.name, host=cpu_name(), versions=versions)
    except TimelineError as error:
        return without(request, ended, None, f"what the profiler saw can't be accounted: {error}")
    timeline = _with_losses(timeline, ended.told["losses"], ended.told["n_kept"])
    ledger = charge(timeline)
    notes = (WHAT_A_STEP_IS[ended.told["steps_are"]].format(optimizer=ended.told["optimizer"]), SLOWED, _calibrated())
    return Outcome(request, ended, None, timeline, ledger, None, find_causes(timeline, ledger), notes)


def _calibrated() -> str:
    """Whether this machine can be predicted too."""
    from gpututor import own_machine

    try:
        found = own_machine.load()
    except CalibrationDamaged as error:
        return str(error)
    if found is None:
        return "`gpututor calibrate` measures this machine in under a minute, so that it can be predicted as well"
    return f"this machine was calibrated on {found.measured_at[:10]}; --machine here predicts it"


def _with_losses(timeline: Timeline, losses: list[float | None], n_kept: int) -> Timeline:
    """The timeline with a loss at each kept step; one that was begun and never came belongs to the last one."""
    steps = list(timeline.steps[:n_kept])
    if len(timeline.steps) > len(steps) > 0:
        steps[-1] = replace(steps[-1], end_ns=timeline.steps[-1].end_ns)
    known = [*losses, *[None] * len(steps)]
    return replace(timeline, steps=tuple(replace(s, loss=loss) for s, loss in zip(steps, known, strict=False)))
