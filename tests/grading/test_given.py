"""A learner's grades as their certificate reads them back from the file that grading writes."""

from __future__ import annotations

import json

import pytest

from gpututor.errors import GradesRefused
from gpututor.grading import grade
from gpututor.grading.given import graded
from gpututor.grading.scores import NOTHING
from tests.grading.rooms import NOW, hand_in, room


def all_right(bundles, done):
    """A judge who finds everything right."""
    for bundle in bundles:
        for item in bundle["items"]:
            done(item["key"], {**NOTHING, "state": "right", "share": 1.0, "text": "Right."})
    return 0


@pytest.fixture
def grades(tmp_path):
    """results.json of a class in which Zoë handed in one answer, a day late, and Ann nothing."""
    made = room(tmp_path)
    hand_in(tmp_path, "007.json", "007", at="2026-01-17T12:00:00+00:00")
    grade.grade(tmp_path / "submissions", made, tmp_path / "out", all_right, isolation="limits", now=lambda: NOW)
    return tmp_path / "out" / grade.RESULTS


def test_points_are_those_of_the_file_lateness_taken_off(grades):
    found = graded(grades, "007")

    assert (found.points, found.marks) == (9.0, 40.0)
    assert found.by_exercise["1.2"] == (10.0, 10.0)
    assert found.handed_in_at == "2026-01-17T12:00:00+00:00"


def test_ids_are_compared_as_the_class_does(grades):
    assert graded(grades, " 007 ").learner_name == "Zoë"


def test_who_handed_in_nothing_has_no_time(grades):
    assert (graded(grades, "ann_b").points, graded(grades, "ann_b").handed_in_at) == (0.0, None)


def test_who_is_not_in_the_class_is_told_so(grades):
    with pytest.raises(GradesRefused, match='has the id "bob"'):
        graded(grades, "bob")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[]", "holds no grades", id="no object"),
        pytest.param("{", "holds no grades", id="no JSON"),
        pytest.param('{"format": "other"}', "holds no grades", id="another file"),
        pytest.param('{"format": "gpututor-grades", "version": 9}', "is of version 9", id="another version"),
        pytest.param('{"format": "gpututor-grades", "version": 1}', "is damaged", id="no learners"),
        pytest.param('{"format": "gpututor-grades", "version": 1, "learners": [7]}', "is damaged", id="odd learner"),
    ],
)
def test_what_is_no_file_of_grades_is_refused(tmp_path, text, why):
    path = tmp_path / "results.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(GradesRefused, match=why):
        graded(path, "007")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(GradesRefused, match="can't be read"):
        graded(tmp_path / "none.json", "007")


@pytest.mark.parametrize("points", [float("nan"), float("inf"), "many", None])
def test_points_that_are_no_number_are_damage(grades, points):
    told = json.loads(grades.read_text("utf-8"))
    next(one for one in told["learners"] if one["id"] == "007")["points"] = points
    grades.write_text(json.dumps(told), encoding="utf-8")

    with pytest.raises(GradesRefused, match="is damaged"):
        graded(grades, "007")
