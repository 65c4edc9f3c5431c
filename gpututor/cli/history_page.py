"""The page that `gpututor history plot --html` writes: a chart for each configuration."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.charts.runs import Dot, Repeats, runs_chart
from gpututor.history import Entry
from gpututor.history.changes import band_of, changes
from gpututor.history.drawing import in_change, words_of


def chart_page(groups: Sequence[Sequence[Entry]]) -> str:
    """An HTML page with one chart a configuration. It fetches Vega when it is opened, as Altair's pages do."""
    charts = []
    for runs in groups:
        found = changes(runs)
        band = found[-1].band if found else band_of(runs)
        room = None if band is None else (band.low / 1e6, band.high / 1e6)
        dots = (Dot(run.number or 0, (run.step_ns or 0.0) / 1e6, words_of(run), in_change(run, found)) for run in runs)
        charts.append(Repeats(f"{runs[-1].title} ({runs[-1].kind})", tuple(dots), room))
    return str(runs_chart(charts).to_html())
