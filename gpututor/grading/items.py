"""What is to be judged: an answer, the case that it answers, and hidden cases drawn from the class's secret seed.

An item is named by what it holds, so an answer that two learners give is judged once, and one judged yesterday is not
judged again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpututor
from gpututor.errors import GradingNotPossible
from gpututor.exercises.form import Exercise
from gpututor.grading.classroom import Classroom
from gpututor.grading.handed_in import HandedIn
from gpututor.paths import data_dir


@dataclass(frozen=True, slots=True)
class Item:
    """One answer to judge, as plain data that any process or machine can take."""

    key: str
    number: str
    answer: str
    case: Mapping[str, Any]
    hidden: tuple[Mapping[str, Any], ...]

    def as_data(self) -> dict[str, Any]:
        """For JSON and for other machines."""
        told = {"key": self.key, "number": self.number, "answer": self.answer}
        return told | {"case": dict(self.case), "hidden": [dict(case) for case in self.hidden]}


def items_of(handed: HandedIn, room: Classroom, isolation: str) -> list[Item]:
    """The learner's answers to the class's exercises, those left out that are as they began."""
    found = []
    for one in room.exercises:
        given = handed.content.answers.get(one.number)
        if given is not None and not one.is_untouched(given.answer):
            case = given.case if one.needs_run else {}  # a judge that does without a case gets none that is made up
            found.append(item(one, given.answer, case, room, isolation))
    return found


def item(one: Exercise, answer: str, case: Mapping[str, Any], room: Classroom, isolation: str) -> Item:
    """One answer with its hidden cases and its name."""
    n_hidden = room.n_hidden if one.hidden else 0
    told = {
        "exercise": one.number,
        "answer": answer,
        "case": case,
        "hidden": [room.secret(f"hidden {one.number}"), n_hidden] if n_hidden else None,
        "grader": version(),
        "isolation": isolation,
    }
    plain = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Item(hashlib.sha256(plain.encode("ascii")).hexdigest(), one.number, answer, case, hidden_cases(one, room))


def hidden_cases(one: Exercise, room: Classroom) -> tuple[Mapping[str, Any], ...]:
    """The hidden cases of an exercise: the same for the whole class, and on every machine.

    Python promises that a `random.Random` seeded with a text draws the same everywhere.

    Raises:
        GradingNotPossible: the exercise draws what is no plain data.
    """
    if one.hidden is None:
        return ()
    drawn = [one.hidden(random.Random(room.secret(f"hidden {one.number} {k}"))) for k in range(room.n_hidden)]
    try:
        return tuple(json.loads(json.dumps(case, allow_nan=False)) for case in drawn)
    except (TypeError, ValueError) as error:
        raise GradingNotPossible(
            f"exercise {one.number} draws a hidden case that is no plain data ({error})"
        ) from error


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Which grader judges: our version, and a digest of all our code and tables, on which a verdict may hang."""
    package = Path(gpututor.__file__).parent
    code = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    # A wheel carries the lessons and the tables inside, where a clone has them beside the package.
    files = {name: path for name, path in code.items() if not name.startswith(("_lessons/", "_data/"))}
    files |= {path.name: path for path in data_dir().glob("*.toml")}
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return f"gpututor {gpututor.__version__}, {digest.hexdigest()[:16]}"
