"""Figures and their furniture: the label that says what is simulated, gauges, legends, and the timeline's controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import marimo as mo

from gpututor.charts import LINE_COLOURS, WORDS, Idle, css_fill, strip_svg
from gpututor.ledger import Account, Ledger
from gpututor.page.parts import escape, html, markup
from gpututor.text import NBSP, duration, percent
from gpututor.timeline import Label, Origin, Timeline

TAG = {Origin.SIMULATED: "Simulated", Origin.MEASURED: "Measured", Origin.RECORDED: "Recorded"}
GAUGES = (
    ("Busy", "time with any kernel running; nvidia-smi shows this"),
    ("SM fill", "share of the card's SMs that had work"),
    ("MFU", "useful arithmetic, of what the card can do"),
)
NOTE = (
    "Tall bars are work, low ones are the GPU waiting. On the host, pale is Python, full is the driver's launch call. "
    "Move the two ends of the window, or drag in the chart; hover or tap for name and length."
)


def source_line(label: Label, extra: str = "") -> str:
    """What every figure must say: simulated, measured or recorded, on which card and machine; as HTML.

    `extra` is what else belongs there, such as "one step, 8.7 ms".
    """
    word = TAG[label.origin]
    parts = [part for part in (label.card or "card not known", label.host, label.what, extra) if part]
    return f'<span class="gt-tag gt-{word.lower()}">{word}</span> {escape(" · ".join(parts))}'


def figure(
    title: str, source: Label | str, *body: object, note: str = "", wide: bool = False, joined: bool = False
) -> mo.Html:
    """A titled figure around charts, controls or HTML text. `source` is a label, or ready HTML where there is none.

    `wide` gives it the wide column; `joined` continues the figure of the cell above (controls there, chart here).
    """
    line = source_line(source) if isinstance(source, Label) else source
    top = "" if joined else f"<figcaption><b>{escape(title)}</b><span>{line}</span></figcaption>"
    foot = f'<p class="gt-note">{escape(note)}</p>' if note else ""
    kinds = "gt gt-fig" + (" gt-wide" if wide else "") + (" gt-joined" if joined else "")
    inside = "".join(f"<div>{markup(part)}</div>" for part in body)
    return html(f'<figure class="{kinds}">{top}{inside}{foot}</figure>')


def gauges(ledger: Ledger, extra: str = "") -> mo.Html:
    """Busy, SM fill and MFU on one scale from 0 to 100 %, each with what it counts, or with why it can't be read."""
    shares = (ledger.gpu_util_share, ledger.sm_fill_share, ledger.mfu)
    reasons = (None, ledger.reasons.get("sm_fill"), ledger.reasons.get("mfu"))
    cells = "".join(
        _gauge(name, what, share, why) for (name, what), share, why in zip(GAUGES, shares, reasons, strict=True)
    )
    return html(
        f'<figure class="gt gt-fig gt-gauges"><figcaption><span>{source_line(ledger.label, extra)}</span></figcaption>'
        f'<div class="gt-grow">{cells}</div></figure>'
    )


def _gauge(name: str, what: str, share: float | None, why: str | None) -> str:
    if share is None:
        number, said, width = "—", f"Not known: {why}" if why else "Not known.", 0.0
    else:
        digits, _, sign = percent(share).rpartition(NBSP)
        number, said, width = f"{escape(digits)}<small>{NBSP}{sign}</small>", what, 100 * share
    return (
        f'<div class="gt-gauge"><div class="gt-gname">{name}</div><div class="gt-gnum">{number}</div>'
        f"{_meter(f'{name} {percent(share)}', width if share is not None else None)}"
        f'<div class="gt-gwhat">{escape(said)}</div></div>'
    )


def _meter(spoken: str, width_percent: float | None) -> str:
    """A level bar from 0 to 100 %; a share that is not zero stays visible."""
    least = ";min-width:2px" if width_percent else ""
    fill = "" if width_percent is None else f'<i style="width:{width_percent:.2f}%{least}"></i>'
    return f'<div class="gt-meter" role="img" aria-label="{escape(spoken)}">{fill}</div>'


