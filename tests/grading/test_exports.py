"""What goes to the school's system is read back by that system's rules."""

from __future__ import annotations

import csv
import io
import re

import pytest

from gpututor.grading import exports

TITLE = "How busy is the GPU"


def learner(learner_id="007", name="Müller, Zoë", points=7.5, **changed):
    exercise = {"number": "1.1", "points": points, "marks": 10, "override": None}
    told = {
        "id": learner_id,
        "name": name,
        "email": f"{learner_id}@x.example",
        "group": "A",
        "state": "graded",
        "points": points,
        "marks": 20,
        "handed_in_at": "2026-01-15T12:00:00+00:00",
        "is_self_reported_time": False,
        "late_days": 0,
        "kept_share": 1.0,
        "exercises": [exercise, exercise | {"number": "1.2", "points": 0.0}],
        "notes": [],
        "feedback": "feedback/0.html",
    }
    return told | changed


CLASS = [learner(), learner("7", '=HYPERLINK("http://x.example";"x")', 20.0), learner("ann_b", "O'Neil; -1+1", 0.0)]


def canvas_import(text):
    """What Canvas makes of a file: full marks, and points by SIS user id. After its gradebook_importer.rb."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    head = rows[0]
    assert len(head) > 3
    assert "Student" in head[0]
    assert "ID" in head[1]
    assert re.search(r"SIS\s+User\s+ID", head[2])
    assert re.search(r"SIS\s+Login\s+ID", head[3])
    n_about = 3 + 2  # name, id, section, and the two of the student information system
    assert "Section" in head[n_about - 1]
    assert len(head) == n_about + 1
    assert "Points Possible" in rows[1][0]
    students = [row for row in rows[2:] if "Points Possible" not in row[0]]
    return (
        head[n_about],
        rows[1][n_about],
        {row[2]: row[n_about] for row in students},
        {row[2]: row[0] for row in students},
    )


def test_canvas_finds_assignment_full_marks_and_everybodys_points():
    title, marks, points, _ = canvas_import(exports.canvas_csv(TITLE, CLASS))

    assert (title, marks) == (TITLE, "20")
    assert points == {"007": "7.5", "7": "20", "ann_b": "0"}


def test_canvas_takes_commas_for_the_separator():
    # it counts cells in the first three lines by either, and takes semicolons where they give more
    lines = exports.canvas_csv(TITLE, [learner(name="a;b;c;d;e;f;g"), *CLASS]).splitlines()[:3]

    assert {len(next(csv.reader([line]))) for line in lines} == {6}


def test_a_title_of_points_possible_is_no_second_line_of_marks():
    _, _, points, _ = canvas_import(exports.canvas_csv(TITLE, [learner(name="Ann")]))

    assert points == {"007": "7.5"}


def moodle_import(text, map_to):
    """What Moodle makes of a file when a column is mapped to the user. After its load_data.php."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    head = [cell.strip() for cell in rows[0]]
    assert len(set(head)) == len(head)
    who, grade, feedback = head.index(map_to), head.index(TITLE), head.index(f"Feedback: {TITLE}")
    read = {}
    for row in rows[1:]:
        assert len(row) > 1
        cells = [cell.strip() for cell in row]
        assert cells[who]
        read[cells[who]] = (float(cells[grade]), cells[feedback])
    return read


@pytest.mark.parametrize(("map_to", "mine"), [("ID number", "007"), ("Email address", "007@x.example")])
def test_moodle_finds_grades_with_feedback_by_either_column(map_to, mine):
    read = moodle_import(exports.moodle_csv(TITLE, CLASS), map_to)

    assert len(read) == 3
    assert read[mine] == (7.5, "1.1: 7.5 of 10 | 1.2: 0 of 10")


def test_moodle_hears_of_late_days_and_of_comments():
    exercise = CLASS[0]["exercises"][0] | {"override": {"points": 9.0, "comment": "well seen"}}
    one = learner(late_days=2, kept_share=0.8, exercises=[exercise])
    _, said = moodle_import(exports.moodle_csv(TITLE, [one]), "ID number")["007"]

    assert said == "1.1: 7.5 of 10 | 2 days late: 80 % count | 1.1: well seen"


def test_who_handed_in_nothing_has_no_points_and_is_told_so():
    one = learner(points=0.0, state="nothing handed in", handed_in_at=None)

    assert moodle_import(exports.moodle_csv(TITLE, [one]), "ID number") == {"007": (0.0, "Nothing handed in.")}


@pytest.mark.parametrize(
    "export", [exports.grades_csv, lambda c: exports.canvas_csv(TITLE, c), lambda c: exports.moodle_csv(TITLE, c)]
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula_whatever_the_separator(export, separator):
    for row in csv.reader(io.StringIO(export(CLASS), newline=""), delimiter=separator):
        assert not any(cell.lstrip(' "')[:1] in tuple("=+-@") for cell in row if cell.lstrip(' "'))


@pytest.mark.parametrize(
    "export", [exports.grades_csv, lambda c: exports.canvas_csv(TITLE, c), lambda c: exports.moodle_csv(TITLE, c)]
)
def test_ids_keep_their_zeros(export):
    assert '"007"' in export(CLASS)


def test_an_empty_class_is_an_empty_table():
    assert len(exports.grades_csv([]).splitlines()) == 1
