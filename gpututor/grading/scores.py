"""Verdicts -> points: what each learner earned, less what coming late costs, with points given by hand in their place.

Points given by hand stand as they are. What is late reduces the sum of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.exercises.form import Exercise
from gpututor.grading.classroom import Classroom
from gpututor.grading.deadlines import iso, late_days
from gpututor.grading.handed_in import HandedIn, Note
from gpututor.grading.overrides import Override
from gpututor.grading.roster import Learner

Verdicts = Mapping[tuple[str, str], Mapping[str, Any]]
"""By a learner's id and an exercise's number."""

NOTHING: Mapping[str, Any] = {
    "state": "unanswered",
    "share": 0.0,
    "text": "Not answered.",
    "hint": None,
    "checks": [],
    "hidden": [0, 0],
    "case": "none",
    "trouble": "",
}


def scored(
    room: Classroom,
    handed: Mapping[str, HandedIn],
    notes: Sequence[Note],
    verdicts: Verdicts,
    overrides: Mapping[tuple[str, str], Override],
) -> list[dict[str, Any]]:
    """All learners in the order of their ids, each with points, time and exercises, as plain data."""
    return [
        _learner(
            room, one, handed.get(one.id), [note for note in notes if note.learner_id == one.id], verdicts, overrides
        )
        for one in sorted(room.learners, key=lambda one: one.id)
    ]


def _learner(
    room: Classroom,
    learner: Learner,
    handed: HandedIn | None,
    notes: Sequence[Note],
    verdicts: Verdicts,
    overrides: Mapping[tuple[str, str], Override],
) -> dict[str, Any]:
    exercises = [
        _exercise(one, verdicts.get((learner.id, one.number), NOTHING), overrides.get((learner.id, one.number)))
        for one in room.exercises
    ]
    days = late_days(handed.at, learner.due) if handed else 0
    kept_share = room.late.kept_share(days)
    by_hand = sum(each["points"] for each in exercises if _is_by_hand(each))
    judged = sum(each["points"] for each in exercises if not _is_by_hand(each))
    return {
        "id": learner.id,
        "name": learner.name,
        "email": learner.email,
        "group": learner.group,
        "state": _state(handed, notes),
        "points": round(judged * kept_share + by_hand, 2),
        "marks": sum(one.marks for one in room.exercises),
        "due": iso(learner.due),
        "is_extended": learner.is_extended,
        "file": handed.file if handed else None,
        "handed_in_at": iso(handed.at) if handed else None,
        "is_self_reported_time": bool(handed and not handed.is_received),
        "late_days": days,
        "kept_share": kept_share,
        "notes": [f"{note.file}: {note.what}" for note in notes],
        "exercises": exercises,
        "feedback": f"feedback/{room.secret(f'feedback {learner.id}')[:32]}.html",
    }


def _state(handed: HandedIn | None, notes: Sequence[Note]) -> str:
    if handed is not None:
        return "graded"
    return "not scored" if any(note.what.startswith("not scored") for note in notes) else "nothing handed in"


def _is_by_hand(each: Mapping[str, Any]) -> bool:
    return bool(each["override"]) and each["override"]["points"] is not None


def _exercise(one: Exercise, verdict: Mapping[str, Any], override: Override | None) -> dict[str, Any]:
    judged = round(one.marks * verdict["share"], 2)
    hint = verdict["hint"]
    told = {
        "number": one.number,
        "marks": one.marks,
        "points": judged if override is None or override.points is None else round(override.points, 2),
        "judged_points": judged,
        "hint_text": one.hints[hint - 1] if hint and hint <= len(one.hints) else None,
        "override": None,
    }
    if override is not None:
        by_hand = {"points": override.points, "comment": override.comment, "by": override.by, "at": override.at}
        told["override"] = by_hand
    return told | {key: value for key, value in verdict.items() if key != "share"}
