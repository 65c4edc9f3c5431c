"""`gpututor check`: an answer in a file or on the command line, judged as on the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from gpututor.cards import Machine
from gpututor.errors import GpututorError, NotJudged, RunNeeded
from gpututor.exercises.coded import Launched, noted
from gpututor.exercises.form import Case, Exercise, Judged, Points
from gpututor.exercises.keeping import Values, keep_case, keep_judged, kept_case, next_hint, standing
from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.lookup import machine_named
from gpututor.store import Store

MAX_CODE_BYTES = 2**18  # our choice: a solution has some 20 lines


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of a learner's code launched, priced on the exercise's machine; None where that can't be priced."""

    kernels: int | None
    waits: int
    copies: int
    step_ns: float | None
    busy_share: float | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer with what it did and what was said on it.

    `at_start` is what the code did as it began, and `hint` the number of the hint, where they were asked for.
    """

    one: Exercise
    judged: Judged
    calls: tuple[Call, ...]
    at_start: tuple[Call, ...]
    machine: str
    hint: int | None

    @property
    def earned(self) -> float:
        """Points earned, of the exercise's marks."""
        return round(self.one.marks * self.judged.earned_share, 2)


@click.command("check")
@click.argument("number", required=False)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--answer", help="The answer itself, for a number or a choice; a choice also by its place, from 1.")
@click.option("--hint", "with_hint", is_flag=True, help="Also print the hint that would help, or the next one.")
@click.option("--start", "with_start", is_flag=True, help="Also show what the code launched as it began.")
@click.option("--task", "with_task", is_flag=True, help="Print the task, and judge nothing.")
@click.option("--list", "as_list", is_flag=True, help="List the exercises, with what you have earned.")
@click.option("--learner", default="", help="Whose progress on this machine; without it, that of nobody's name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def check_command(
    number: str | None,
    file: Path | None,
    answer: str | None,
    with_hint: bool,
    with_start: bool,
    with_task: bool,
    as_list: bool,
    learner: str,
    as_json: bool,
) -> int:
    """Judge an answer to exercise NUMBER, such as 3.2, in FILE; status 0 for full marks, 1 for less.

    Judge, case and progress file are those of the lesson's page. Nothing is sent anywhere.

    \b
    The JSON object has: exercise, title, kind, state ("right", "partial", "wrong",
    "unanswered"), earned, marks, text; checks: [{words, holds, share}]; theirs, ours
    (points of the picture, null where they would give the answer away); machine and
    calls: [{kernels, waits, copies, step_ns, busy_share}], what code launched there;
    calls_at_start: the same of the code as it began, empty without --start;
    hint: {number, of, text} or null. With --list: a list of {exercise, title, kind,
    marks, state, earned, at, needs_lesson}.
    """
    store = Store(learner)
    if store.trouble:
        click.echo(store.trouble, err=True)
    if as_list:
        _show_list(store, as_json)
        return 0
    if number is None:
        raise click.UsageError("name an exercise, such as 3.2, or ask for the --list")
    one = exercise(number)
    case = case_for(store, one)
    if with_task:
        _show_task(one, case, as_json)
        return 0
    checked = check(store, one, answer_from(one, case, file, answer), case, with_hint=with_hint, with_start=with_start)
    if as_json:
        click.echo(json.dumps(as_data(checked), indent=2))
    else:
        from gpututor.cli.check_tables import print_checked

        print_checked(checked)
    return 0 if checked.judged.earned_share >= 1 else 1


def case_for(store: Store, one: Exercise) -> Case:
    """The case with which the page last showed the exercise; an empty one where the judge needs none.

    Raises:
        RunNeeded: the exercise asks about the learner's own run, and the page has kept none.
    """
    case = kept_case(store, one)
    if case is None and one.needs_run:
        raise RunNeeded(
            f"exercise {one.number} asks about your own run, and none is kept here; open lesson {one.lesson} with "
            "gpututor lessons, let its run end, and check again"
        )
    return case or {}


def answer_from(one: Exercise, case: Case, file: Path | None, answer: str | None) -> str:
    """The answer as text, from the file or the command line.

    Raises:
        click.ClickException: both or neither are given, or it can't be an answer to this kind of exercise.
    """
    if (file is None) == (answer is None):
        how = "a file" if one.kind == "code" else 'a file, or --answer "…"'
        raise click.UsageError(f"give one answer to exercise {one.number}: {how}")
    if file is None:
        if one.kind == "code":
            raise click.UsageError(f"exercise {one.number} asks for code; put it into a file")
        text = answer or ""
    else:
        text = read_text(file)
    return _chosen(one, case, text) if one.options else text


