"""Pictures of a timeline and of numbers. Nothing here computes a result; every number comes in."""

from __future__ import annotations

from gpututor.charts.colours import COLOUR, WORDS, css_fill
from gpututor.charts.curves import answer_picture, curve, running_mean
from gpututor.charts.lanes import Idle
from gpututor.charts.strip import strip_svg
from gpututor.charts.timeline import timeline_chart
from gpututor.charts.views import views

__all__ = [
    "COLOUR",
    "WORDS",
    "Idle",
    "answer_picture",
    "css_fill",
    "curve",
    "running_mean",
    "strip_svg",
    "timeline_chart",
    "views",
]
