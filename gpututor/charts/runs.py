"""The runs of one configuration as dots over their numbers, with the band that each change was held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from gpututor.charts.colours import BUSY_COLOUR, LINE_COLOUR, YOURS_COLOUR
from gpututor.charts.style import Cell, calm_column, table


@dataclass(frozen=True, slots=True)
class Dot:
    """A run: its number, its step in milliseconds, and the words shown over it. `changed` colours it."""

    number: int
    step_ms: float
    words: str
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Repeats:
    """The runs of one configuration; `band_ms` is the room of the usual one, drawn behind the dots."""

    title: str
    dots: tuple[Dot, ...]
    band_ms: tuple[float, float] | None = None


def runs_chart(groups: Sequence[Repeats], *, width_px: int = 640, height_px: int = 200) -> alt.VConcatChart:
    """Step times over run numbers, one chart a configuration, below each other."""
    charts = [_one(group).properties(width=width_px, height=height_px, title=group.title) for group in groups]
    spoken = "step times of " + ", ".join(group.title for group in groups)
    return calm_column(alt.vconcat(*charts, spacing=36), spoken)


def _one(group: Repeats) -> alt.LayerChart | alt.FacetChart:
    rows: list[dict[str, Cell]] = [
        {"x": d.number, "y": d.step_ms, "words": d.words, "colour": YOURS_COLOUR if d.changed else BUSY_COLOUR}
        for d in group.dots
    ]
    top = max([1e-9, *(d.step_ms for d in group.dots), *(group.band_ms or ())]) * 1.1
    x = alt.X("x:Q", title="run", axis=alt.Axis(format="d", tickMinStep=1, grid=False), scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", title="a step (ms)", scale=alt.Scale(domain=[0, top]))
    layers: list[alt.Chart] = []
    if group.band_ms is not None:
        room = table([{"low": group.band_ms[0], "high": group.band_ms[1]}])
        low = alt.Y("low:Q", title="a step (ms)")
        layers.append(alt.Chart(room).mark_rect(color=LINE_COLOUR, opacity=0.18).encode(y=low, y2="high:Q"))
    data = table(rows, ("x", "y", "words", "colour"))
    colour, words = alt.Color("colour:N", scale=None), alt.Tooltip("words:N", title="run")
    layers.append(alt.Chart(data).mark_line(color=LINE_COLOUR, strokeWidth=1).encode(x=x, y=y))
    points = alt.Chart(data).mark_point(filled=True, size=70, opacity=1)
    layers.append(points.encode(x=x, y=y, color=colour, tooltip=words))
    return alt.layer(*layers)
