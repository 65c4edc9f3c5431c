"""`gpututor class new`: the folder of a class, made once."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.group("class")
def class_command() -> None:
    """Set up a class whose submissions are graded with gpututor grade."""


@class_command.command("new")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--roster",
    "roster_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A table with the columns id and name, where wanted email, group and extension.",
)
@click.option("--deadline", required=True, help='Such as "2026-12-18 23:59", by the clocks of the time zone.')
@click.option("--timezone", required=True, help="An IANA name, such as Europe/Berlin.")
@click.option("--lessons", default="all", show_default=True, help='Such as "1-3, 5".')
@click.option("--late", default="none", show_default=True, help='"10 % a day, 3 days", "none", or "refuse".')
@click.option("--title", default="", help="What pages and gradebooks call it.")
@click.option("--json", "as_json", is_flag=True, help="Print folder, title, learners, exercises and due as JSON.")
def new_command(
    folder: Path, roster_file: Path, deadline: str, timezone: str, lessons: str, late: str, title: str, as_json: bool
) -> None:
    """Make the FOLDER of a class: class.toml, roster.csv, overrides.csv, and a secret seed.

    An extension in the roster is a number of hours after the deadline, or a time of the learner's own. "none" names
    what is late and costs nothing; "refuse" counts nothing that is late. Days are counted as begun, each of 24 hours.
    """
    from gpututor.grading import classroom
    from gpututor.grading.deadlines import iso

    try:
        room = classroom.new(folder, roster_file, deadline, timezone, lessons=lessons, late=late, title=title)
    except OSError as error:
        raise click.ClickException(f"{folder} can't be written ({error.strerror or error})") from error
    if as_json:
        numbers = [one.number for one in room.exercises]
        told = {"folder": str(folder), "title": room.title, "learners": [one.id for one in room.learners]}
        click.echo(json.dumps(told | {"exercises": numbers, "due": iso(room.deadline)}, indent=1))
        return
    n, n_extended = len(room.learners), sum(one.is_extended for one in room.learners)
    extended = f", {n_extended} of them with an extension" if n_extended else ""
    n_exercises = len(room.exercises)
    learners = f"{n} learner{'' if n == 1 else 's'}{extended}"
    click.echo(f"{folder}: {learners}; {n_exercises} exercises; due {iso(room.deadline)}.")
    click.echo(f"Keep {folder / classroom.SEED} to yourself: hidden cases are drawn from it.")
