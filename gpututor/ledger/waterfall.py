"""The ledger as a waterfall: gauges, and what is lost between one and the next. Data only; charts draw it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gpututor.ledger.accounts import IDLE, SLOW, UNFILLED, Account
from gpututor.ledger.book import Ledger
from gpututor.text import percent


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the waterfall, in shares of the window.

    A gauge reaches from 0 to `end_share`. A drop takes `share` away, from `start_share` down to `end_share`.
    `share` is None for a gauge that can't be read, and `reason` then says why.
    """

    kind: Literal["gauge", "drop"]
    name: str  # "wall", "busy", "sm_fill", "mfu", or the account's name in lower case
    label: str
    share: float | None
    start_share: float
    end_share: float
    ns: int
    account: Account | None = None
    reason: str | None = None


WORTH_SAYING_SHARE = 0.001
"""Our choice: an MFU of "at least" less than that says nothing."""

GAUGES = {
    "wall": ("wall time", ()),
    "busy": ("busy", IDLE),
    "sm_fill": ("SM fill", UNFILLED),
    "mfu": ("MFU", SLOW),
}
"""Each gauge, its label, and the accounts charged on the way down to it."""


def rows(ledger: Ledger, *, empty: bool = False) -> tuple[Row, ...]:
    """The waterfall from wall time down to MFU; accounts without time are left out unless `empty` is set."""
    return tuple(_rows(ledger, empty))


def as_text(ledger: Ledger) -> str:
    """The waterfall as lines of text: whose it is, the gauges at the margin, what is lost before each one set in."""
    label = ledger.label
    whose = " · ".join(part for part in (label.card or "card not known", label.host, label.what) if part)
    lines = [f"{label.origin.value.capitalize()} {whose}"]
    for row in rows(ledger):
        name = row.label if row.kind == "gauge" else f"  {row.label}"
        lines.append(f"{name:<26}{percent(row.share):>10}" + (f"  ({row.reason})" if row.reason else ""))
    return "\n".join(lines)


def _rows(ledger: Ledger, empty: bool) -> Iterator[Row]:
    window_ns = level_ns = ledger.window_ns
    for name, (label, accounts) in GAUGES.items():
        for account in accounts:
            ns = ledger.charged_ns[account]
            if ns or empty:
                after_ns = level_ns - ns
                yield Row(
                    "drop",
                    account.name.lower(),
                    account.value,
                    ns / window_ns,
                    level_ns / window_ns,
                    after_ns / window_ns,
                    ns,
                    account,
                )
                level_ns = after_ns
        level = level_ns / window_ns
        reason = ledger.reasons.get(name)
        least = ledger.mfu_at_least or 0
        if name == "mfu" and reason and least >= WORTH_SAYING_SHARE:
            reason += f"; the others make it at least {percent(least)}"
        yield Row("gauge", name, label, None if reason else level, 0.0, level, level_ns, reason=reason)