def read_text(file: Path) -> str:
    """The text of an answer's file, with plain line ends.

    Raises:
        click.ClickException: it is too large, not UTF-8, or can't be read.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_CODE_BYTES + 1)
        if len(raw) > MAX_CODE_BYTES:
            raise click.ClickException(f"{file} is larger than {MAX_CODE_BYTES // 1024} KiB; no answer is")
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise click.ClickException(f"{file} can't be read ({error.strerror or error})") from error


def options_of(one: Exercise, case: Case) -> Sequence[str]:
    """What can be chosen: the case's own options, else the exercise's."""
    return case.get("options") or one.options


def _chosen(one: Exercise, case: Case, text: str) -> str:
    options, wanted = options_of(one, case), text.strip()
    for place, option in enumerate(options, 1):
        if wanted.casefold() in (option.casefold(), str(place)):
            return option
    listed = "; ".join(f"{place}: {option}" for place, option in enumerate(options, 1))
    raise click.UsageError(f"exercise {one.number} is a choice of {listed}")


def check(
    store: Store, one: Exercise, answer: str, case: Case, *, with_hint: bool = False, with_start: bool = False
) -> Checked:
    """Judge an answer, and keep it and the verdict in the progress file as the page does.

    Raises:
        NotJudged: the judge failed, as it may where the kept case is of another version of gpututor.
    """
    machine = machine_named(str(case.get("machine") or one.machine))
    judged, calls = _judged(one, one.check, answer, case, machine)
    keep_case(store, one, case)
    keep_judged(store, one, answer, case, judged)
    at_start = _judged(one, one.judge, one.starter, case, machine)[1] if with_start and one.starter else ()
    hint = next_hint(store, one, judged) if with_hint and judged.state != "right" else None
    return Checked(one, judged, calls, at_start, machine.name, hint)


def _judged(
    one: Exercise, judge: Callable[[Any, Case], Judged], answer: str, case: Case, machine: Machine
) -> tuple[Judged, tuple[Call, ...]]:
    """What a judge says, and what the code launched meanwhile."""
    with _busy(one), noted() as launched:
        try:
            judged = judge(answer, case)
        except Exception as error:
            raise NotJudged(
                f"exercise {one.number} could not be judged ({type(error).__name__}: {error}); open lesson "
                f"{one.lesson}, let its run end once more, and check again"
            ) from error
    return judged, tuple(_call(each, machine) for each in launched)


def _busy(one: Exercise) -> AbstractContextManager[object]:
    """A word on stderr while code runs, where that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    return console.status("Your code runs …") if console.is_terminal and one.kind == "code" else nullcontext()


def _call(launched: Launched, machine: Machine) -> Call:
    counts = {"waits": launched.n_waits, "copies": launched.n_copies}
    try:
        played = launched.on(machine)
        ledger = played.ledger
        return Call(ledger.n_kernels, **counts, step_ns=played.step_ns, busy_share=ledger.gpu_util_share)
    except (GpututorError, ArithmeticError, LookupError, TypeError, ValueError):  # a tape that somebody made up
        return Call(None, **counts, step_ns=None, busy_share=None)


def as_data(checked: Checked) -> dict[str, Any]:
    """An answer's verdict as plain data for JSON; names carry the units."""
    one, judged = checked.one, checked.judged
    open_to_see = one.kind == "code" or judged.state == "right"
    hint = checked.hint and {"number": checked.hint, "of": len(one.hints), "text": one.hints[checked.hint - 1]}
    return {
        "exercise": one.number,
        "title": one.title,
        "kind": one.kind,
        "state": judged.state,
        "earned": checked.earned,
        "marks": one.marks,
        "text": judged.text,
        "checks": [{"words": each.words, "holds": each.holds, "share": each.share} for each in judged.checks],
        "theirs": _points(judged.theirs),
        "ours": _points(judged.ours) if open_to_see else None,
        "machine": checked.machine if checked.calls else None,
        "calls": [asdict(each) for each in checked.calls],
        "calls_at_start": [asdict(each) for each in checked.at_start],
        "hint": hint or None,
    }


def _points(points: Points) -> list[list[float | None]]:
    return [[x, y if y is not None and math.isfinite(y) else None] for x, y in points]


def listed(store: Store) -> list[dict[str, Any]]:
    """All exercises with what the progress file says of them, as plain data."""
    still = store.still()
    return [_listed(still, one) for one in EXERCISES]


def _listed(store: Values, one: Exercise) -> dict[str, Any]:
    now = standing(store, one)
    needed = one.needs_run and kept_case(store, one) is None
    return {
        "exercise": one.number,
        "title": one.title,
        "kind": one.kind,
        "marks": one.marks,
        "state": now.state,
        "earned": now.earned,
        "at": now.given.at if now.given else None,
        "needs_lesson": one.lesson if needed else None,
    }


def _show_list(store: Store, as_json: bool) -> None:
    rows = listed(store)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    from gpututor.cli.check_tables import print_list

    print_list(rows)


def _show_task(one: Exercise, case: Case, as_json: bool) -> None:
    options = list(options_of(one, case))
    if as_json:
        told: Mapping[str, Any] = {"exercise": one.number, "title": one.title, "kind": one.kind}
        more = {"task": one.asked(case), "options": options, "unit": one.unit, "starter": one.starter}
        click.echo(json.dumps({**told, **more, "marks": one.marks}, indent=2))
        return
    from gpututor.cli.check_tables import print_task

    print_task(one, one.asked(case), options)
