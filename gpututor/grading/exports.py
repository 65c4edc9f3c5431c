"""The tables that go elsewhere: all of it, Canvas's gradebook, Moodle's grade import.

No cell is a formula. Ids go as they are: the roster takes none that begins like a formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.grading import sheets

Learners = Sequence[Mapping[str, Any]]

CANVAS_HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
"""The columns before the assignments, in this order. "ID" is Canvas's own number, which we don't know: it may be empty,
then the two after it say who it is. Source: Canvas's importer, lib/gradebook_importer.rb of instructure/canvas-lms
(`row_has_student_headers?`, `update_column_count`, `process_student`)."""
POINTS_POSSIBLE = "    Points Possible"
"""What begins the second line, with the full marks under the assignment; the blanks are as Canvas exports it. Source:
the same, `check_for_non_student_row`."""

MOODLE_ID, MOODLE_EMAIL = "ID number", "Email address"
"""Either can be mapped to the learner. Source: Moodle's importer, grade/import/csv/classes/load_data.php of
moodle/moodle: userid, useridnumber, useremail and username identify, and a feedback column belongs to a grade column.
Its manual (docs.moodle.org/en/Grade_import) asks for both together, since feedback alone removes the grades."""


def grades_csv(learners: Learners) -> str:
    """Everything on a learner in one line."""
    numbers = [each["number"] for each in learners[0]["exercises"]] if learners else []
    head = ["id", "name", "email", "group", "state", "points", "marks", "handed in (UTC)", "time is self-reported"]
    head += ["days late", "share kept", *numbers, "by hand", "notes", "feedback"]
    rows: list[Sequence[object]] = [head]
    for one in learners:
        by_hand = ", ".join(each["number"] for each in one["exercises"] if each["override"])
        told: list[object] = [one[key] for key in ("id", "name", "email", "group", "state")]
        told += [number(one["points"]), number(one["marks"]), one["handed_in_at"] or ""]
        told += ["yes" if one["is_self_reported_time"] else "no", one["late_days"], number(one["kept_share"])]
        told += [number(each["points"]) for each in one["exercises"]]
        rows.append([*told, by_hand, " | ".join(one["notes"]), one["feedback"]])
    return sheets.written(rows)


def canvas_csv(title: str, learners: Learners) -> str:
    """For Canvas: Gradebook, Import. Canvas finds learners by SIS user id, our id, or by login id, our email."""
    marks = learners[0]["marks"] if learners else 0
    rows = [[*CANVAS_HEAD, title]]
    rows += [[one["name"], "", one["id"], one["email"], one["group"], number(one["points"])] for one in learners]
    text = sheets.written(rows)
    head, _, rest = text.partition("\r\n")
    blanks = ',""' * (len(CANVAS_HEAD) - 1)
    return f'{head}\r\n"{POINTS_POSSIBLE}"{blanks},"{number(marks)}"\r\n{rest}'


def moodle_csv(title: str, learners: Learners) -> str:
    """For Moodle: Grades, Import, CSV; map "ID number" to useridnumber, or "Email address" to useremail."""
    rows: list[Sequence[object]] = [[MOODLE_ID, MOODLE_EMAIL, "Full name", title, f"Feedback: {title}"]]
    rows += [[one["id"], one["email"], one["name"], number(one["points"]), _in_short(one)] for one in learners]
    return sheets.written(rows)


def _in_short(one: Mapping[str, Any]) -> str:
    """A learner's points in one line, with the instructor's comments."""
    if one["state"] != "graded" and not any(each["override"] for each in one["exercises"]):
        return f"{one['state'].capitalize()}."
    parts = [f"{each['number']}: {number(each['points'])} of {each['marks']}" for each in one["exercises"]]
    late = [f"{one['late_days']} days late: {number(100 * one['kept_share'])} % count"] if one["late_days"] else []
    comments = [
        f"{each['number']}: {each['override']['comment']}"
        for each in one["exercises"]
        if each["override"] and each["override"]["comment"]
    ]
    return " | ".join(parts + late + comments)


def number(value: float) -> str:
    """A number with a point, without zeros at its end or an exponent.

    >>> number(7.50), number(10), number(0.0)
    ('7.5', '10', '0')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")
