"""The zoomable picture of a step: bars for host, copies and GPU, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from gpututor.charts.colours import COLOUR, LINE_COLOUR, WORDS, Pattern, bands, pattern
from gpututor.charts.lanes import ABOVE, Band, Idle
from gpututor.charts.lanes import bands as bands_of
from gpututor.charts.segments import Segment
from gpututor.charts.style import Cell, calm, table
from gpututor.ledger import Account
from gpututor.text import NBSP, duration
from gpututor.timeline import Activity, LaneKind, Timeline

MOST_MARKS = 1500
"""More are merged. Source: with 1,400 marks on canvas a drag step took 22 ms and a redraw 0.45 s on two cores."""
MOST_LINES = 80  # launch-to-kernel lines; more can't be followed by eye
PIXELS = 1000  # width taken for granted when deciding what can be told apart
HAIRLINE_PIXELS = 1.0  # between two ops on the host
INK_ON_BARS = "#14161a"  # readable on every account's colour, in both themes
SHADE = {Activity.PYTHON: 0.45, Activity.DISPATCH: 0.72}
"""Opacity of a host bar: Python pale, the framework between, the driver's launch call full."""
COLUMNS = ("s", "e", "y0", "y1", "a", "o", "n", "t", "w")


def timeline_chart(
    timeline: Timeline, idle: Idle, window_ns: tuple[int, int] | None = None, most: int = MOST_MARKS
) -> alt.LayerChart:
    """The window of a timeline, all of it by default; drag to move, ctrl and wheel to zoom.

    `idle` are the ledger's idle stretches, each with the account it is charged to. Times on the axis count from the
    begin of the timeline's own window. One window to either side is sent along, so that a drag finds something there.
    """
    whole_lo, whole_hi = timeline.window_ns
    lo, hi = window_ns or timeline.window_ns
    wide = hi - lo
    sent = (max(whole_lo, lo - wide), min(whole_hi, hi + wide))
    rows = bands_of(timeline, idle, sent, wide / PIXELS, most)
    zero = whole_lo
    marks = [mark for band in rows for mark in _marks(band, zero, wide)]
    top = max((band.top for band in rows), default=1.0) + ABOVE - 0.1
    x = alt.X("s:Q", title=None, scale=_scale((lo - zero) / 1e3, (hi - zero) / 1e3), axis=_time_axis(wide))
    y = alt.Y("y0:Q", title=None, scale=_scale(0, top), axis=_lane_axis(rows))
    layers = [
        _bars(marks, x, y).add_params(
            alt.selection_interval(
                name="pan", encodings=["x"], bind="scales", zoom="wheel![event.ctrlKey || event.metaKey]"
            )
        )
    ]
    layers += [_patterned(account, marks, x, y) for account in Account if pattern(account) is not Pattern.SOLID
               and any(m["a"] == account.name for m in marks)]  # fmt: skip
    lines = _lines(rows, zero, (lo, hi))
    if lines:
        layers.append(
            alt.Chart(table(lines))
            .mark_rule(clip=True, strokeWidth=1, opacity=0.55, color=LINE_COLOUR)
            .encode(x=x, x2="e:Q", y=y, y2="y1:Q")
        )
    layers.append(_names(_labels(rows, zero, wide), x, y))
    spoken = f"Host, copy and GPU lanes, {duration(wide)} from {duration(lo - zero)} on"
    height = round(168 / 3.05 * top)  # 168 pixels for the usual three bands
    return calm(alt.layer(*layers).properties(width="container", height=height), spoken, "canvas")


def _scale(lo: float, hi: float) -> alt.Scale:
    return alt.Scale(domain=[lo, hi], nice=False, zero=False)


def _time_axis(wide_ns: int) -> alt.Axis:
    """Microseconds, or milliseconds for windows from 20 ms on."""
    number = "format(datum.value / 1000, ',') + ' ms'" if wide_ns >= 20e6 else "format(datum.value, ',') + ' µs'"
    return alt.Axis(
        labelExpr=number,
        tickCount=4,
        labelFlush=True,
        labelBound=True,
        labelOverlap=True,
        domain=False,
        gridDash=[2, 3],
    )


