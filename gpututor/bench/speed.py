"""How long this machine takes to account a training step on the simulated GPU, beside torch's own means.

Numerics off is held against `FakeTensorMode` with `FlopCounterMode`, which follow shapes and count FLOP on the same
step. Numerics on is held against the CPU itself, on networks so small that what is left is the cost of accounting.
Times are CPU time of the thread, so that other programs on the machine disturb them little; medians of several steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from gpututor.calibration.on_cpu import one_thread

if TYPE_CHECKING:
    from gpututor.bench.models import Step, Workload

OFF_BAR_US = 15.0  # an op with numerics off
ON_BAR_US = 20.0  # an op with numerics on, over the CPU's own time
FAKE_BAR_SHARE = 0.1  # of FakeTensorMode and FlopCounterMode on the same step
MACHINE = "H100-SXM"


@dataclass(frozen=True, slots=True)
class Speed:
    """What one training step took this machine; an op is one entry on the tape."""

    workload: str
    n_ops: int
    off_step_s: float
    fake_step_s: float
    n_small_ops: int
    on_small_step_s: float
    cpu_small_step_s: float

    @property
    def off_us(self) -> float:
        """Microseconds an op with numerics off."""
        return self.off_step_s / self.n_ops * 1e6

    @property
    def share_of_fake(self) -> float:
        """The step with numerics off as a share of torch's own shape-following and FLOP-counting."""
        return self.off_step_s / self.fake_step_s

    @property
    def on_over_cpu_us(self) -> float:
        """Microseconds an op with numerics on takes over the CPU's own time."""
        return (self.on_small_step_s - self.cpu_small_step_s) / self.n_small_ops * 1e6

    @property
    def within_bars(self) -> bool:
        """Whether all three bars are met."""
        return self.off_us <= OFF_BAR_US and self.share_of_fake <= FAKE_BAR_SHARE and self.on_over_cpu_us <= ON_BAR_US

    def as_fields(self) -> dict[str, object]:
        """All figures as plain data for JSON."""
        derived = ("off_us", "share_of_fake", "on_over_cpu_us", "within_bars")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def thread_s() -> float:
    """CPU time of this thread."""
    return time.thread_time()


def median_s(
    step: Callable[[], object], n_steps: int, n_warmup: int = 2, clock: Callable[[], float] = thread_s
) -> float:
    """The middle of `n_steps` times after `n_warmup` steps that don't count.

    >>> ticks = iter([0, 3, 10, 11, 20, 22])
    >>> median_s(lambda: None, 3, 0, lambda: next(ticks))
    2
    """
    for _ in range(n_warmup):
        step()
    found = []
    for _ in range(n_steps):
        began = clock()
        step()
        found.append(clock() - began)
    return median(found)


def speeds(
    n_steps: int = 7, workloads: tuple[Workload, ...] | None = None, *, foreach: bool = False
) -> Iterator[Speed]:
    """One workload after the other.

    With `foreach` the optimizer takes all parameters in one op, as torch does by default on CUDA. A step is then
    quicker, but an op costs more: what torch's own Python and autograd take is spread over half as many ops or fewer.
    """
    from gpututor.bench.models import WORKLOADS

    for workload in workloads or WORKLOADS:
        with one_thread():
            n_ops, off_s = _simulated(workload.full, foreach, n_steps, numerics=False)
            fake_s = _fake(workload.full, foreach, max(1, n_steps // 2))
            n_small, on_s = _simulated(workload.small, foreach, n_steps, numerics=True)
            cpu_s = median_s(workload.small("cpu", foreach), n_steps)
        yield Speed(workload.name, n_ops, off_s, fake_s, n_small, on_s, cpu_s)


def _simulated(make: Callable[[str, bool], Step], foreach: bool, n_steps: int, *, numerics: bool) -> tuple[int, float]:
    """Ops of a step and its time on the simulated GPU."""
    from gpututor.model.tape import TapeOp
    from gpututor.simgpu import simulated_gpu

    with simulated_gpu(MACHINE, numerics=numerics) as sim:
        step = make("simgpu", foreach)
        step_s = median_s(step, n_steps)
        before = len(sim.tape.entries)
        step()
        return sum(type(e) is TapeOp for e in sim.tape.entries[before:]), step_s


def _fake(make: Callable[[str, bool], Step], foreach: bool, n_steps: int) -> float:
    """The same step followed by torch's fake tensors, with torch's FLOP counter on."""
    from torch.utils.flop_counter import FlopCounterMode

    from gpututor.simgpu.private.fake import FakeTensorMode

    with FakeTensorMode(), FlopCounterMode(display=False):
        return median_s(make("cpu", foreach), n_steps, n_warmup=1)
