"""The ledger as a table with bars: from wall time down to useful arithmetic. Text stays text, and it wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpututor.charts import WORDS, css_fill
from gpututor.charts.colours import BUSY_COLOUR
from gpututor.ledger import MEANING, Account, Row
from gpututor.page.parts import escape, markdown
from gpututor.text import percent

GAUGE_WORDS = {"wall": "Wall time", "busy": "Busy", "sm_fill": "SM fill", "mfu": "MFU"}
GAUGE_WHY = {
    "wall": "",
    "busy": "share of time with a kernel computing",
    "sm_fill": "share of the SMs that had work",
    "mfu": "useful FLOP, of what the card could do in this time",
}


def waterfall(rows: Sequence[Row], why: Mapping[str, str] | None = None) -> str:
    """The rows of a ledger (`ledger.rows`), each with a bar on the scale of the whole window and its cause.

    `why` replaces the general line on an account by what happened here: Markdown by the row's name, such as
    {"launch_overhead": f"{n} kernels; the host needs {duration(each)} for a launch"}.
    """
    said = {name: markdown(text) for name, text in (why or {}).items()}
    return table(rows, lambda row: said.get(row.name) or escape(_general(row)), "Why")


def table(rows: Sequence[Row], last: Callable[[Row], str], heading: str, kind: str = "") -> str:
    """Name, bar, share and one more column of HTML text for each row."""
    lines = "".join(_line(row, last(row)) for row in rows)
    return (
        f'<table class="gt-ledger {kind}"><caption class="gt-hidden">Share of wall time, account by account</caption>'
        '<thead class="gt-hidden"><tr><th scope="col">Account</th><th scope="col">Bar</th><th scope="col">Share</th>'
        f'<th scope="col">{escape(heading)}</th></tr></thead><tbody>{lines}</tbody></table>'
    )


def words(row: Row) -> str:
    """What a row is called on a page."""
    if row.account is Account.BUSY_UNSPLIT:
        return row.label.capitalize()  # "kernels running" would do on a timeline, not beside its own parts
    return WORDS[row.account] if row.account else GAUGE_WORDS.get(row.name, row.label)


def _general(row: Row) -> str:
    if row.reason:
        return row.reason
    return MEANING[row.account] if row.account else GAUGE_WHY.get(row.name, "")


def _line(row: Row, last: str) -> str:
    lo, hi = sorted((row.start_share, row.end_share))
    empty = row.kind == "drop" and not row.ns
    tail = f'<u style="left:{100 * lo:.3f}%"></u>' if row.kind == "drop" and not empty else ""
    place = f"left:{100 * lo:.3f}%;width:{100 * (hi - lo):.3f}%"
    bar = "" if empty or row.share is None else f'<i style="{place};{_fill(row)}"></i>'
    return (
        f'<tr class="gt-{row.kind}{" gt-absent" if empty else ""}"><th scope="row">{escape(words(row))}</th>'
        f'<td class="gt-bar"><div>{bar}{tail}</div></td><td class="gt-num">{escape(_number(row, empty))}</td>'
        f'<td class="gt-why">{last}</td></tr>'
    )


def _number(row: Row, empty: bool) -> str:
    if empty:
        return "none here"
    return ("−" if row.kind == "drop" else "") + percent(row.share)


def _fill(row: Row) -> str:
    if row.account:
        return f"background:{css_fill(row.account)}"
    return f"background:{'var(--gt-wall)' if row.name == 'wall' else BUSY_COLOUR}"
