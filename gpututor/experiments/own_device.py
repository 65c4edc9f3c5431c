"""A variant's steps on this computer's own processor or GPU, timed with the device waited for at each step's end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpututor import timeline_file
from gpututor.errors import NoSteps, WrongDevice
from gpututor.own_machine import cpu_name
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    from gpututor.experiments.measured import Bench
    from gpututor.experiments.sweeps import Variant

N_RECORDED = 4  # steps under the profiler, after those that are timed: it slows down what it watches


@dataclass(slots=True)
class Seen:
    """Wall time in nanoseconds and loss of each step."""

    walls_ns: list[int] = field(default_factory=list)
    losses: list[Any] = field(default_factory=list)


class OnCpu:
    """Steps on the processor."""

    def __init__(self) -> None:
        self.about = {"device": "cpu", "gpu": None, "card": None, "host": cpu_name()}

    def run(self, variant: Variant, n_steps: int, n_warmup: int, tell: Callable[[int], None]) -> Seen:
        """Train `n_steps` after `n_warmup`, each timed."""
        import torch

        return _timed(variant.make(torch.device("cpu")), n_steps, n_warmup, tell, lambda: None)


class OnGpu:
    """Steps on the GPU; some more of each variant are recorded with torch.profiler, as a file in the results folder."""

    def __init__(self, bench: Bench, progress: Progress) -> None:
        self._bench, self._progress = bench, progress
        self.timelines: dict[str, str] = {}
        self.about: dict[str, Any] = {"device": "cuda", "gpu": bench.gpu.name, "card": None, "host": cpu_name()}
        self.about["timelines"] = self.timelines

    def run(self, variant: Variant, n_steps: int, n_warmup: int, tell: Callable[[int], None]) -> Seen:
        """Train `n_steps` after `n_warmup`, each timed; then record a few more.

        Raises:
            Stopped: the reader stopped it while it was being recorded.
            ExperimentError: the profiler saw nothing on the GPU.
        """
        import torch

        from gpututor.measure.cuda import record_cuda

        device = torch.device(self._bench.device)
        step = variant.make(device)
        seen = _timed(step, n_steps, n_warmup, tell, lambda: torch.accelerator.synchronize(device))

        def watched(k: int) -> Any:
            if self._progress.should_stop:
                raise StopIteration
            return step(n_warmup + n_steps + k)

        try:
            recording = record_cuda(
                watched,
                n_steps=N_RECORDED,
                warmup=1,
                n_samples=variant.n_samples,
                what=variant.label,
                gpu=self._bench.gpu,
            )
        except NoSteps:
            raise Stopped from None
        except WrongDevice:
            return seen  # its times hold all the same; the page says that there is no timeline
        file = f"{variant.key}.timeline.json.gz"
        timeline_file.save(recording.timeline, self._progress.results_dir / file)
        self.timelines[variant.key] = file
        self.about["card"] = recording.timeline.label.card
        return seen


def _timed(
    step: Callable[[int], Any], n_steps: int, n_warmup: int, tell: Callable[[int], None], wait: Callable[[], None]
) -> Seen:
    seen = Seen()
    for k in range(n_warmup):
        step(k)
        wait()
        tell(k + 1)
    for k in range(n_warmup, n_warmup + n_steps):
        began_ns = time.perf_counter_ns()
        seen.losses.append(step(k))
        wait()
        seen.walls_ns.append(time.perf_counter_ns() - began_ns)
        tell(k + 1)
    return seen