def _lane_axis(rows: Sequence[Band]) -> alt.Axis:
    """The bands' names, pulled inside the plot so that strip, slider and chart share their edges."""
    words = "".join(f"datum.value === {band.top} ? '{_quoted(band.title)}' : " for band in rows) + "''"
    return alt.Axis(
        values=[band.top for band in rows],
        labelExpr=words,
        labelAlign="left",
        labelBaseline="bottom",
        labelPadding=-1,
        labelOffset=-3,
        labelFontWeight="bold",
        ticks=False,
        domain=False,
        grid=False,
        title=None,
        minExtent=0,
        maxExtent=0,
    )


def _quoted(text: str) -> str:
    """Text that may stand between single quotes in a Vega expression."""
    return "".join(c for c in text if c not in "'\\\n")


def _marks(band: Band, zero_ns: int, wide_ns: int) -> list[dict[str, Cell]]:
    """One row of the chart's table for each segment."""
    hairline_ns = HAIRLINE_PIXELS * wide_ns / PIXELS if band.kind is LaneKind.HOST else 0.0
    ends = {id(group[-1]) for group in _ops(band)} if hairline_ns else set()
    out: list[dict[str, Cell]] = []
    for s in band.segments:
        cut_ns = min(hairline_ns, 0.2 * s.duration_ns) if id(s) in ends and s.n == 1 else 0.0
        kind = s.activity.value if s.activity else WORDS[s.account].lower()
        out.append(
            {
                "s": round((s.start_ns - zero_ns) / 1e3, 3),
                "e": round((s.end_ns - zero_ns - cut_ns) / 1e3, 3),
                "y0": band.bottom,
                "y1": round(band.ceiling(s), 3),
                "a": s.account.name,
                "o": SHADE.get(s.activity, 1.0) if s.activity else 1.0,
                "n": s.name if s.n == 1 else f"{s.n} short ones, drawn together",
                "t": _plain(duration(s.duration_ns)),
                "w": kind,
            }
        )
    return out


def _plain(text: str) -> str:
    """Text with ordinary spaces, for a table inside a chart."""
    return text.replace(NBSP, " ")


def _bars(marks: Sequence[dict[str, Cell]], x: alt.X, y: alt.Y) -> alt.Chart:
    colour = alt.Color(
        "a:N", scale=alt.Scale(domain=[a.name for a in COLOUR], range=list(COLOUR.values())), legend=None
    )
    chart: alt.Chart = (
        alt.Chart(table(marks, COLUMNS))
        .mark_rect(clip=True, cornerRadius=1)
        .encode(
            x=x,
            x2="e:Q",
            y=y,
            y2="y1:Q",
            color=colour,
            opacity=alt.Opacity("o:Q", scale=None, legend=None),
            tooltip=_tooltip(),
        )
    )
    return chart


def _tooltip() -> list[alt.Tooltip]:
    """Name, length and kind; on every layer, since the topmost one answers."""
    return [alt.Tooltip("n:N", title="what"), alt.Tooltip("t:N", title="takes"), alt.Tooltip("w:N", title="kind")]


def _patterned(account: Account, marks: Sequence[dict[str, Cell]], x: alt.X, y: alt.Y) -> alt.Chart:
    """The bars of one account again, filled with its pattern."""
    stops = [
        alt.GradientStop(color=colour, offset=offset)
        for begin, end, colour in bands(account)
        for offset in (begin, end)
    ]
    fill = alt.LinearGradient(gradient="linear", stops=stops, x1=0, x2=0, y1=1, y2=0)
    mine = [m for m in marks if m["a"] == account.name]
    chart: alt.Chart = (
        alt.Chart(table(mine))
        .mark_rect(clip=True, cornerRadius=1, fill=fill)
        .encode(x=x, x2="e:Q", y=y, y2="y1:Q", tooltip=_tooltip())
    )
    return chart


