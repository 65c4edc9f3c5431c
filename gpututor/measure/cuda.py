"""Record a training loop on this machine's own NVIDIA or AMD GPU, with torch.profiler.

The first steps run unwatched, one more while the profiler warms up, then the kept ones. The
card is synchronized before the first of them and at the end of the last, so
that the window holds the work of exactly these steps.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from time import perf_counter_ns
from typing import Any, Protocol

from gpututor.errors import NoKernels, NoSteps, StepFailed, WrongDevice
from gpututor.measure.nvml import Readings
from gpututor.own_machine import cpu_name
from gpututor.recording import NEVER_WAITS, OUR_WAIT, Recording, StepFunction, as_number, call, never_waits, ran_out
from gpututor.text import duration, percent
from gpututor.timeline import Origin, Timeline
from gpututor.trace import read

NOTICEABLE = 1.1
"""Our choice: below a tenth, watched and unwatched steps differ no more than two runs do."""


class Profiler(Protocol):
    """The part of torch.profiler.profile that is used here."""

    def step(self) -> None:
        """The step before this call is over."""

    def export_chrome_trace(self, path: str) -> object:
        """Write what was recorded to a file."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU to record on, and the calls that reach it."""

    name: str
    synchronize: Callable[[], None]
    profiler: Callable[[int], AbstractContextManager[Profiler]]  # for so many kept steps
    mark: Callable[[str], AbstractContextManager[Any]]
    readings: Callable[[], Readings]
    versions: tuple[tuple[str, str], ...] = ()
    clock_ns: Callable[[], int] = perf_counter_ns


