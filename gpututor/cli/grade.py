"""`gpututor grade`: a folder of submissions graded in bulk; and `gpututor grade override`, points given by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class _Grade(click.Group):
    """A group whose `run` need not be named: what is no command's name is the folder of submissions."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front where no command is named."""
        return super().parse_args(ctx, args if args[:1] and args[0] in self.commands else ["run", *args])


@click.group("grade", cls=_Grade)
def grade_command() -> None:
    """Grade a class's submissions, or give points by hand."""


@grade_command.command("run")
@click.argument("submissions", type=FOLDER)
@click.option("--class", "class_folder", required=True, type=FOLDER, help="The class's folder, of gpututor class new.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Where grades go.")
@click.option("-j", "n_processes", type=click.IntRange(1, 1024), help="Judging processes; without it, one a core.")
@click.option(
    "--isolation",
    type=click.Choice(["bubblewrap", "limits"]),
    default="bubblewrap",
    show_default=True,
    help="How learners' code is shut in: a sandbox, or with limits on time and memory alone.",
)
@click.option("--dask", "scheduler", help="Judge on the dask cluster of this scheduler, such as tcp://10.0.0.1:8786.")
@click.option("--again", multiple=True, metavar="ID", help="Judge this learner's answers anew; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print results.json instead of a summary.")
def run_command(
    submissions: Path,
    class_folder: Path,
    out: Path,
    n_processes: int | None,
    isolation: str,
    scheduler: str | None,
    again: tuple[str, ...],
    as_json: bool,
) -> None:
    """Grade the folder SUBMISSIONS and write grades, feedback and exports to --out.

    Whose a file is says manifest.csv there (file, id, received_at), a folder ID or ID_…, or the file's name, ID.json or
    ID_….json; else the file itself. What is judged is kept: after a stop, run the same command to go on. Points given
    by hand (gpututor grade override --help) and comments hold whatever is graded again.

    \b
    In --out: class.html, feedback/…html, grades.csv, canvas.csv, moodle.csv,
    results.json; run.json, what this run took.
    results.json has: class, grader, isolation, warnings; summary: {exercises:
    [{number, states, mean_points, mistakes: [{n, text, hint}]}], late, incidents,
    overrides, …}; files: [{file, learner_id, what}]; similar: [{number, ids, share,
    lines}]; learners: [{id, name, points, marks, late_days, kept_share, exercises:
    [{number, state, points, text, checks, hidden: [how many, held], case,
    override}], feedback}]. Times are UTC; shares are between 0 and 1.
    """
    from gpututor.cli.grade_tables import print_results

    asked = {"isolation": isolation, "again": again}
    results = _graded(submissions, class_folder, out, n_processes, scheduler, asked)
    if as_json:
        click.echo(json.dumps(results, indent=1, sort_keys=True))
    else:
        print_results(results, out)


def _graded(
    submissions: Path,
    class_folder: Path,
    out: Path,
    n_processes: int | None,
    scheduler: str | None,
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """Grade while a bar shows how far it is.

    Raises:
        click.Abort: Ctrl-C.
    """
    from gpututor.grading import classroom, pool
    from gpututor.grading import grade as grading

    room = classroom.read(class_folder)
    n = None if scheduler else n_processes or os.cpu_count() or 1
    judges = pool.cluster(scheduler) if scheduler else pool.here(n or 1)
    try:
        with _progress() as progress:
            return grading.grade(submissions, room, out, judges, n_processes=n, progress=progress, **asked)
    except KeyboardInterrupt:
        click.echo(f"Stopped. What is judged is kept in {out}; run the same command again to go on.", err=True)
        raise click.Abort from None
    except OSError as error:
        raise click.ClickException(f"{out} can't be written ({error.strerror or error})") from error


@contextmanager
def _progress() -> Iterator[Any]:
    """A bar on stderr with rate and the time that is left, where that is a terminal; else nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("Judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=60) as bar:
        task = bar.add_task("judging", total=None, rate="")

        def progress(n_done: int, n_all: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, completed=n_done, total=n_all, rate=f"{speed:.2g} answers/s" if speed else "")

        yield progress


@grade_command.command("override")
@click.argument("learner_id", metavar="ID")
@click.argument("number", metavar="EXERCISE")
@click.option("--class", "class_folder", required=True, type=FOLDER, help="The class's folder.")
@click.option("--points", default="", help="What the exercise earns from now on, whatever is judged.")
@click.option("--comment", default="", help="A word to the learner, with or without points.")
@click.option("--by", default="", help="Who says so.")
def override_command(learner_id: str, number: str, class_folder: Path, points: str, comment: str, by: str) -> None:
    """Give learner ID points for EXERCISE by hand, or a comment; it stands in overrides.csv of the class's folder."""
    from gpututor.grading import classroom, overrides
    from gpututor.grading.deadlines import iso
    from gpututor.results import now_utc

    room = classroom.read(class_folder)
    one = overrides.checked(room, learner_id, number, points, comment, by, iso(now_utc()))
    try:
        overrides.keep(room, one)
    except OSError as error:
        raise click.ClickException(f"{class_folder} can't be written ({error.strerror or error})") from error
    what = "a comment" if one.points is None else f"{one.points:g} points"
    click.echo(
        f"{what} for {one.learner_id}, exercise {one.number}; run gpututor grade again to take it into the grades."
    )
