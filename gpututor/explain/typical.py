"""The typical step: medians over the steps, since a trace's first and last ones also hold the profiler's own work."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from statistics import median

from gpututor.ledger import IDLE, Account, Ledger
from gpututor.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Typical:
    """Nanoseconds of the median step, of the shortest and the longest, and of each account in the median of the steps.

    Accounts of busy time are means, as in the ledger, which doesn't split them step by step. Without steps it is the
    window that all of it is about.
    """

    step_ns: float
    shortest_ns: int
    longest_ns: int
    accounts_ns: dict[Account, float]


def typical_of(timeline: Timeline, ledger: Ledger) -> Typical:
    """The typical step of a ledger's window."""
    if not timeline.steps:
        whole = ledger.window_ns
        return Typical(whole, whole, whole, dict(ledger.charged_ns))
    steps = sorted(timeline.steps, key=lambda step: step.start_ns)
    starts = [step.start_ns for step in steps]
    spent = [Counter[Account]() for _ in steps]
    for piece in ledger.pieces:
        k = max(0, bisect_right(starts, piece.start_ns) - 1)
        at = piece.start_ns
        while at < piece.end_ns:  # most lie in one step
            end = min(piece.end_ns, starts[k + 1]) if k + 1 < len(starts) else piece.end_ns
            spent[k][piece.account] += end - at
            at, k = end, k + 1
    lengths = [step.end_ns - step.start_ns for step in steps]
    accounts = {account: ns / len(steps) for account, ns in ledger.charged_ns.items()}
    accounts |= {account: float(median(each[account] for each in spent)) for account in IDLE}
    return Typical(float(median(lengths)), min(lengths), max(lengths), accounts)