def this_gpu(device: str = "cuda") -> Gpu:
    """The named CUDA device ("cuda:1"), or the current one of this process."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function, schedule

    from gpututor.measure import nvml

    number = device.partition(":")[2]
    index = int(number) if number else torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(index)

    def profiler(n_steps: int) -> AbstractContextManager[Profiler]:
        return profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=0, warmup=1, active=n_steps, repeat=1),
        )

    runtime = ("ROCm", torch.version.hip) if torch.version.hip else ("CUDA", torch.version.cuda)
    versions = (("torch", torch.__version__), runtime, ("Python", platform.python_version()))
    return Gpu(
        properties.name,
        lambda: torch.cuda.synchronize(index),
        profiler,
        record_function,
        lambda: nvml.read(str(getattr(properties, "uuid", ""))),
        tuple((what, version) for what, version in versions if version),
    )


def record_cuda(
    step: StepFunction,
    *,
    n_steps: int = 10,
    warmup: int = 3,
    n_samples: int | None = None,
    what: str = "",
    gpu: Gpu | None = None,
) -> Recording:
    """`n_steps` calls of `step(k)` on the real GPU, after `warmup` calls and one more that are not kept.

    `step` is called with k from 0 and may give its loss as number or tensor; losses are read after the recording.
    A step may end the loop early by StopIteration.

    Raises:
        NoSteps: fewer than one step was asked for, or the loop ended before the first kept one.
        StepFailed: a step raised, or the GPU did while it was waited for.
        WrongDevice: the steps launched nothing on the GPU.
    """
    if n_steps < 1:
        raise NoSteps(f"{n_steps} steps were asked for; a recording needs at least one")
    gpu = gpu or this_gpu()
    unwatched_ns = _warm_up(step, warmup, gpu)
    with tempfile.TemporaryDirectory(prefix="gpututor-") as folder:
        path = Path(folder) / "trace.json"
        losses = _watched(step, warmup, n_steps, gpu, path)
        readings = gpu.readings()
        timeline = _read(path, gpu, readings.driver, what or "training step")
    numbers = tuple(as_number(loss) for loss in losses)
    timeline = _with_steps(timeline, numbers, n_samples)
    return Recording(timeline, numbers, tuple(_notes(timeline, n_steps, unwatched_ns, readings)))


def _read(path: Path, gpu: Gpu, driver: str | None, what: str) -> Timeline:
    versions = gpu.versions + ((("driver", driver),) if driver else ())
    try:
        return read(path, origin=Origin.MEASURED, what=what, host=cpu_name(), versions=versions)
    except NoKernels:
        raise WrongDevice(
            f"the step launched nothing on the {gpu.name}; are model and batch on device 'cuda'?"
        ) from None


def _warm_up(step: StepFunction, warmup: int, gpu: Gpu) -> int | None:
    """Run the unwatched steps; how long the last one took in nanoseconds, or None without any."""
    began_ns = None
    for k in range(warmup):
        if k == warmup - 1:
            _wait(gpu, k)
            began_ns = gpu.clock_ns()
        try:
            call(step, k)
        except StopIteration:
            raise NoSteps(_too_short(k)) from None
    if began_ns is None:
        return None
    _wait(gpu, warmup - 1)
    return gpu.clock_ns() - began_ns


def _watched(step: StepFunction, warmup: int, n_steps: int, gpu: Gpu, path: Path) -> list[Any]:
    """Losses of the kept steps; their trace is written to `path`."""
    losses: list[Any] = []
    last = warmup + n_steps
    with gpu.profiler(n_steps) as profiler:
        k = warmup
        try:
            call(step, k)
            _wait(gpu, k)
            profiler.step()
            for k in range(warmup + 1, last + 1):  # k says where a loop that ran out stood
                losses.append(call(step, k))
                if k < last:
                    profiler.step()
        except StopIteration:
            if not losses:
                raise NoSteps(_too_short(k)) from None
        with gpu.mark(OUR_WAIT):
            _wait(gpu, k)
        if len(losses) == n_steps:
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return losses


def _too_short(k: int) -> str:
    if k == 0:
        return "the loop ended before its first step; is the loader empty?"
    return f"the loop ended after {k} steps, all of them warm-up; ask for fewer warm-up steps, or give it more batches"


def _wait(gpu: Gpu, k: int) -> None:
    try:
        gpu.synchronize()
    except Exception as error:
        raise StepFailed(
            f"the GPU reported {type(error).__name__} while it was waited for after step {k}: {error}"
        ) from error


def _with_steps(timeline: Timeline, losses: tuple[float | None, ...], n_samples: int | None) -> Timeline:
    """The timeline with losses at its steps; a begun step that never came belongs to the last one, which it drains."""
    steps = list(timeline.steps[: len(losses)])
    if len(timeline.steps) > len(steps) > 0:
        steps[-1] = replace(steps[-1], end_ns=timeline.steps[-1].end_ns)
    done = tuple(replace(s, n_samples=n_samples, loss=loss) for s, loss in zip(steps, losses, strict=False))
    return replace(timeline, steps=done)


def _notes(timeline: Timeline, n_asked: int, unwatched_ns: int | None, readings: Readings) -> list[str]:
    notes = []
    n_steps = len(timeline.steps)
    if n_steps < n_asked:
        notes.append(ran_out(n_steps, n_asked))
    if never_waits(timeline):
        notes.append(NEVER_WAITS)
    if unwatched_ns and n_steps:
        watched_ns = median_low(s.end_ns - s.start_ns for s in timeline.steps)  # the last one holds the recorder's wait
        if watched_ns > NOTICEABLE * unwatched_ns:
            notes.append(
                f"a step took {duration(watched_ns)} while it was watched and {duration(unwatched_ns)} before; "
                "the profiler slows the host down, so idle time is overstated"
            )
    if readings.kernel_time_share is not None:
        notes.append(f"right after the steps the driver's own gauge stood at {percent(readings.kernel_time_share)}")
    elif readings.reasons:
        reason = readings.reasons.get("kernel_time_share", "no reason given")
        notes.append(f"the driver's own gauge could not be read ({reason})")
    return notes
