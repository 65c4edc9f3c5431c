"""A small class in a folder, and submissions for it."""

from __future__ import annotations

from datetime import datetime, timezone

from gpututor.exercises.submission import Answer, Submission, to_text
from gpututor.grading import classroom

NOON = "2026-01-15T12:00:00+00:00"
NOW = datetime(2026, 2, 1, tzinfo=timezone.utc)
ROSTER = "id,name,email,group,extension\n007,Zoë,z@x.example,A,\nann_b,Ann,,B,48\n7,Seven,,B,\n"


def room(folder, roster=ROSTER, **changed):
    """A class due at the end of 2026-01-16 in Berlin, with lessons 1 and 2."""
    (folder / "given.csv").write_text(roster, encoding="utf-8")
    asked = {
        "deadline": "2026-01-16 23:59",
        "timezone": "Europe/Berlin",
        "lessons": "1-2",
        "late": "10 % a day, 3 days",
    }
    made = asked | changed
    classroom.new(folder / "class", folder / "given.csv", made.pop("deadline"), made.pop("timezone"), **made)
    return classroom.read(folder / "class")


def hand_in(folder, name, learner_id="me", at=NOON, answers=None, answered_at=None):
    """Put a submission into folder/submissions under this name."""
    path = folder / "submissions" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {number: Answer(text, {}, answered_at or at) for number, text in (answers or {"1.2": "x = 1"}).items()}
    path.write_text(to_text(Submission(learner_id, "", given, at)), encoding="ascii")
    return path
