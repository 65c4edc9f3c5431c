"""A class of made-up learners: right, wrong, in part, untouched, damaged and hostile, no two of a kind quite alike."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpututor.exercises.form import Exercise
from gpututor.exercises.registry import EXERCISES
from gpututor.exercises.submission import Answer, Submission, content_hash, to_text
from tests.exercises.answers import Answers

DEADLINE, TIMEZONE = "2026-01-16 23:59", "Europe/Berlin"
IN_TIME, LATE = "2026-01-15T12:00:00+00:00", "2026-01-18T12:00:00+00:00"  # late: two days begun
KINDS = (
    "right",
    "wrong",
    "partial",
    "untouched",
    "damaged",
    "exits",
    "endless",
    "edited",
    "other's id",
    "markup",
    "formula",
    "late",
)
SCRIPT = "<script>alert('x')</script>"
FORMULA = '=HYPERLINK("http://x.example";"x")'
EXITS = "import os\nos._exit(0)\n"
ENDLESS = "def {name}(*x):\n    while True:\n        pass\n"


@dataclass(frozen=True)
class Made:
    """A learner, what kind, and the points that come of it, None where nothing is scored."""

    id: str
    name: str
    kind: str
    points: float | None


def known(one: Exercise) -> Answers:
    """The solution and typical wrong answers of an exercise."""
    return importlib.import_module(f"tests.exercises.test_ex{one.lesson:02d}").ANSWERS[one.number]


def make(folder: Path, n: int, lessons: Sequence[int] = range(1, 11)) -> list[Made]:
    """Write `n` submissions into `folder`/submissions, and roster.csv beside it."""
    exercises = [one for one in EXERCISES if one.lesson in lessons]
    (folder / "submissions").mkdir(parents=True)
    made = [_learner(folder, k, KINDS[k % len(KINDS)], exercises) for k in range(n)]
    with (folder / "roster.csv").open("w", newline="", encoding="utf-8-sig") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["ID number", "Full name", "Email", "Group"])
        rows.writerows(
            [one.id, one.name, f"{one.id.casefold()}@school.example", "AB"[k % 2]] for k, one in enumerate(made)
        )
    return made


def _learner(folder: Path, k: int, kind: str, exercises: Sequence[Exercise]) -> Made:
    learner_id = f"{k:04d}"
    names = {"markup": f"{SCRIPT} {k}", "formula": f"{FORMULA} {k}"}
    name = names.get(kind, f"Müller, Änne {k}" if k % 3 else f"O'Neil “{k}”")
    answers, points = _answers(k, kind, exercises)
    at = LATE if kind == "late" else IN_TIME
    claim = f"{k - 1:04d}" if kind == "other's id" else learner_id
    one = Submission(claim, name, {number: replace(each, at=at) for number, each in answers.items()}, at, {})
    text = to_text(one)
    if kind == "damaged":
        text = text[: len(text) // 2]
    if kind == "edited":
        text = text.replace(f'"id": "{learner_id}"', f'"id": "{learner_id} "')  # and the hash is as it was
    (folder / "submissions" / f"{learner_id}.json").write_text(text, encoding="ascii")
    return Made(learner_id, name, kind, None if kind in ("damaged", "edited", "other's id") else points)


def _answers(k: int, kind: str, exercises: Sequence[Exercise]) -> tuple[dict[str, Answer], float]:
    """A learner's answers, and the points that they earn."""
    found, points = {}, 0.0
    for place, one in enumerate(exercises):
        answer, share = _answer(k, kind, place, one)
        found[one.number] = Answer(answer, known(one).case, IN_TIME)
        points += one.marks * share
    return found, round(points, 2)


def _answer(k: int, kind: str, place: int, one: Exercise) -> tuple[str, float]:
    """One answer, and its share of the marks."""
    all_known = known(one)
    right = str(all_known.right_for(all_known.case))
    wrong = all_known.wrong[(k // len(KINDS) + place) % len(all_known.wrong)]
    if kind == "untouched":
        return one.starter or "", 0.0
    if kind in ("exits", "endless") and one.number == "1.2":
        return (EXITS if kind == "exits" else ENDLESS.format(name="sm_fill")) + f"# {k}\n", 0.0
    if kind == "markup" and place % 2:
        return (f"raise ValueError({SCRIPT + str(k)!r})\n" if one.kind == "code" else f"{SCRIPT}{k}"), 0.0
    if kind == "formula" and place % 2 == 0:
        return (f"def f(:\n    {FORMULA}{k}" if one.kind == "code" else f"{FORMULA}{k}"), 0.0
    if kind == "wrong" or (kind == "partial" and place % 2):
        return _varied(str(wrong.answer), k, one), wrong.earned
    return _varied(right, k, one), 1.0


def _varied(answer: str, k: int, one: Exercise) -> str:
    """The same answer, not in the same letters."""
    return f"{answer}\n# learner {k}\n" if one.kind == "code" else answer + " " * (k % 5)


def sealed(changed: dict[str, object]) -> str:
    """A file with a hash that fits, as somebody makes it who knows how."""
    return json.dumps(changed | {"hash": content_hash(changed)})
