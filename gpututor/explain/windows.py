"""The two windows of a trace, with plain shares of each: from first to last GPU event, and the steps.

The shares here count every GPU event as busy, copies and communication too, because that is how other programs count.
The ledger of a window is stricter: there a copy that nothing hides is idle time of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpututor.ledger import Ledger, charge
from gpututor.ledger.idle import Host
from gpututor.timeline import ON_HOST, Activity, Span, Timeline, covered_ns, merged


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


def window_of(timeline: Timeline, device: int | None, host: Host) -> Window:
    """The timeline's own window, for one GPU. `host` is that of the whole trace.

    Raises:
        TimelineError: several GPUs and none chosen.
    """
    lo, hi = timeline.window_ns
    own = [s for s in timeline.spans if device is None or timeline.lanes[s.lane].device in (None, device)]
    on_gpu = [s for s in own if s.activity not in ON_HOST]
    busy = merged((max(s.start_ns, lo), min(s.end_ns, hi)) for s in on_gpu)
    loading = ((max(s.start_ns, lo), min(s.end_ns, hi)) for s in own if s.activity is Activity.INPUT)
    busy_ns, either_ns = _length(busy), _length(merged([*busy, *loading]))
    talking_ns = covered_ns((s for s in on_gpu if s.activity is Activity.COLLECTIVE), (lo, hi))
    whole = hi - lo
    ledger = charge(timeline, device=device, host=host)
    return Window(timeline, ledger, busy_ns / whole, talking_ns / whole, (either_ns - busy_ns) / whole)


def on_gpu_of(timeline: Timeline, device: int | None) -> list[Span]:
    """What ran on a GPU, copies and communication too; on all of them without a number."""
    lanes = timeline.lanes
    return [
        s
        for s in timeline.spans
        if s.activity not in ON_HOST and (device is None or lanes[s.lane].device in (None, device))
    ]


def span_of(timeline: Timeline, device: int | None) -> Timeline | None:
    """The timeline seen from the first to the last event of a GPU; None where they take no time."""
    on_gpu = on_gpu_of(timeline, device)
    start, end = min(s.start_ns for s in on_gpu), max(s.end_ns for s in on_gpu)
    return timeline.looked_at(start, end) if end > start else None


def _length(intervals: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in intervals)
