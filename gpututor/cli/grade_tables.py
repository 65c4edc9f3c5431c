"""What `gpututor grade` prints: the class in short, exercise by exercise, and what to look at."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpututor.cli.check_tables import WIDTH_WITHOUT_TERMINAL, plain
from gpututor.grading.exports import number

MOST_LINES = 12  # of files and incidents; class.html has all


def print_results(results: Mapping[str, Any], out: Path) -> None:
    """Print the summary of a graded class."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    summary = results["summary"]
    mean = (
        "" if summary["mean_points"] is None else f", {number(summary['mean_points'])} of {summary['marks']} on average"
    )
    title = plain(results["class"]["title"])
    console.print(Text(f"{title}: {summary['n_graded']} of {summary['n_learners']} graded{mean}", style="bold"))
    for warning in results["warnings"]:
        console.print(Text(warning, style="bold"))
    console.print(_exercises(summary))
    lines = [f"{plain(each['file'])}: {plain(each['what'])}" for each in results["files"]]
    lines += [f"{plain(each['id'])}, {each['number']}: the answer {each['what']}" for each in summary["incidents"]]
    lines += [f"{plain(each['id'])}: {each['late_days']} days late" for each in summary["late"]]
    for line in lines[:MOST_LINES]:
        console.print(Text(line), soft_wrap=True)
    if len(lines) > MOST_LINES:
        console.print(f"and {len(lines) - MOST_LINES} more.")
    if results["similar"]:
        n = len(results["similar"])
        console.print(f"{n} pair{'' if n == 1 else 's'} of answers to look at side by side.")
    console.print(Text(f"Open {out / 'class.html'}; feedback, grades.csv, canvas.csv and moodle.csv lie beside it."))


def _exercises(summary: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("exercise", "title", "right", "in part", "wrong", "none", "most frequent mistake"):
        table.add_column(title, justify="right" if title in ("right", "in part", "wrong", "none") else "left")
    for one in summary["exercises"]:
        states = one["states"]
        first = next(iter(one["mistakes"]), None)
        mistake = Text(f"{first['n']}× {plain(first['text'])}") if first else Text()
        mistake.truncate(70, overflow="ellipsis")
        wrong = states["wrong"] + states["not judged"]
        counts = (states["right"], states["partial"], wrong, states["unanswered"])
        table.add_row(one["number"], one["title"], *map(str, counts), mistake)
    return table
