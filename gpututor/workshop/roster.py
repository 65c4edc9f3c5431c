"""Who may come to a workshop: the ids and names of a class's roster, which may be the one that is graded by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpututor.grading.roster import name_of, rows_of, same
from gpututor.store import ANYBODY

INSTRUCTOR = "instructor"  # the id under which the instructor's own progress is kept


@dataclass(frozen=True, slots=True)
class Learner:
    """Somebody on the roster."""

    id: str
    name: str


def read(path: Path) -> tuple[Learner, ...]:
    """The learners in a roster, in its order.

    Raises:
        RosterDamaged: it can't be read, lacks a column, has an id twice or none, or one that we keep for ourselves.
    """
    rows = rows_of(path)
    for row in rows:
        if same(row["id"]) in (INSTRUCTOR, ANYBODY):
            raise row.refuse(f'the id "{row["id"]}" is one that gpututor keeps for itself; choose another')
    return tuple(Learner(row["id"], name_of(row)) for row in rows)
