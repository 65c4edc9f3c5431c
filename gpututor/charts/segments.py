"""Spans of one lane as pieces that don't overlap, and how to show fewer of them without changing their sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpututor.intervals import merged
from gpututor.ledger import Account, Piece
from gpututor.timeline import Activity, Span

ACCOUNT_OF_ACTIVITY = {
    Activity.KERNEL: Account.BUSY_UNSPLIT,
    Activity.MEMSET: Account.BUSY_UNSPLIT,
    Activity.COLLECTIVE: Account.EXPOSED_COMMUNICATION,
    Activity.TRANSFER: Account.EXPOSED_COMMUNICATION,
    Activity.COPY_TO_GPU: Account.EXPOSED_COPY,
    Activity.COPY_TO_HOST: Account.EXPOSED_COPY,
    Activity.COPY_ON_GPU: Account.BUSY_UNSPLIT,  # keeps the card's memory busy, as a kernel would
    Activity.COPY_CALL: Account.EXPOSED_COPY,
    Activity.PYTHON: Account.LAUNCH_OVERHEAD,
    Activity.DISPATCH: Account.LAUNCH_OVERHEAD,
    Activity.LAUNCH: Account.LAUNCH_OVERHEAD,
    Activity.SYNC: Account.BLOCKING_SYNC,
    Activity.INPUT: Account.WAITING_FOR_INPUT,
    Activity.PAUSE: Account.PAUSE,
    Activity.STARTUP: Account.START_UP,
    Activity.COMM_WAIT: Account.EXPOSED_COMMUNICATION,
}
"""The colour in which an activity is drawn: that of the account which it fills when it makes the GPU wait."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a lane, one mark on a chart. `n` spans are gathered in it; `launch` as in `Span`."""

    start_ns: int
    end_ns: int
    account: Account
    name: str
    activity: Activity | None = None  # None: the GPU idles
    launch: int | None = None
    n: int = 1

    @property
    def duration_ns(self) -> int:
        """Length in nanoseconds."""
        return self.end_ns - self.start_ns


def flattened(spans: Iterable[Span]) -> list[Segment]:
    """The spans as pieces in order, none overlapping: where several run, the one that began last is seen.

    The pieces together last exactly as long as the union of the spans.
    """
    out: list[Segment] = []
    stack: list[Span] = []
    at_ns = 0

    def advance(to_ns: int | None) -> None:
        """Write what is seen from `at_ns` to `to_ns`; None means until everything has ended."""
        nonlocal at_ns
        while stack and (to_ns is None or at_ns < to_ns):
            top = stack[-1]
            until_ns = top.end_ns if to_ns is None else min(top.end_ns, to_ns)
            if until_ns > at_ns:
                account = ACCOUNT_OF_ACTIVITY[top.activity]
                out.append(Segment(at_ns, until_ns, account, top.name, top.activity, top.launch))
                at_ns = until_ns
            if to_ns is None or top.end_ns <= to_ns:
                stack.pop()
            else:
                break

    for span in sorted(spans, key=lambda s: (s.start_ns, -s.end_ns)):
        advance(span.start_ns)
        at_ns = span.start_ns
        stack.append(span)
    advance(None)
    return out


def clipped(segments: Iterable[Segment], window_ns: tuple[int, int]) -> list[Segment]:
    """The parts of `segments` inside a window."""
    lo, hi = window_ns
    return [
        s if lo <= s.start_ns and s.end_ns <= hi else replace(s, start_ns=max(s.start_ns, lo), end_ns=min(s.end_ns, hi))
        for s in segments
        if s.end_ns > lo and s.start_ns < hi
    ]


def with_idle(work: Sequence[Segment], idle: Iterable[Piece], window_ns: tuple[int, int]) -> list[Segment]:
    """Work and idle stretches of a GPU in one ordered list, cut to the window.

    Where an idle stretch lies under work that is drawn (a collective that nothing hides), the work is seen.
    """
    lo, hi = window_ns
    drawn = clipped(work, window_ns)
    busy = merged((s.start_ns, s.end_ns) for s in drawn)
    waits: list[Segment] = []
    k = 0
    inside = (piece for piece in idle if piece.end_ns > lo and piece.start_ns < hi)
    for piece in sorted(inside, key=lambda piece: piece.start_ns):
        while k < len(busy) and busy[k][1] <= piece.start_ns:
            k += 1
        at_ns, j = piece.start_ns, k
        while j < len(busy) and busy[j][0] < piece.end_ns:
            if busy[j][0] > at_ns:
                waits.append(Segment(at_ns, busy[j][0], piece.account, "GPU idle"))
            at_ns = max(at_ns, busy[j][1])
            j += 1
        if at_ns < piece.end_ns:
            waits.append(Segment(at_ns, piece.end_ns, piece.account, "GPU idle"))
    return sorted([*drawn, *clipped(waits, window_ns)], key=lambda s: s.start_ns)


def thinned(segments: Sequence[Segment], pixel_ns: float) -> list[Segment]:
    """Fewer segments that look the same: runs of neighbours shorter than two pixels become one mark an account.

    A run is at most six pixels long. Inside it each account keeps its total time to the nanosecond, so that a lane
    busy a quarter of the time is still drawn a quarter full, as a coarser comb.
    """
    out: list[Segment] = []
    run: list[Segment] = []
    for segment in segments:
        if run and (segment.start_ns - run[-1].end_ns > pixel_ns or segment.end_ns - run[0].start_ns > 6 * pixel_ns):
            out += _gathered(run)
            run = []
        if segment.duration_ns < 2 * pixel_ns:
            run.append(segment)
        else:
            out += _gathered(run)
            run = []
            out.append(segment)
    return out + _gathered(run)


def _gathered(run: Sequence[Segment]) -> list[Segment]:
    """One segment for each account (and busy or idle) of a run, laid end to end from where the run begins."""
    if len(run) < 2:
        return list(run)
    groups: dict[tuple[Account, bool], list[Segment]] = {}
    for segment in run:
        groups.setdefault((segment.account, segment.activity is None), []).append(segment)
    out, at_ns = [], run[0].start_ns
    for group in groups.values():
        end_ns = at_ns + sum(s.duration_ns for s in group)
        first, n = group[0], sum(s.n for s in group)
        if n > 1:
            mixed = any(s.activity is not first.activity for s in group)
            calls = first.account is Account.LAUNCH_OVERHEAD  # Python, framework and driver in one: the middle shade
            first = replace(first, launch=None, n=n, activity=Activity.DISPATCH if mixed and calls else first.activity)
        out.append(replace(first, start_ns=at_ns, end_ns=end_ns))
        at_ns = end_ns
    return out


def fitting(lanes: Sequence[Sequence[Segment]], pixel_ns: float, most: int) -> list[list[Segment]]:
    """Every lane thinned alike, with the smallest pixel (doubling from `pixel_ns`) that leaves at most `most` marks."""
    while True:
        thin = [thinned(lane, pixel_ns) for lane in lanes]
        if sum(map(len, thin)) <= most:
            return thin
        pixel_ns *= 2
