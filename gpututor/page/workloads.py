"""Workloads side by side: what each would need at best, what its money buys, and a number against its limit."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.charts import css_fill
from gpututor.charts.colours import BUSY_COLOUR, YOURS_COLOUR
from gpututor.ledger import Account, Ledger
from gpututor.one_kernel import largest_loss
from gpututor.page.parts import escape
from gpututor.text import dollars, duration, percent

LIMITS = ("Bytes ÷ bandwidth", "FLOP ÷ peak", "It took")


def two_bars(known: str, asked: str) -> str:
    """The question of a lesson as a picture, for `header(hero=…)`: what is known, full, and below what is asked."""
    return (
        f'<div class="gt-twobars" role="img" aria-label="{escape(known)}; {escape(asked)} is not known yet">'
        f'<div class="gt-hero"><i style="width:100%"></i><b>{escape(known)}</b></div>'
        f'<div class="gt-hero"><u>{escape(asked)}</u></div></div>'
    )


def limits_table(rows: Sequence[tuple[str, str, float, float, float]]) -> str:
    """One line a workload: name, number format, then three times in nanoseconds: for its bytes, its FLOP, and taken.

    The longer of the two limits is printed bold: the kernel can't be faster than that.
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in LIMITS)
    lines = "".join(_limits(*row) for row in rows)
    return (
        '<table class="gt-three gt-limits"><caption class="gt-hidden">Two limits of each kernel, and its time</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _limits(name: str, number_format: str, bytes_ns: float, flop_ns: float, took_ns: float) -> str:
    cells = ""
    for title, ns in zip(LIMITS, (bytes_ns, flop_ns, took_ns), strict=True):
        shown = escape(duration(ns))
        text = f"<b>{shown}</b>" if ns == max(bytes_ns, flop_ns) else shown
        cells += f'<td><span class="gt-only-narrow">{title}</span>{text}</td>'
    return f'<tr><th scope="row">{escape(name)}<small>peak of {escape(number_format)}</small></th>{cells}</tr>'


def useful_money(rows: Sequence[tuple[str, Ledger]], usd: float) -> str:
    """For each workload, how much of `usd` US dollars buys useful arithmetic, and where most of the rest goes."""
    lines = "".join(_useful(name, ledger, usd) for name, ledger in rows)
    return (
        '<table class="gt-ledger gt-useful"><caption class="gt-hidden">What the money buys, by workload</caption>'
        '<thead class="gt-hidden"><tr><th scope="col">Workload</th><th scope="col">Bar</th>'
        f'<th scope="col">Useful</th><th scope="col">The rest</th></tr></thead><tbody>{lines}</tbody></table>'
    )


def _useful(name: str, ledger: Ledger, usd: float) -> str:
    useful = ledger.share(Account.USEFUL)
    most = largest_loss(ledger)
    most_share = ledger.share(most)
    bar = (
        f'<i style="left:0;width:{100 * useful:.3f}%;background:{BUSY_COLOUR}"></i>'
        f'<i style="left:{100 * useful:.3f}%;width:{100 * most_share:.3f}%;background:{css_fill(most)}"></i>'
    )
    rest = f"{dollars(usd * most_share)} to {most.value}" if most_share else "nothing is lost"
    return (
        f'<tr class="gt-gauge"><th scope="row">{escape(name)}</th><td class="gt-bar"><div>{bar}</div></td>'
        f'<td class="gt-num">{escape(dollars(usd * useful))}</td><td class="gt-why">{escape(rest)}</td></tr>'
    )


def against_limit(answer: float, limit: float, unit: str, *, limit_name: str = "data sheet") -> str:
    """A reader's number as a bar above the bar of what is possible at all, both in `unit`."""
    top = max(answer, limit)
    return (
        '<div class="gt-against">'
        + _bar("You", answer, top, unit, YOURS_COLOUR)
        + _bar(limit_name.capitalize(), limit, top, unit, "var(--gt-wall)")
        + "</div>"
    )


def _bar(name: str, value: float, top: float, unit: str, fill: str) -> str:
    share = value / top if top > 0 else 0.0
    said = f"{value:,.3g}" if 0 < value < 100 else f"{value:,.0f}"
    return (
        f'<div><span>{escape(name)}</span><span class="gt-meter" role="img" '
        f'aria-label="{escape(name)}: {said} {escape(unit)}, {escape(percent(share))} of the longer bar">'
        f'<i style="width:{100 * share:.2f}%;background:{fill}"></i></span><b>{said} {escape(unit)}</b></div>'
    )
