"""Points: what is late costs, points by hand stand, and the class's mistakes are counted."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from gpututor.cli import main
from gpututor.exercises.submission import Submission
from gpututor.grading import classroom, overrides
from gpututor.grading.handed_in import HandedIn, Note
from gpututor.grading.overrides import Override
from gpututor.grading.scores import NOTHING, scored
from gpututor.grading.summary import summed_up
from tests.grading.rooms import NOON, room

TWO_DAYS_LATE = datetime(2026, 1, 18, 12, tzinfo=timezone.utc)
IN_TIME = datetime(2026, 1, 15, 12, tzinfo=timezone.utc)


@pytest.fixture
def made(tmp_path):
    return room(tmp_path)


def verdict(share, text="", **changed):
    state = "right" if share == 1 else "partial" if share else "wrong"
    return {**NOTHING, "state": state, "share": share, "text": text, "case": "own", **changed}


def handed(made, learner_id="007", at=IN_TIME):
    learner = made.by_id[learner_id]
    return HandedIn(learner, f"{learner_id}.json", Submission(learner_id, "", {}, NOON), at, is_received=True)


def points(made, verdicts, at=IN_TIME, by_hand=()):
    told = scored(made, {"007": handed(made, at=at)}, [], verdicts, {("007", one.number): one for one in by_hand})
    return next(one for one in told if one["id"] == "007")


RIGHT_AND_HALF = {("007", "1.1"): verdict(1.0), ("007", "1.2"): verdict(0.5)}


def test_points_are_shares_of_the_marks(made):
    assert points(made, RIGHT_AND_HALF)["points"] == 15.0


def test_two_days_late_leave_eight_tenths(made):
    one = points(made, RIGHT_AND_HALF, at=TWO_DAYS_LATE)

    assert (one["late_days"], one["kept_share"], one["points"]) == (2, 0.8, 12.0)


def test_points_by_hand_are_not_made_less_by_coming_late(made):
    by_hand = Override("007", "1.2", 9.0, "")

    assert points(made, RIGHT_AND_HALF, at=TWO_DAYS_LATE, by_hand=[by_hand])["points"] == 0.8 * 10 + 9.0


def test_a_comment_alone_changes_no_points(made):
    one = points(made, RIGHT_AND_HALF, by_hand=[Override("007", "1.2", None, "well seen")])

    assert (one["points"], one["exercises"][1]["override"]["comment"]) == (15.0, "well seen")


def test_points_by_hand_count_without_a_submission(made):
    told = scored(made, {}, [], {}, {("7", "1.1"): Override("7", "1.1", 6.0, "on paper")})

    assert {one["id"]: (one["state"], one["points"]) for one in told}["7"] == ("nothing handed in", 6.0)


def test_an_extension_moves_what_is_late(made):
    told = scored(made, {"ann_b": handed(made, "ann_b", TWO_DAYS_LATE)}, [], {}, {})

    assert next(one for one in told if one["id"] == "ann_b")["late_days"] == 0


def test_whose_file_was_refused_is_not_scored(made):
    told = scored(made, {}, [Note("a.json", "007", "not scored: damaged")], {}, {})

    assert [one["state"] for one in told] == ["not scored", "nothing handed in", "nothing handed in"]


def class_of(made, *texts):
    """A class in which each learner has made one mistake at 1.1."""
    names = ["007", "ann_b", "7"]
    verdicts = {(name, "1.1"): verdict(0.0, text, hint=1) for name, text in zip(names, texts, strict=False)}
    learners = scored(made, {name: handed(made, name) for name in names}, [], verdicts, {})
    return summed_up(made.exercises, learners)


def test_a_mistake_is_one_whatever_the_numbers_in_its_sentence(made):
    first = class_of(made, "That is 3 of 4 arrays.", "Bits.", "That is 5 of 6 arrays.")["exercises"][0]

    assert [(each["n"], each["text"], each["ids"]) for each in first["mistakes"]] == [
        (2, "That is 3 of 4 arrays.", ["007", "7"]),
        (1, "Bits.", ["ann_b"]),
    ]


def test_states_are_counted_for_each_exercise(made):
    first, second, *_ = class_of(made, "a", "b")["exercises"]

    assert first["states"] == {"right": 0, "partial": 0, "wrong": 2, "unanswered": 1, "not judged": 0}
    assert second["states"]["unanswered"] == 3


def test_code_that_ended_its_process_is_named(made):
    text = "Your code ended its own process (exit code 0) before it gave an answer."

    assert class_of(made, text)["incidents"] == [
        {"id": "007", "name": "Zoë", "number": "1.1", "what": "ended its own process"}
    ]


def test_the_command_keeps_points_and_comment(made, tmp_path, capsys):
    asked = [
        "grade",
        "override",
        "007",
        "1.1",
        "--class",
        str(tmp_path / "class"),
        "--points",
        "7",
        "--comment",
        "see p. 3",
    ]
    with pytest.raises(SystemExit) as ended:
        main(asked)
    kept = overrides.read(classroom.read(tmp_path / "class"))["007", "1.1"]

    assert ended.value.code == 0
    assert "run gpututor grade again" in capsys.readouterr().out
    assert (kept.points, kept.comment) == (7.0, "see p. 3")


def test_the_command_refuses_a_learner_whom_nobody_knows(made, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["grade", "override", "nobody", "1.1", "--class", str(tmp_path / "class"), "--points", "7"])

    assert ended.value.code == 2
    assert "nobody in the class" in capsys.readouterr().err
