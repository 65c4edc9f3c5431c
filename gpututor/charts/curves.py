"""Small charts of one quantity against another: a model's curve, and a reader's answer over the true points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import altair as alt

from gpututor.charts.colours import BUSY_COLOUR, LINE_COLOURS, YOURS_COLOUR
from gpututor.charts.style import Cell, calm, table

Points = Sequence[tuple[float, float | None]]
"""Pairs x, y; a y of None is left out."""
Kind = Literal["share", "number"]


def curve(
    lines: Mapping[str, Points],
    *,
    x_title: str,
    y_title: str = "",
    here: tuple[float, float] | None = None,
    here_text: str = "",
    dots: Points = (),
    kind: Kind = "share",
    log_x: bool = False,
    log_base: int = 2,
    log_y: bool = False,
    whole_x: bool = False,
    height_px: int = 190,
    named: bool = True,
) -> alt.LayerChart:
    """Lines with their names at the right end, at most four; `here` is the reader's point, `dots` are measured ones.

    Where ends lie close together set `named` to False and put `page.lines_legend` above the chart. With `kind` "share"
    the upright axis runs from 0 to 100 %, otherwise from 0 to the largest value; with `log_y`, for values
    that multiply, by powers of ten. `log_base` is by how much ticks of a level axis with `log_x` multiply. `whole_x` is
    for counts: no ticks between them.
    """
    flat = [y for points in lines.values() for _, y in points if y is not None] + [y for _, y in dots if y is not None]
    xs = [x for points in lines.values() for x, _ in points] + [x for x, _ in dots]
    x, y = _x(xs, x_title, log_x, whole_x, log_base), _log_y(flat, y_title) if log_y else _y(flat, y_title, kind)
    layers: list[alt.Chart] = []
    ends: list[dict[str, Cell]] = []
    for (name, points), colour in zip(lines.items(), LINE_COLOURS, strict=False):
        rows = _rows(points)
        layers.append(alt.Chart(table(rows)).mark_line(aria=False, color=colour, strokeWidth=2.5).encode(x=x, y=y))
        if rows and named and len(lines) > 1:
            ends.append({**rows[-1], "b": name})
    if dots:
        layers.append(_circles(dots, x, y))
    if ends:
        layers.append(_ink(ends, x, y, dx=-4, dy=-10, align="right"))
    if here:
        spot: list[dict[str, Cell]] = [{"x": here[0], "y": here[1], "b": here_text}]
        layers.append(
            alt.Chart(table(spot)).mark_point(filled=True, size=130, color=YOURS_COLOUR, opacity=1).encode(x=x, y=y)
        )
        if here_text:
            layers.append(_ink(spot, x, y, dx=12, dy=-12, align="left"))
    spoken = f"{y_title or ', '.join(lines)} against {x_title}" + (f"; now {here_text}" if here_text else "")
    return calm(alt.layer(*layers).properties(width="container", height=height_px), spoken)


def answer_picture(
    theirs: Points,
    ours: Points,
    *,
    x_title: str,
    y_title: str = "",
    kind: Kind = "share",
    log_x: bool = False,
    height_px: int = 170,
) -> alt.LayerChart:
    """What the reader's function gives as a line, drawn through the true points as circles."""
    flat = [y for _, y in [*ours, *theirs] if y is not None]
    x, y = _x([x for x, _ in [*ours, *theirs]], x_title, log_x), _y(flat, y_title, kind)
    mine = alt.Chart(table(_rows(theirs), ("x", "y"))).mark_line(
        aria=False, color=YOURS_COLOUR, strokeWidth=2.5, clip=True
    )
    spoken = f"Your function as a line, the true values as circles, against {x_title}"
    layered = alt.layer(mine.encode(x=x, y=y), _circles(ours, x, y))
    return calm(layered.properties(width="container", height=height_px), spoken)


def _rows(points: Points) -> list[dict[str, Cell]]:
    return [{"x": x, "y": y} for x, y in points if y is not None]


def _x(xs: Sequence[float], title: str, log: bool, whole: bool = False, base: int = 2) -> alt.X:
    """The level axis, over all points; logarithmic for values that double."""
    axis = alt.Axis(grid=False, tickCount=6, labelOverlap=True)
    if whole:
        axis = alt.Axis(grid=False, tickCount=6, labelOverlap=True, tickMinStep=1, format="d")
    if log:
        return alt.X("x:Q", title=title, axis=axis, scale=alt.Scale(type="log", base=base, nice=False))
    lo = min([0.0, *xs])
    return alt.X("x:Q", title=title, axis=axis, scale=alt.Scale(domain=[lo, max([1e-9, *xs])], nice=False))


def _y(ys: Sequence[float], title: str, kind: Kind) -> alt.Y:
    """The upright axis, always from zero."""
    if kind == "share":
        top = 1.0 if max([0.0, *ys]) <= 1.0 else 1.2  # a wrong answer above 100 % must be seen to be above
        axis = alt.Axis(labelExpr="format(100 * datum.value, '.0f') + ' %'", values=[0, 0.25, 0.5, 0.75, 1])
        return alt.Y("y:Q", title=title or None, axis=axis, scale=alt.Scale(domain=[0, top], clamp=True, nice=False))
    axis = alt.Axis(format="~s", tickCount=4)
    return alt.Y("y:Q", title=title or None, axis=axis, scale=alt.Scale(domain=[0, max([1e-9, *ys]) * 1.05]))


def _log_y(ys: Sequence[float], title: str) -> alt.Y:
    """The upright axis in powers of ten, from the one below the smallest value to the one above the largest."""
    known = [y for y in ys if y > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    powers = [10.0**k for k in range(low, max(high, low + 1) + 1)]
    axis = alt.Axis(format="~g", values=powers)
    scale = alt.Scale(type="log", domain=[powers[0], powers[-1]], nice=False)
    return alt.Y("y:Q", title=title or None, axis=axis, scale=scale)


def _circles(points: Points, x: alt.X, y: alt.Y) -> alt.Chart:
    mark = alt.Chart(table(_rows(points), ("x", "y"))).mark_point(size=70, color=BUSY_COLOUR, strokeWidth=2, opacity=1)
    chart: alt.Chart = mark.encode(x=x, y=y)
    return chart


def _ink(
    rows: Sequence[dict[str, Cell]], x: alt.X, y: alt.Y, *, dx: int, dy: int, align: Literal["left", "right"]
) -> alt.Chart:
    """Text in the page's own ink: the layer's name lets look.css colour it."""
    text = alt.Chart(table(rows)).mark_text(dx=dx, dy=dy, align=align, fontSize=13).encode(x=x, y=y, text="b:N")
    named: alt.Chart = text.properties(name=f"ink_{align}")
    return named