def gauge_table(rows: Sequence[tuple[str, Ledger]], *, marks: Mapping[str, str] | None = None) -> str:
    """The three gauges of several workloads, one a line; `marks` adds a short text under a workload's name."""
    head = "".join(f"<th scope='col'>{name}</th>" for name, _ in GAUGES)
    lines = []
    for name, ledger in rows:
        under = f"<small>{escape((marks or {})[name])}</small>" if name in (marks or {}) else ""
        cells = ""
        shares = (ledger.gpu_util_share, ledger.sm_fill_share, ledger.mfu)
        for (gauge, _), share in zip(GAUGES, shares, strict=True):
            bar = _meter(f"{gauge} {percent(share)}", None if share is None else 100 * share)
            cells += f'<td><span class="gt-only-narrow">{gauge}</span><b>{escape(percent(share))}</b>{bar}</td>'
        lines.append(f'<tr><th scope="row">{escape(name)}{under}</th>{cells}</tr>')
    return (
        '<table class="gt-three"><caption class="gt-hidden">Three gauges for each workload</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def legend(accounts: Sequence[Account]) -> str:
    """Colour and name of each account, as HTML text; kernels come first if you name `BUSY_UNSPLIT` first."""
    return (
        '<div class="gt-legend">'
        + "".join(
            f'<span><i style="background:{css_fill(account)}"></i>{escape(WORDS[account])}</span>'
            for account in accounts
        )
        + "</div>"
    )


def lines_legend(names: Sequence[str]) -> str:
    """Colour and name of each line of a `curve`, in its order, as HTML text."""
    return (
        '<div class="gt-legend gt-lines">'
        + "".join(
            f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
            for name, colour in zip(names, LINE_COLOURS, strict=False)
        )
        + "</div>"
    )


def legend_of(idle: Idle) -> str:
    """The legend of a timeline: kernels, then every account that a wait of it is charged to."""
    seen = {piece.account for piece in idle}
    return legend([Account.BUSY_UNSPLIT, *(account for account in Account if account in seen)])


def view_control(views: Mapping[str, tuple[int, int]], *, chosen: str | None = None) -> mo.ui.radio:
    """Pills to jump to one of `views` (see `charts.views`); the first is chosen unless another is named."""
    return mo.ui.radio(list(views), value=chosen or next(iter(views)), inline=True, label="Show")


def window_control(timeline: Timeline, view_ns: tuple[int, int]) -> mo.ui.range_slider:
    """A slider with two ends over the whole timeline, set to a view; its value is in microseconds from the begin.

    Its numbers stand in `timeline_figure`, since beside the track they would push it out of line with the chart.
    """
    lo, hi = timeline.window_ns
    step_us = 10 ** max(0, len(str((hi - lo) // 1000)) - 3)  # a thousandth of the window, in round microseconds
    stop_us = -(-(hi - lo) // (1000 * step_us)) * step_us
    ends = ((view_ns[0] - lo) // (1000 * step_us) * step_us, -(-(view_ns[1] - lo) // (1000 * step_us)) * step_us)
    return mo.ui.range_slider(0, stop_us, step=step_us, value=ends, full_width=True, label="Window (µs)")


def timeline_controls(title: str, timeline: Timeline, idle: Idle, view: object, window: object) -> mo.Html:
    """The head of the timeline: title, label, legend and controls. Keep it in another cell than the chart.

    So a moving slider is never redrawn by its own effect.
    """
    length = duration(timeline.duration_ns)
    return figure(title, source_line(timeline.label, length), legend_of(idle), view, window, wide=True)


def timeline_figure(timeline: Timeline, idle: Idle, window_us: Sequence[float], *, note: str = NOTE) -> mo.Html:
    """Strip and zoomable chart of the window that the slider shows (`window_control(...).value`)."""
    from gpututor.charts import timeline_chart  # here, because it loads altair

    lo, hi = timeline.window_ns
    begin_ns = min(lo + round(window_us[0] * 1000), hi - 1000)
    window_ns = (begin_ns, max(begin_ns + 1000, min(lo + round(window_us[1] * 1000), hi)))
    begin_us, end_us, whole_us = ((t - lo) / 1e3 for t in (*window_ns, hi))
    shown_us = f"{begin_us:,.0f} to {end_us:,.0f} µs of {whole_us:,.0f} µs"
    return figure(
        "",
        timeline.label,
        f'<p class="gt-shown">{shown_us}</p>',
        strip_svg(timeline, idle, window_ns),
        timeline_chart(timeline, idle, window_ns),
        note=note,
        wide=True,
        joined=True,
    )