def _lines(rows: Sequence[Band], zero_ns: int, window_ns: tuple[int, int]) -> list[dict[str, Cell]]:
    """From the end of each launch call to the begin of the kernel it started, if there are few enough to follow."""
    lo, hi = window_ns
    called = {s.launch: (s, b) for b in rows if b.kind is LaneKind.HOST for s in b.segments if s.launch is not None}
    out: list[dict[str, Cell]] = []
    for band in rows:
        if band.kind is not LaneKind.STREAM:
            continue
        for kernel in band.segments:
            if kernel.launch not in called:
                continue
            call, host = called[kernel.launch]
            if kernel.end_ns > lo and call.start_ns < hi:
                begin, end = ((t - zero_ns) / 1e3 for t in (call.end_ns, kernel.start_ns))
                out.append({"s": begin, "e": end, "y0": host.bottom, "y1": band.top})
    return out if len(out) <= MOST_LINES else []


def _ops(band: Band) -> list[list[Segment]]:
    """A host band cut into ops: the framework's work before, between and after the launches of one call."""
    out: list[list[Segment]] = []
    for s in band.segments:
        last = out[-1] if out else None
        goes_on = (
            last is not None
            and s.start_ns == last[-1].end_ns
            and s.n == last[-1].n == 1
            and {s.activity, last[-1].activity} <= {Activity.DISPATCH, Activity.LAUNCH}
            and (s.activity is Activity.LAUNCH or s.name == _op_name(last))
        )
        if last is not None and goes_on:
            last.append(s)
        else:
            out.append([s])
    return out


def _op_name(group: Sequence[Segment]) -> str:
    """What a group of host segments is called: the framework's op if there is one, else the first."""
    return next((s.name for s in group if s.activity is Activity.DISPATCH), group[0].name)


def _labels(rows: Sequence[Band], zero_ns: int, wide_ns: int) -> list[dict[str, Cell]]:
    """Names to write into host bars that are wide enough for at least a few letters."""
    return [
        {
            "s": (group[0].start_ns - zero_ns) / 1e3,
            "e": (group[-1].end_ns - zero_ns) / 1e3,
            "ym": round((band.bottom + band.top) / 2, 3),
            "b": short(_op_name(group)),
            "n": _op_name(group),
            "t": _plain(duration(group[-1].end_ns - group[0].start_ns)),
            "w": "one call" if len(group) > 1 else group[0].activity.value if group[0].activity else "",
        }
        for band in rows
        if band.kind is LaneKind.HOST
        for group in _ops(band)
        if group[0].n == 1 and group[-1].end_ns - group[0].start_ns > wide_ns / 60
    ]


def short(name: str) -> str:
    """An op's name without namespace, overload and the underscores around it.

    >>> short("aten.addmm.default"), short("aten._foreach_add_.List"), short("launch gemm"), short("loss.item()")
    ('addmm', 'foreach_add', 'gemm', 'loss.item()')
    """
    if name.startswith("aten."):
        name = name.removeprefix("aten.").rsplit(".", 1)[0].strip("_")
    return name.removeprefix("gpututor.").removeprefix("launch ")


def _names(labels: Sequence[dict[str, Cell]], x: alt.X, y: alt.Y) -> alt.Chart:
    """Names inside bars, at any zoom: cut to the bar's length, gone where the bar is short."""
    wide = "(scale('x', datum.e) - scale('x', datum.s))"
    chart: alt.Chart = (
        alt.Chart(table(labels, ("s", "e", "ym", "b", "n", "t", "w")))
        .mark_text(
            clip=True,
            align="left",
            baseline="middle",
            dx=4,
            fontSize=11,
            fill=INK_ON_BARS,
            limit=alt.expr(f"max(1, {wide} - 6)"),
            opacity=alt.expr(f"{wide} > 34 ? 1 : 0"),
        )
        .encode(x=x, y=alt.Y("ym:Q", title=None), text="b:N", tooltip=_tooltip())
    )
    return chart
