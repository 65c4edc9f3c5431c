"""Overhead of profiler and driver that a trace has on a lane of its own, laid over what the host did meanwhile."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from gpututor.ledger.accounts import Account
from gpututor.ledger.interruptions import ACCOUNT_OF_INTERRUPTION, OVERHEADS
from gpututor.ledger.piece import Piece
from gpututor.timeline import Span

LENGTHENED_BY_OVERHEAD = frozenset({Account.LAUNCH_OVERHEAD, Account.UNKNOWN_IDLE})


def overheads_apart(lanes: dict[int, list[Span]]) -> list[Piece]:
    """Takes the lanes that hold only overhead out of `lanes`; what is on them by start, each instant once."""
    apart = [k for k, spans in lanes.items() if all(s.name in OVERHEADS for s in spans)]
    pieces: list[Piece] = []
    at = 0
    for span in sorted((s for k in apart for s in lanes.pop(k)), key=lambda s: s.start_ns):
        if span.end_ns > (start := max(at, span.start_ns)):
            at = span.end_ns
            pieces.append(Piece(start, at, ACCOUNT_OF_INTERRUPTION[OVERHEADS[span.name]]))
    return pieces


def under(overheads: Sequence[Piece], pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, with what overhead lengthened charged to the overhead."""
    for piece in pieces:
        at, end, account = piece
        if account in LENGTHENED_BY_OVERHEAD:
            first = bisect_left(overheads, at, key=lambda p: p.end_ns)
            for k in range(first, len(overheads)):
                over = overheads[k]
                if over.start_ns >= end:
                    break
                if over.start_ns > at:
                    yield Piece(at, over.start_ns, account)
                    at = over.start_ns
                if (until := min(over.end_ns, end)) > at:
                    yield Piece(at, until, over.account)
                    at = until
        if at < end:
            yield Piece(at, end, account)
