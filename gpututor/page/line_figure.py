"""A figure of lines, with their names above it and one sentence in its place where it can't be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpututor.page.figures import figure, lines_legend
from gpututor.page.parts import shown
from gpututor.timeline import Label

if TYPE_CHECKING:
    from gpututor.charts.curves import Points


def line_figure(
    title: str,
    source: Label | str,
    lines: Mapping[str, Points],
    *below: object,
    note: str = "",
    wide: bool = False,
    joined: bool = False,
    named: bool = False,
    above: object = "",
    **drawn: Any,
) -> object:
    """Lines against one quantity. `drawn` goes on to `charts.curve`, "kind" being "number" unless it is said.

    Several lines have their legend above the chart, or their names at their ends where they are `named`. `above` is a
    control that stands over that, `below` stands under the chart; the rest is as in `figure`.
    """

    def drawing() -> object:
        from gpututor.charts import curve  # here, because it loads altair

        legend = "" if named or len(lines) == 1 else lines_legend(list(lines))
        chart = curve(lines, named=named, **{"kind": "number", **drawn})
        return figure(title, source, above, legend, chart, *below, note=note, wide=wide, joined=joined)

    return shown(drawing)
