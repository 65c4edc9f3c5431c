"""The house style of every Altair chart: quiet, transparent, and readable on white and on black."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

FONT = "PT Sans"  # shipped by marimo, so nothing is fetched
Cell = str | int | float


def table(rows: Sequence[Mapping[str, Cell]], columns: Sequence[str] = ()) -> alt.InlineData:
    """Rows as tab-separated text inside the chart.

    A list of dicts would be validated row by row (half a second for 1,400 rows) and be four times as long.
    `columns` names them where there may be no rows.
    """
    keys = list(rows[0]) if rows else list(columns) or ["none"]
    lines = ["\t".join(keys)] + ["\t".join(_cell(row[key]) for key in keys) for row in rows]
    numbers = {key: "number" for key in keys if rows and not isinstance(rows[0][key], str)}
    return alt.InlineData(values="\n".join(lines), format=alt.CsvDataFormat(type="tsv", parse=numbers))


def _cell(value: Cell) -> str:
    """A cell without the characters that end a cell, a row or a quotation."""
    return " ".join(value.replace('"', "'").split()) if isinstance(value, str) else f"{value:.10g}"


def calm(chart: alt.LayerChart, spoken: str, renderer: Literal["svg", "canvas"] = "svg") -> alt.LayerChart:
    """The chart in house style, with `spoken` as its text for screen readers.

    Text and axes keep no colour of their own: marimo themes them, and in the SVG renderer look.css colours every
    layer named "ink". Canvas is for charts that are dragged.
    """
    styled: alt.LayerChart = _styled(chart, spoken, renderer)
    return styled


def _styled(chart: Any, spoken: str, renderer: Literal["svg", "canvas"]) -> Any:
    return (
        chart.configure(font=FONT, background="transparent", padding={"left": 0, "right": 0, "top": 4, "bottom": 2})
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            gridOpacity=0.18,
            domainOpacity=0.5,
            tickOpacity=0.5,
            labelPadding=4,
        )
        .properties(description=spoken, usermeta={"embedOptions": {"actions": False, "renderer": renderer}})
    )
