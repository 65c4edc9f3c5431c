"""Why the GPU was idle: what the host did at that instant.

The thread that launches the GPU's next piece of work is asked first, since the GPU waits for that one;
where the timeline doesn't link launches to kernels, the threads that drive the GPU are asked, the busiest first.

Once the launch call is over, the way from call to kernel is launch overhead, whatever
the host does meanwhile; but only up to `LONGEST_LAUNCH_LATENCY_NS`: a launched kernel that
starts later than that waits for something that the timeline doesn't show.

Overhead of profiler and driver that a trace has on a lane of its own, without saying which thread it held, owns what
would else be launch overhead or unknown: it makes launches longer, but no batch later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter

from gpututor.ledger.accounts import Account
from gpututor.ledger.overheads import overheads_apart, under
from gpututor.ledger.piece import Piece
from gpututor.ledger.threads import Thread, thread_of
from gpututor.timeline import Activity, LaneKind, Span, Timeline

LONGEST_LAUNCH_LATENCY_NS = 100_000
"""Our choice. A launch takes some microseconds to reach an idle GPU, a large graph some tens."""

DRIVES_THE_GPU = frozenset(
    {Activity.LAUNCH, Activity.DISPATCH, Activity.SYNC, Activity.COPY_CALL, Activity.COMM_WAIT, Activity.STARTUP}
)
STILL_TRUE_AFTER_LAUNCH = frozenset({Account.START_UP, Account.PAUSE, Account.EXPOSED_COMMUNICATION})


class Host:
    """The host's side of a timeline, made once and asked about each idle gap."""

    def __init__(self, timeline: Timeline, device_spans: Sequence[Span]) -> None:
        work = sorted(
            [(s.start_ns, s.launch is None, k, s.launch) for k, s in enumerate(device_spans) if s.end_ns > s.start_ns]
        )
        self._work_starts = [start for start, _, _, _ in work]
        self._work_launches = [launch for _, _, _, launch in work]
        to_host = {s.launch for s in timeline.on(Activity.COPY_TO_HOST)}
        lanes = _by_lane(timeline, {timeline.lanes[lane].device for lane in {s.lane for s in device_spans}})
        self._overheads = overheads_apart(lanes)
        self._calls = _calls(lanes)
        threads = {lane: thread_of(spans, to_host) for lane, spans in lanes.items()}
        order = _asked_in_order(lanes)
        self._order = [threads[lane] for lane in order]
        # who is asked about a call of each lane
        self._asked = {lane: [threads[lane], *(threads[k] for k in order if k != lane)] for lane in threads}

    def explain(self, start_ns: int, end_ns: int) -> list[Piece]:
        """Split one idle gap among the accounts, in order and without gaps."""
        out: list[Piece] = []
        k = bisect_left(self._work_starts, end_ns)  # the first work at or after the gap's end
        launch = self._work_launches[k] if k < len(self._work_launches) else None
        call = None if launch is None else self._calls.get(launch)
        if call is None:
            _ask(start_ns, end_ns, self._order, out)
        else:
            order = self._asked[call.lane]
            over = max(start_ns, min(call.end_ns, end_ns))
            if start_ns < over:
                _ask(start_ns, over, order, out)
            on_its_way = min(end_ns, max(over, self._work_starts[k] - LONGEST_LAUNCH_LATENCY_NS))
            if over < on_its_way:
                _late(over, on_its_way, order, out)
            if on_its_way < end_ns:
                out.append(Piece(on_its_way, end_ns, Account.LAUNCH_OVERHEAD))
        return list(under(self._overheads, out)) if self._overheads else out


def _late(lo: int, hi: int, order: Sequence[Thread], out: list[Piece]) -> None:
    """Charge [lo, hi), in which something launched should have begun."""
    meanwhile: list[Piece] = []
    _ask(lo, hi, order, meanwhile)
    for start, end, account in meanwhile:
        out.append(Piece(start, end, account if account in STILL_TRUE_AFTER_LAUNCH else Account.UNKNOWN_IDLE))


def _ask(lo: int, hi: int, order: Sequence[Thread], out: list[Piece]) -> None:
    """Charge [lo, hi) by the first thread in `order` that did something known at each instant."""
    if not order:
        out.append(Piece(lo, hi, Account.UNKNOWN_IDLE))
        return
    starts, accounts = order[0].starts, order[0].accounts
    k, n = bisect_right(starts, lo) - 1, len(starts) - 1
    while lo < hi:
        end = min(hi, starts[k + 1]) if k < n else hi
        account = accounts[k] if k >= 0 else None
        if account is None:
            _ask(lo, end, order[1:], out)
        else:
            out.append(Piece(lo, end, account))
        lo, k = end, k + 1


def _by_lane(timeline: Timeline, gpus: AbstractSet[int | None]) -> dict[int, list[Span]]:
    """Spans of each host thread by start, the longer first where two start together.

    A thread that belongs to another GPU than these (another rank's) is left out.
    """
    lanes: dict[int, list[Span]] = {}
    for k, lane in enumerate(timeline.lanes):
        if lane.kind is LaneKind.HOST and (lane.device is None or not gpus or lane.device in gpus):
            spans = [s for s in timeline.by_lane[k] if s.end_ns > s.start_ns]
            spans.sort(key=attrgetter("end_ns"), reverse=True)
            spans.sort(key=attrgetter("start_ns"))
            if spans:
                lanes[k] = spans
    return lanes


def _calls(lanes: dict[int, list[Span]]) -> dict[int, Span]:
    """The host call of each launch number: the driver's call where there is one, else the innermost span."""
    calls: dict[int, Span] = {}
    for spans in lanes.values():
        for span in spans:
            if span.launch is None:
                continue
            before = calls.get(span.launch)
            if before is None or before.activity is not Activity.LAUNCH or span.activity is Activity.LAUNCH:
                calls[span.launch] = span
    return calls


def _asked_in_order(lanes: dict[int, list[Span]]) -> tuple[int, ...]:
    """Threads that drive a GPU, the busiest first; where none does, all threads.

    A loader's worker is left out beside them: that it works says nothing about what the GPU waits for.
    """
    driving = {k: v for k, v in lanes.items() if any(s.launch is not None or s.activity in DRIVES_THE_GPU for s in v)}
    chosen = driving or lanes
    if len(chosen) == 1:
        return tuple(chosen)
    return tuple(sorted(chosen, key=lambda k: (-sum([s.end_ns - s.start_ns for s in chosen[k]]), k)))
