"""Why the GPU was idle: what the host did at that instant.

The thread that launches the GPU's next piece of work is asked first, since the GPU waits for that one;
where the timeline doesn't link launches to kernels, the threads that drive the GPU are asked, the busiest first.

On that thread the innermost span decides, with two exceptions. A pause or start-up owns all that
happens inside, because without it none of that would happen. Python and framework work inside `INPUT` is
part of preparing the batch. Between two framework calls lies the interpreter, which many traces don't show: gaps
up to `LONGEST_PYTHON_NS` are its time, longer ones unknown.

Once the launch call is over, the way from call to kernel is launch overhead, whatever
the host does meanwhile; but only up to `LONGEST_LAUNCH_LATENCY_NS`: a launched kernel that
starts later than that waits for something that the timeline doesn't show.

Overhead of profiler and driver that a trace has on a lane of its own, without saying which thread it held, owns what
would else be launch overhead or unknown: it makes launches longer, but no batch later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from gpututor.ledger.accounts import Account
from gpututor.ledger.overheads import overheads_apart, under
from gpututor.ledger.piece import Piece
from gpututor.timeline import Activity, LaneKind, Span, Timeline

LONGEST_LAUNCH_LATENCY_NS = 100_000
"""Our choice. A launch takes some microseconds to reach an idle GPU, a large graph some tens."""

LONGEST_PYTHON_NS = 1_000_000
"""Our choice. A training loop's own Python between two calls takes microseconds; a millisecond deserves a name."""

ACCOUNT_OF = {
    Activity.INPUT: Account.WAITING_FOR_INPUT,
    Activity.SYNC: Account.BLOCKING_SYNC,
    Activity.COPY_CALL: Account.EXPOSED_COPY,
    Activity.PYTHON: Account.LAUNCH_OVERHEAD,
    Activity.DISPATCH: Account.LAUNCH_OVERHEAD,
    Activity.LAUNCH: Account.LAUNCH_OVERHEAD,
    Activity.PAUSE: Account.PAUSE,
    Activity.STARTUP: Account.START_UP,
    Activity.COMM_WAIT: Account.EXPOSED_COMMUNICATION,
}
OWNS_ALL_INSIDE = (Activity.STARTUP, Activity.PAUSE)
WORKS_FOR_INPUT = frozenset({Activity.PYTHON, Activity.DISPATCH})
DRIVES_THE_GPU = frozenset(
    {Activity.LAUNCH, Activity.DISPATCH, Activity.SYNC, Activity.COPY_CALL, Activity.COMM_WAIT, Activity.STARTUP}
)
STILL_TRUE_AFTER_LAUNCH = frozenset({Account.START_UP, Account.PAUSE, Account.EXPOSED_COMMUNICATION})


@dataclass(frozen=True, slots=True)
class Thread:
    """One host thread: from `starts[k]` on its time belongs to `accounts[k]`, None where nothing is known."""

    starts: tuple[int, ...]
    accounts: tuple[Account | None, ...]

    def between(self, lo: int, hi: int) -> Iterator[tuple[int, int, Account | None]]:
        """The step function on [lo, hi), in order and without gaps."""
        k = bisect_right(self.starts, lo) - 1
        while lo < hi:
            end = min(hi, self.starts[k + 1]) if k + 1 < len(self.starts) else hi
            yield lo, end, self.accounts[k] if k >= 0 else None
            lo, k = end, k + 1


