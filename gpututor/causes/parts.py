"""Parts of idle accounts that have a cause of their own: interruptions by name, and waits for the last rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpututor.intervals import merged, overlap_ns
from gpututor.ledger import Account, Piece
from gpututor.ledger.interruptions import ACCOUNT_OF_INTERRUPTION, Interruption, interrupting
from gpututor.timeline import Span

COMPILES = (Interruption.COMPILING, Interruption.TUNING, Interruption.LOADING)


@dataclass(frozen=True, slots=True)
class Awaited:
    """When this GPU waited in a collective for others, in its own time, and who was last.

    `intervals_ns` are begin and end of each wait, `n_matched` counts collectives, `last` says who came last how often.
    """

    intervals_ns: tuple[tuple[int, int], ...]
    n_matched: int
    last: tuple[tuple[str, int], ...]


def interruptions_ns(spans: Sequence[Span], waits: Sequence[Piece]) -> dict[Interruption, int]:
    """Nanoseconds of each kind in its account. Where two run at the same time, the first in `Interruption` counts."""
    found: dict[Interruption, list[tuple[int, int]]] = {}
    for span in spans:
        kind = interrupting(span)
        if kind is not None:
            found.setdefault(kind, []).append((span.start_ns, span.end_ns))
    spent = dict.fromkeys(Interruption, 0)
    so_far: dict[Account, list[tuple[int, int]]] = {}
    before = Counter[Account]()
    for kind in Interruption:
        if kind not in found:
            continue
        account = ACCOUNT_OF_INTERRUPTION[kind]
        so_far[account] = merged([*so_far.get(account, []), *found[kind]])
        now = _within(so_far[account], waits, account)
        spent[kind], before[account] = now - before[account], now
    return spent


def awaited_ns(awaited: Awaited | None, waits: Sequence[Piece]) -> int:
    """Nanoseconds that the GPU waited for the last rank with nothing else to do."""
    if awaited is None:
        return 0
    return _within(merged(awaited.intervals_ns), waits, Account.EXPOSED_COMMUNICATION)


def _within(intervals: Sequence[tuple[int, int]], waits: Sequence[Piece], account: Account) -> int:
    """Nanoseconds of this account inside `intervals`; both are in order and disjoint."""
    return overlap_ns(intervals, [(start, end) for start, end, charged in waits if charged is account])
