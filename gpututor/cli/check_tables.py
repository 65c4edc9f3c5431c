"""What `gpututor check` prints for a reader: what the answer did, the verdict, the checks, a hint; and the list."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpututor.exercises.form import Exercise, Judged
from gpututor.text import NBSP, duration, percent

if TYPE_CHECKING:
    from gpututor.cli.check import Call, Checked

WIDTH_WITHOUT_TERMINAL = 120  # a pipe or a file has no width of its own
N_POINTS = 12  # of a picture that has more, evenly taken
VERDICT = {
    "unanswered": "Not answered.",
    "wrong": "Not yet.",
    "partial": "In part.",
    "right": "Right.",
}


def print_checked(checked: Checked) -> None:
    """Print what the answer did, then the verdict, then what was looked at, then the hint."""
    console, judged = _console(), checked.judged
    console.print(Text(f"Exercise {checked.one.number} · {checked.one.title}", style="bold"))
    if checked.calls:
        console.print(_calls(checked))
    _print_points(console, checked.one, judged)
    score = f"{checked.earned:g} of {checked.one.marks} marks."
    said = Text(f"{VERDICT[judged.state]} ", style="bold")
    if judged.state == "unanswered":
        said.append("Nothing was typed or chosen, or the code is as it began.", style="not bold")
    else:
        said.append(f"{plain(judged.text)} {score}", style="not bold")
    console.print(said)
    if judged.checks:
        console.print(_checks(judged))
    if checked.hint is not None:
        console.print(Text(f"Hint {checked.hint} of {len(checked.one.hints)}", style="bold"))
        console.print(Padding(Markdown(checked.one.hints[checked.hint - 1]), (0, 0, 0, 2)))


def plain(text: str) -> str:
    """A text that may hold a learner's own words, without what a terminal would obey.

    >>> plain("no \\x1b[2J such\\nname")
    'no ?[2J such name'
    """
    return "".join(c if c.isprintable() or c == NBSP else " " if c.isspace() else "?" for c in text)


def _calls(checked: Checked) -> Table:
    """What the code launched, a line for each call of it."""
    table = _table(f"on {checked.machine}", "kernels>", "waits>", "copies>", "time>", "busy>")
    for whose, calls in (("as it began", checked.at_start), ("your code", checked.calls)):
        for k, call in enumerate(calls, 1):
            _add_call(table, f"{whose}, call {k}" if len(calls) > 1 else whose, call)
    return table


def _add_call(table: Table, name: str, call: Call) -> None:
    kernels = "not known" if call.kernels is None else f"{call.kernels:,}"
    counts = f"{call.waits:,}", f"{call.copies:,}"
    table.add_row(name, kernels, *counts, duration(call.step_ns), percent(call.busy_share))


def _print_points(console: Console, one: Exercise, judged: Judged) -> None:
    """Their numbers beside ours; ours to a typed number only once it is right, since they are the answer."""
    if not judged.theirs:
        return
    if one.kind != "code":
        answer = judged.theirs[0][1]
        mine = f"You answered {answer:g} {one.unit}".rstrip() if answer is not None else ""
        ours = judged.ours[0][1] if judged.ours and judged.state == "right" else None
        console.print(Text(f"{mine}; ours is {ours:.4g}." if ours is not None else f"{mine}."))
        return
    ours_at = dict(judged.ours)
    table = _table(one.x_title or "at", "yours>", "ours>")
    points = judged.theirs[:: -(-len(judged.theirs) // N_POINTS)]
    for x, y in points:
        table.add_row(f"{x:g}", _number(y), _number(ours_at.get(x)))
    console.print(table)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _checks(judged: Judged) -> Table:
    table = Table.grid(padding=(0, 2))
    for each in judged.checks:
        table.add_row("yes" if each.holds else "no", Text(each.words), f"{100 * each.share:.0f} of 100")
    return table


def print_list(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print all exercises with what was earned, and the sum."""
    table = _table("exercise", "title", "kind", "marks>", "earned>", "state")
    for row in rows:
        state = row["state"]
        if row["needs_lesson"] is not None:
            state = f"open lesson {row['needs_lesson']} first" if state == "not answered" else state
        earned = "" if row["earned"] is None else f"{row['earned']:g}"
        table.add_row(row["exercise"], row["title"], row["kind"], f"{row['marks']}", earned, state)
    console = _console()
    console.print(table)
    earned_all, marks_all = sum(row["earned"] or 0 for row in rows), sum(row["marks"] for row in rows)
    console.print(f"{earned_all:g} of {marks_all} marks.")


def print_task(one: Exercise, asked: str, options: Sequence[str]) -> None:
    """Print the task, with options or the code to begin with."""
    console = _console()
    console.print(Text(f"Exercise {one.number} · {one.title}", style="bold"))
    console.print(Markdown(asked))
    for place, option in enumerate(options, 1):
        console.print(Text(f"  {place}  {option}"))
    if one.starter:
        console.print()
        console.print(Text(one.starter))


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def _table(*titles: str) -> Table:
    """A table without lines; a title that ends in > is set to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        table.add_column(title.rstrip(">"), justify="right" if title.endswith(">") else "left", no_wrap=True)
    return table