class Host:
    """The host's side of a timeline, made once and asked about each idle gap."""

    def __init__(self, timeline: Timeline, device_spans: Sequence[Span]) -> None:
        work = sorted(
            (s.start_ns, s.launch is None, k, s.launch) for k, s in enumerate(device_spans) if s.end_ns > s.start_ns
        )
        self._work_starts = [start for start, _, _, _ in work]
        self._work_launches = [launch for _, _, _, launch in work]
        to_host = {s.launch for s in timeline.spans if s.activity is Activity.COPY_TO_HOST}
        lanes = _by_lane(timeline, {timeline.lanes[s.lane].device for s in device_spans})
        self._overheads = overheads_apart(lanes)
        self._calls = _calls(lanes)
        self._threads = {lane: _thread(spans, to_host) for lane, spans in lanes.items()}
        self._order = _asked_in_order(lanes)

    def explain(self, start_ns: int, end_ns: int) -> Iterator[Piece]:
        """Split one idle gap among the accounts, in order and without gaps."""
        pieces = self._explained(start_ns, end_ns)
        return under(self._overheads, pieces) if self._overheads else pieces

    def _explained(self, start_ns: int, end_ns: int) -> Iterator[Piece]:
        call = self._next_call(end_ns)
        if call is None:
            yield from self._ask(start_ns, end_ns, self._order)
            return
        over = max(start_ns, min(call.end_ns, end_ns))
        order = (call.lane, *(lane for lane in self._order if lane != call.lane))
        yield from self._ask(start_ns, over, order)
        latency_from = max(over, end_ns - LONGEST_LAUNCH_LATENCY_NS)
        for piece in self._ask(over, latency_from, order):
            known = piece.account in STILL_TRUE_AFTER_LAUNCH
            yield piece if known else Piece(piece.start_ns, piece.end_ns, Account.UNKNOWN_IDLE)
        if latency_from < end_ns:
            yield Piece(latency_from, end_ns, Account.LAUNCH_OVERHEAD)

    def _next_call(self, when_ns: int) -> Span | None:
        """The host call that started the first GPU work at or after `when_ns`, if the timeline knows it."""
        k = bisect_left(self._work_starts, when_ns)
        launch = self._work_launches[k] if k < len(self._work_launches) else None
        return None if launch is None else self._calls.get(launch)

    def _ask(self, lo: int, hi: int, order: Sequence[int]) -> Iterator[Piece]:
        """Charge [lo, hi) by the first thread in `order` that did something known at each instant."""
        if lo >= hi:
            return
        if not order:
            yield Piece(lo, hi, Account.UNKNOWN_IDLE)
            return
        for start, end, account in self._threads[order[0]].between(lo, hi):
            if account is None:
                yield from self._ask(start, end, order[1:])
            else:
                yield Piece(start, end, account)


def _by_lane(timeline: Timeline, gpus: AbstractSet[int | None]) -> dict[int, list[Span]]:
    """Spans of each host thread by start, the longer first where two start together.

    A thread that belongs to another GPU than these (another rank's) is left out.
    """
    lanes: dict[int, list[Span]] = {
        k: []
        for k, lane in enumerate(timeline.lanes)
        if lane.kind is LaneKind.HOST and (lane.device is None or not gpus or lane.device in gpus)
    }
    for span in timeline.spans:
        if span.lane in lanes and span.end_ns > span.start_ns:
            lanes[span.lane].append(span)
    for spans in lanes.values():
        spans.sort(key=lambda s: (s.start_ns, -s.end_ns))
    return {k: spans for k, spans in lanes.items() if spans}


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
    return tuple(sorted(chosen, key=lambda k: (-sum(s.duration_ns for s in chosen[k]), k)))


