"""The furniture of a lesson: small functions from data to something that marimo can show.

Figures are plain HTML with classes of lessons/look.css: they follow the theme, wrap on a phone and are text to a screen
reader. Controls are marimo's own. Nothing here computes a result.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpututor import charts
from gpututor.charts import running_mean, strip_svg, views
from gpututor.page.close_up import CloseUp, close_up, ledger_figure
from gpututor.page.course import LESSONS, PARTS, START, Lesson, Part, Rung, is_ready, lesson, next_ready
from gpututor.page.endings import ending, instructor_notes, is_instructor, next_lesson, takeaway
from gpututor.page.exercise import answer_control, check_button, editor_control, exercise, exercise_card, verdict
from gpututor.page.expected import expected_table
from gpututor.page.figures import (
    figure,
    gauge_table,
    gauges,
    legend,
    legend_of,
    lines_legend,
    source_line,
    timeline_controls,
    timeline_figure,
    view_control,
    window_control,
)
from gpututor.page.finding import finding, findings
from gpututor.page.flow import Experiment, Flow
from gpututor.page.front import (
    Door,
    class_notes,
    doors,
    facts,
    front_header,
    gpu_fact,
    kept_where,
    ledger_map,
    name_control,
    papers,
    save_answers,
)
from gpututor.page.guess import Question, guess_card, guess_control, guess_locked
from gpututor.page.head import header, recall, unknown_bar
from gpututor.page.kept import Kept, kept_tapes
from gpututor.page.line_figure import line_figure
from gpututor.page.links import address
from gpututor.page.measured import OwnGpu, measured_gauges, measured_steps
from gpututor.page.money import money, price_of, spent
from gpututor.page.own import OwnMachine
from gpututor.page.parts import html, shown, told, trouble_line
from gpututor.page.recorded import recorded
from gpututor.page.run import ghost, progress_line, run_buttons, run_panel
from gpututor.page.runner import Phase, Runner, Shown
from gpututor.page.sms import SmPicture, sm_picture, sm_pictures
from gpututor.page.sweep import (
    BUSY,
    FILL,
    HELD_OUT,
    LOSS,
    MEMORY,
    MFU,
    RATE,
    STEP,
    STEPS,
    WHOLE,
    Point,
    cost_column,
    machine_control,
    points_table,
    sweep_points,
)
from gpututor.page.waterfall import waterfall
from gpututor.page.workloads import against_limit, limits_table, two_bars, useful_money

if TYPE_CHECKING:
    from gpututor.charts import answer_picture, curve, timeline_chart
    from gpututor.page.standing import standing_of
    from gpututor.page.whole_course import course_index

LATER = {"course_index": "gpututor.page.whole_course", "standing_of": "gpututor.page.standing"}
"""Names of the front page alone: behind them stand all exercises, which a lesson's page does without."""

__all__ = [
    "BUSY",
    "FILL",
    "HELD_OUT",
    "LESSONS",
    "LOSS",
    "MEMORY",
    "MFU",
    "PARTS",
    "RATE",
    "START",
    "STEP",
    "STEPS",
    "WHOLE",
    "CloseUp",
    "Door",
    "Experiment",
    "Flow",
    "Kept",
    "Lesson",
    "OwnGpu",
    "OwnMachine",
    "Part",
    "Phase",
    "Point",
    "Question",
    "Rung",
    "Runner",
    "Shown",
    "SmPicture",
    "address",
    "against_limit",
    "answer_control",
    "answer_picture",
    "check_button",
    "class_notes",
    "close_up",
    "cost_column",
    "course_index",
    "curve",
    "doors",
    "editor_control",
    "ending",
    "exercise",
    "exercise_card",
    "expected_table",
    "facts",
    "figure",
    "finding",
    "findings",
    "front_header",
    "gauge_table",
    "gauges",
    "ghost",
    "gpu_fact",
    "guess_card",
    "guess_control",
    "guess_locked",
    "header",
    "html",
    "instructor_notes",
    "is_instructor",
    "is_ready",
    "kept_tapes",
    "kept_where",
    "ledger_figure",
    "ledger_map",
    "legend",
    "legend_of",
    "lesson",
    "limits_table",
    "line_figure",
    "lines_legend",
    "machine_control",
    "measured_gauges",
    "measured_steps",
    "money",
    "name_control",
    "next_lesson",
    "next_ready",
    "papers",
    "points_table",
    "price_of",
    "progress_line",
    "recall",
    "recorded",
    "run_buttons",
    "run_panel",
    "running_mean",
    "save_answers",
    "shown",
    "sm_picture",
    "sm_pictures",
    "source_line",
    "spent",
    "standing_of",
    "strip_svg",
    "sweep_points",
    "takeaway",
    "timeline_chart",
    "timeline_controls",
    "timeline_figure",
    "told",
    "trouble_line",
    "two_bars",
    "unknown_bar",
    "useful_money",
    "verdict",
    "view_control",
    "views",
    "waterfall",
    "window_control",
]


def __getattr__(name: str) -> Any:
    if name in LATER:
        return getattr(import_module(LATER[name]), name)
    if name not in charts.LATER:
        raise AttributeError(f"module 'gpututor.page' has no attribute {name!r}")
    return getattr(charts, name)
