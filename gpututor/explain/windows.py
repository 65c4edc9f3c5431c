"""The two windows of a trace, with plain shares of each: from first to last GPU event, and the steps.

The shares here count every GPU event as busy, copies and communication too, because that is how other programs count.
The ledger of a window is stricter: there a copy that nothing hides is idle time of the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.intervals import merged, overlap_ns
from gpututor.ledger import Ledger, Tally, charge
from gpututor.ledger.device import State
from gpututor.timeline import Activity, Span, Timeline, covered_ns


@dataclass(frozen=True, slots=True)
class Window:
    """A window of one GPU: its length, shares of it in 0..1, and its ledger.

    `busy_share` is the time with anything on the GPU, `communication_share` with a collective, and
    `loader_idle_share` the time without anything while the host prepares or awaits a batch.
    """

    timeline: Timeline
    ledger: Ledger
    busy_share: float
    communication_share: float
    loader_idle_share: float

    @property
    def duration_ns(self) -> int:
        """Length of the window in nanoseconds."""
        return self.timeline.duration_ns

    @property
    def idle_share(self) -> float:
        """Share of the window with nothing on the GPU."""
        return 1 - self.busy_share


def window_of(timeline: Timeline, device: int | None, tally: Tally) -> Window:
    """The timeline's own window, for one GPU. `tally` is that of the whole trace.

    Raises:
        TimelineError: several GPUs and none chosen.
    """
    lo, hi = timeline.window_ns
    cut, _ = tally.within((lo, hi))
    idle = [(s.start_ns, s.end_ns) for s in cut if s.state is State.IDLE]
    other = _of_other_gpus(timeline, device)
    loading = merged([(s.start_ns, s.end_ns) for s in timeline.on(Activity.INPUT) if s.lane not in other])
    talking_ns = covered_ns([s for s in tally.spans if s.activity is Activity.COLLECTIVE], (lo, hi))
    whole = hi - lo
    idle_ns = sum([end - start for start, end in idle])
    ledger = charge(timeline, device=device, tally=tally)
    return Window(timeline, ledger, (whole - idle_ns) / whole, talking_ns / whole, overlap_ns(loading, idle) / whole)


def on_gpu_of(timeline: Timeline, device: int | None) -> list[Span]:
    """What ran on a GPU, copies and communication too; on all of them without a number."""
    other = _of_other_gpus(timeline, device)
    return [s for s in timeline.on_gpus() if s.lane not in other]


def span_of(timeline: Timeline, device: int | None) -> Timeline | None:
    """The timeline seen from the first to the last event of a GPU; None where they take no time."""
    on_gpu = on_gpu_of(timeline, device)
    start, end = min(s.start_ns for s in on_gpu), max(s.end_ns for s in on_gpu)
    return timeline.through(start, end) if end > start else None


def _of_other_gpus(timeline: Timeline, device: int | None) -> set[int]:
    """Lanes that belong to a GPU that isn't this one."""
    if device is None:
        return set()
    return {k for k, lane in enumerate(timeline.lanes) if lane.device not in (None, device)}
