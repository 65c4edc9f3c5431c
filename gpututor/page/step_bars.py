"""Variants of a job below each other: a bar as long as each one's step, split into what the step goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpututor.charts import WORDS, css_fill
from gpututor.ledger import IDLE, Account, Ledger
from gpututor.page.figures import legend
from gpututor.page.parts import escape
from gpututor.page.sweep import Point
from gpututor.text import duration

COLUMNS = '<colgroup><col style="width:23%"><col><col style="width:6rem"><col></colgroup>'
"""The same for each table, so that bars of tables below each other begin in one line."""


def step_bars(points: Sequence[Point], said: Callable[[Point], str], *, heading: str = "") -> str:
    """A line a variant: its label, its bar on the scale of the longest one, its step, and what `said` says; as HTML.

    Only variants that were played have a line. `heading` stands above the labels, the legend above all.
    """
    ran = [(point, point.played.ledger) for point in points if point.played is not None]
    longest_ns = max((point.step_ns for point, _ in ran), default=1.0)
    lines = "".join(_line(point, ledger, longest_ns, said(point)) for point, ledger in ran)
    seen = {account for _, ledger in ran for account, share in parts(ledger) if share}
    shown = [account for account in (Account.BUSY_UNSPLIT, *IDLE) if account in seen]
    head = f'<p class="gt-note" style="margin:.6rem 0 .1rem">{escape(heading)}</p>' if heading else legend(shown)
    return (
        f'{head}<table class="gt-ledger"><caption class="gt-hidden">One step of each variant</caption>{COLUMNS}'
        '<thead class="gt-hidden"><tr><th scope="col">Variant</th><th scope="col">Bar</th><th scope="col">Step</th>'
        f'<th scope="col">Besides</th></tr></thead><tbody>{lines}</tbody></table>'
    )


def parts(ledger: Ledger) -> list[tuple[Account, float]]:
    """What the step goes to, as shares that add up to one: waits of each kind in the ledger's order, then kernels."""
    return [*((account, ledger.share(account)) for account in IDLE), (Account.BUSY_UNSPLIT, ledger.busy_share)]


def _line(point: Point, ledger: Ledger, longest_ns: float, said: str) -> str:
    pieces, left = "", 0.0
    spoken = []
    for account, share in parts(ledger):
        if not share:
            continue
        width = 100 * share * point.step_ns / longest_ns
        pieces += f'<i style="left:{left:.3f}%;width:{width:.3f}%;background:{css_fill(account)}"></i>'
        spoken.append(f"{WORDS[account]} {duration(share * point.step_ns)}")
        left += width
    return (
        f'<tr><th scope="row">{escape(point.label)}</th>'
        f'<td class="gt-bar"><div role="img" aria-label="{escape(", ".join(spoken))}">{pieces}</div></td>'
        f'<td class="gt-num">{escape(duration(point.step_ns))}</td><td class="gt-why">{escape(said)}</td></tr>'
    )
