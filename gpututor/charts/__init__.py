"""Pictures of a timeline and of numbers. Nothing here computes a result; every number comes in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpututor.charts.colours import COLOUR, WORDS, css_fill
from gpututor.charts.lanes import Idle
from gpututor.charts.strip import strip_svg
from gpututor.charts.views import views

if TYPE_CHECKING:
    from gpututor.charts.curves import answer_picture, curve, running_mean
    from gpututor.charts.runs import runs_chart
    from gpututor.charts.timeline import timeline_chart

# What needs altair, which takes a fifth of a second to import: a page that draws nothing yet doesn't wait for it.
LATER = {
    "answer_picture": "gpututor.charts.curves",
    "curve": "gpututor.charts.curves",
    "running_mean": "gpututor.charts.curves",
    "runs_chart": "gpututor.charts.runs",
    "timeline_chart": "gpututor.charts.timeline",
}

__all__ = [
    "COLOUR",
    "WORDS",
    "Idle",
    "answer_picture",
    "css_fill",
    "curve",
    "running_mean",
    "runs_chart",
    "strip_svg",
    "timeline_chart",
    "views",
]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'gpututor.charts' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)
