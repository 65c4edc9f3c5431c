"""Pictures of a timeline and of numbers. Nothing here computes a result; every number comes in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpututor.charts.colours import COLOUR, LINE_COLOURS, WORDS, css_fill
from gpututor.charts.lanes import Idle
from gpututor.charts.smooth import running_mean
from gpututor.charts.strip import strip_svg
from gpututor.charts.views import views

if TYPE_CHECKING:
    from gpututor.charts.curves import answer_picture, curve
    from gpututor.charts.scatter import Spot, spots
    from gpututor.charts.timeline import timeline_chart

# What needs altair, which takes a fifth of a second to import: a page that draws nothing yet doesn't wait for it.
LATER = {
    "Spot": "gpututor.charts.scatter",
    "answer_picture": "gpututor.charts.curves",
    "curve": "gpututor.charts.curves",
    "spots": "gpututor.charts.scatter",
    "timeline_chart": "gpututor.charts.timeline",
}

__all__ = [
    "COLOUR",
    "LINE_COLOURS",
    "WORDS",
    "Idle",
    "Spot",
    "answer_picture",
    "css_fill",
    "curve",
    "running_mean",
    "spots",
    "strip_svg",
    "timeline_chart",
    "views",
]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'gpututor.charts' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)