def _thread(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Thread:
    """The step function of one thread, from its spans sorted by start."""
    points: list[tuple[int, Account | None]] = []
    if all(a.end_ns <= b.start_ns for a, b in pairwise(spans)):
        for span in spans:
            points += [(span.start_ns, _account(span, to_host)), (span.end_ns, None)]
    else:
        points.extend(_nested(spans, to_host))
    starts: list[int] = []
    accounts: list[Account | None] = []
    for when, account in points:
        if starts and starts[-1] == when:
            accounts[-1] = account
        elif not accounts or accounts[-1] is not account:
            starts.append(when)
            accounts.append(account)
    for start, end in _between_framework_calls(spans):
        k = bisect_left(starts, start)
        if k + 1 < len(starts) and starts[k : k + 2] == [start, end] and accounts[k] is None:
            accounts[k] = Account.LAUNCH_OVERHEAD
    return Thread(tuple(starts), tuple(accounts))


def _between_framework_calls(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Short gaps with a framework call before and after, from spans sorted by start."""
    before: Span | None = None  # the one that reaches furthest
    for span in spans:
        calls = before is not None and before.activity is span.activity is Activity.DISPATCH
        if before is not None and calls and 0 < span.start_ns - before.end_ns <= LONGEST_PYTHON_NS:
            yield before.end_ns, span.start_ns
        if before is None or span.end_ns > before.end_ns:
            before = span


def _account(span: Span, to_host: AbstractSet[int | None]) -> Account:
    """A blocking copy to the host is a wait for the result, like any other sync."""
    if span.activity is Activity.COPY_CALL and span.launch is not None and span.launch in to_host:
        return Account.BLOCKING_SYNC
    return ACCOUNT_OF[span.activity]


def _nested(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Iterable[tuple[int, Account | None]]:
    """The deciding account after each begin and end, for spans that overlap."""
    inside = _properly_nested(spans, to_host)
    return _crossing(spans, to_host) if inside is None else inside


def _properly_nested(
    spans: Sequence[Span], to_host: AbstractSet[int | None]
) -> list[tuple[int, Account | None]] | None:
    """The same where each span lies wholly in those that it begins in, as calls do; None where one does not."""
    points: list[tuple[int, Account | None]] = []
    ends: list[int] = []  # of what is open, and the account that decides there
    accounts: list[Account] = []
    owner, for_input = None, False  # here; and around each that is open
    outside: list[tuple[Activity | None, bool]] = []
    for span in spans:
        start, end, activity = span.start_ns, span.end_ns, span.activity
        while ends and ends[-1] <= start:
            over = ends.pop()
            accounts.pop()
            owner, for_input = outside.pop()
            points.append((over, accounts[-1] if accounts else None))
        if ends and end > ends[-1]:
            return None
        outside.append((owner, for_input))
        if activity in OWNS_ALL_INSIDE and owner is not OWNS_ALL_INSIDE[0]:
            owner = activity
        for_input = for_input or activity is Activity.INPUT
        if owner is not None:
            account = ACCOUNT_OF[owner]
        elif for_input and activity in WORKS_FOR_INPUT:
            account = Account.WAITING_FOR_INPUT
        elif activity is Activity.COPY_CALL:
            account = _account(span, to_host)
        else:
            account = ACCOUNT_OF[activity]
        ends.append(end)
        accounts.append(account)
        points.append((start, account))
    while ends:
        over = ends.pop()
        accounts.pop()
        points.append((over, accounts[-1] if accounts else None))
    return points


def _crossing(spans: Sequence[Span], to_host: AbstractSet[int | None]) -> Iterator[tuple[int, Account | None]]:
    """The same, edge by edge, where spans of one thread cross each other."""
    n = len(spans)
    # sorted by time, ends before begins: an end is k, a begin n + k
    edges = [(s.end_ns, k) for k, s in enumerate(spans)] + [(s.start_ns, n + k) for k, s in enumerate(spans)]
    edges.sort()
    n_open = dict.fromkeys(Activity, 0)
    stack: list[Span] = []  # by start; those that ended stay until nothing lies on top of them
    for when, k in edges:
        begins = k >= n
        span = spans[k - n] if begins else spans[k]
        n_open[span.activity] += 1 if begins else -1
        if begins:
            stack.append(span)
        while stack and stack[-1].end_ns <= when:
            stack.pop()
        yield when, _deciding(stack, n_open, to_host)


def _deciding(stack: Sequence[Span], n_open: dict[Activity, int], to_host: AbstractSet[int | None]) -> Account | None:
    for owner in OWNS_ALL_INSIDE:
        if n_open[owner]:
            return ACCOUNT_OF[owner]
    if not stack:
        return None
    if stack[-1].activity in WORKS_FOR_INPUT and n_open[Activity.INPUT]:
        return Account.WAITING_FOR_INPUT
    return _account(stack[-1], to_host)
