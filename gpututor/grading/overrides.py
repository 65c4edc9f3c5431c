"""Points given by hand, in a table of the class's folder that people may edit too; they hold whatever a judge says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpututor.errors import ExerciseNotKnown, OverrideRefused
from gpututor.exercises.registry import exercise
from gpututor.grading import sheets
from gpututor.grading.classroom import OVERRIDES, Classroom
from gpututor.grading.roster import same
from gpututor.results import write_at_once

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id number",),
    "exercise": (),
    "points": (),
    "comment": ("feedback",),
    "by": (),
    "at": (),
}


@dataclass(frozen=True, slots=True)
class Override:
    """The points that hold for one exercise of one learner, None where only a comment was given; and who says so."""

    learner_id: str
    number: str
    points: float | None
    comment: str
    by: str = ""
    at: str = ""


def read(room: Classroom) -> dict[tuple[str, str], Override]:
    """All of them by id and exercise; a later line takes the place of an earlier one.

    Raises:
        OverrideRefused: a line is about nobody, about no exercise of the class, or gives no possible points.
        RosterDamaged: the table can't be read.
    """
    path = room.folder / OVERRIDES
    if not path.exists():
        return {}
    found: dict[tuple[str, str], Override] = {}
    for row in sheets.read(path, COLUMNS, ("id", "exercise", "points")):
        try:
            one = checked(room, row["id"], row["exercise"], row["points"], row["comment"], row["by"], row["at"])
        except OverrideRefused as error:
            raise OverrideRefused(f"{row.file}, line {row.line}: {error}") from error
        found[one.learner_id, one.number] = one
    return found


def checked(
    room: Classroom, learner_id: str, number: str, points: str, comment: str, by: str = "", at: str = ""
) -> Override:
    """An override that fits the class.

    Raises:
        OverrideRefused: as `read`.
    """
    learner = room.by_id.get(same(learner_id))
    if learner is None:
        raise OverrideRefused(f'nobody in the class has the id "{learner_id[:40]}"; see roster.csv')
    try:
        one = exercise(number)
    except ExerciseNotKnown as error:
        raise OverrideRefused(str(error)) from error
    if one.lesson not in room.lessons:
        raise OverrideRefused(f"exercise {one.number} is of lesson {one.lesson}, which the class doesn't have")
    value: float | None = None
    if points:
        try:
            value = float(points)
        except ValueError as error:
            raise OverrideRefused(f'"{points[:20]}" are no points; write a number such as 7.5') from error
        if not math.isfinite(value) or not 0 <= value <= one.marks:
            raise OverrideRefused(f"exercise {one.number} gives 0 to {one.marks} points, not {points[:20]}")
    elif not comment:
        raise OverrideRefused("neither points nor a comment are given; give one of them")
    return Override(learner.id, one.number, value, " ".join(comment.split())[: sheets.MAX_CELL], by, at)


def keep(room: Classroom, one: Override) -> None:
    """Put it into the class's table, in the place of an earlier one.

    Raises:
        OverrideRefused, RosterDamaged: the table that is there can't be read.
        OSError: it can't be written.
    """
    kept = read(room)
    kept[one.learner_id, one.number] = one
    rows: list[tuple[object, ...]] = [tuple(COLUMNS)]
    for each in sorted(kept.values(), key=lambda each: (each.learner_id, _place(each.number))):
        points = "" if each.points is None else f"{each.points:g}"
        rows.append((each.learner_id, each.number, points, each.comment, each.by, each.at))
    write_at_once(Path(room.folder) / OVERRIDES, sheets.written(rows))


def _place(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))
