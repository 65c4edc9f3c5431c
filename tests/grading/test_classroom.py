"""A class's folder: made once, read back, edited by hand; its roster, its secret, and points given by hand."""

from __future__ import annotations

import stat
import sys

import pytest

from gpututor.cli import main
from gpututor.errors import ClassDamaged, DeadlineUnclear, OverrideRefused, RosterDamaged
from gpututor.exercises.registry import EXERCISES
from gpututor.grading import classroom, overrides
from gpututor.grading.classroom import lessons_in
from gpututor.grading.deadlines import iso
from tests.grading.rooms import room


def test_what_is_made_is_what_is_read(tmp_path):
    made = room(tmp_path)

    assert [one.id for one in made.learners] == ["007", "ann_b", "7"]
    assert iso(made.deadline) == "2026-01-16T22:59:59+00:00"
    assert made.lessons == (1, 2)
    assert str(made.late) == "10 % a day, 3 days"


def test_an_extension_of_hours_moves_the_deadline_of_one(tmp_path):
    due = {one.id: iso(one.due) for one in room(tmp_path).learners}

    assert due == {
        "007": "2026-01-16T22:59:59+00:00",
        "ann_b": "2026-01-18T22:59:59+00:00",
        "7": "2026-01-16T22:59:59+00:00",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_the_seed_is_its_owners_alone(tmp_path):
    room(tmp_path)

    assert stat.S_IMODE((tmp_path / "class" / "seed.secret").stat().st_mode) == 0o600


def test_the_seed_is_in_no_other_file_and_in_nothing_printed(tmp_path, capsys):
    made = room(tmp_path)
    others = [path for path in (tmp_path / "class").iterdir() if path.name != "seed.secret"]

    assert len(others) == 4
    assert not any(made.seed.hex() in path.read_text("utf-8") for path in others)
    assert made.seed.hex() not in repr(made) + str(capsys.readouterr())


def test_two_classes_have_different_seeds(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()

    assert room(tmp_path / "a").seed != room(tmp_path / "b").seed


def test_a_class_that_is_there_is_not_overwritten(tmp_path):
    room(tmp_path)

    with pytest.raises(ClassDamaged, match="isn't empty"):
        room(tmp_path)


def test_a_doubled_hour_is_kept_with_its_offset(tmp_path):
    assert iso(room(tmp_path, deadline="2026-10-25 02:30+01:00").deadline) == "2026-10-25T01:30:59+00:00"


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ('deadline = "2026-01-16', 'deadline = "2026-01-20', DeadlineUnclear, "take deadline_utc out"),
        ('lessons = "1-2"', 'lessons = "1, 41-42"', ClassDamaged, "no exercises in lesson 41, 42"),
        ("version = 1", "version = 2", ClassDamaged, "version 1"),
        ("late = ", "lte = ", ClassDamaged, "lte"),
        ("hidden_cases = 3", "hidden_cases = 99", ClassDamaged, "hidden_cases is 99"),
        ('title = "', "title = '''", ClassDamaged, "is no TOML"),
    ],
)
def test_a_slip_in_class_toml_is_one_sentence(tmp_path, old, new, error, said):
    room(tmp_path)
    path = tmp_path / "class" / "class.toml"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")

    with pytest.raises(error, match=said):
        classroom.read(tmp_path / "class")


def test_an_edited_deadline_without_its_utc_counts(tmp_path):
    room(tmp_path)
    path = tmp_path / "class" / "class.toml"
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("deadline_utc")]
    path.write_text("\n".join(lines).replace("2026-01-16 23", "2026-01-17 23"), encoding="utf-8")

    assert iso(classroom.read(tmp_path / "class").deadline) == "2026-01-17T22:59:59+00:00"


@pytest.mark.parametrize("seed", ["", "abc", "00" * 31])
def test_a_damaged_seed_is_refused_without_being_shown(tmp_path, seed):
    room(tmp_path)
    (tmp_path / "class" / "seed.secret").write_text(seed)

    with pytest.raises(ClassDamaged, match="put the file back"):
        classroom.read(tmp_path / "class")


@pytest.mark.parametrize("text", ["", "0", "1-20", "one", "3-1", "1;2"])
def test_lessons_that_are_none_are_refused(text):
    with pytest.raises(ClassDamaged):
        lessons_in(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("007,Zoe\n007,Zed", "line 3.*stands in line 2 already", id="an id twice"),
        pytest.param("s1,Zoe\nS1,Zed", "line 3.*stands in line 2", id="twice but for its case"),
        pytest.param(",Zoe", "line 2: Zoe has no id", id="no id"),
        pytest.param("=1+1,Zoe", "line 2.*begins like a formula", id="an id like a formula"),
        pytest.param("a/../b,Zoe", "line 2.*slashes", id="an id like a path"),
        pytest.param("1.23457E+11,Zoe", "line 2.*format the column as text", id="a number that was shortened"),
        pytest.param('1,"Zo\ne"', "line 2.*line break", id="a name on two lines"),
        pytest.param("1,Zo\u202ee", "line 2.*turns text round", id="a name that turns the line round"),
        pytest.param("", "has no learners", id="nobody"),
    ],
)
def test_a_roster_with_a_fault_is_refused_with_its_line(tmp_path, line, said):
    with pytest.raises(RosterDamaged, match=said):
        room(tmp_path, roster=f"id,name\n{line}\n")


@pytest.mark.parametrize(
    ("extension", "said"),
    [("soon", "neither hours nor a time"), ("2026-01-01 12:00", "before the deadline"), ("99999", "more than a year")],
)
def test_an_extension_that_is_none_is_refused_with_its_line(tmp_path, extension, said):
    with pytest.raises(RosterDamaged, match=f"line 2.*{said}"):
        room(tmp_path, roster=f"id,name,extension\n1,A,{extension}\n")


def test_zeros_in_front_make_another_id(tmp_path):
    by_id = room(tmp_path).by_id

    assert (by_id["007"].name, by_id["7"].name) == ("Zoë", "Seven")


def override(tmp_path, learner_id="007", number="1.1", points="7", comment="", by=""):
    return overrides.checked(classroom.read(tmp_path / "class"), learner_id, number, points, comment, by)


def test_points_by_hand_are_kept_and_the_last_ones_hold(tmp_path):
    made = room(tmp_path)
    for points in ("7", "8.5"):
        overrides.keep(made, override(tmp_path, points=points, comment="=1+1; fine"))

    kept = overrides.read(made)
    assert {key: (one.points, one.comment) for key, one in kept.items()} == {("007", "1.1"): (8.5, "=1+1; fine")}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"learner_id": "nobody"}, "nobody in the class"),
        ({"number": "3.1"}, "doesn't have"),
        ({"number": "99"}, "no exercise"),
        ({"points": "11"}, "gives 0 to 10"),
        ({"points": "-1"}, "gives 0 to 10"),
        ({"points": "nan"}, "gives 0 to 10"),
        ({"points": "ten"}, "are no points"),
        ({"points": ""}, "neither points nor a comment"),
    ],
)
def test_points_by_hand_that_fit_nobody_are_refused(tmp_path, changed, said):
    room(tmp_path)

    with pytest.raises(OverrideRefused, match=said):
        override(tmp_path, **changed)


def test_a_slip_in_overrides_csv_names_its_line(tmp_path):
    made = room(tmp_path)
    (tmp_path / "class" / "overrides.csv").write_text("id;exercise;points;comment\n007;1.1;7;\n007;1.2;70;\n")

    with pytest.raises(OverrideRefused, match=r"overrides\.csv, line 3"):
        overrides.read(made)


def test_the_command_makes_a_class_and_says_when_it_is_due(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("id,name\n1,A\n2,B\n")
    arguments = ["class", "new", str(tmp_path / "c"), "--roster", str(tmp_path / "r.csv")]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--deadline", "2026-12-18 23:59", "--timezone", "Europe/Berlin", "--title", 'My "class"'])

    assert ended.value.code == 0
    assert f"2 learners; {len(EXERCISES)} exercises; due 2026-12-18T22:59:59+00:00" in capsys.readouterr().out
    assert classroom.read(tmp_path / "c").title == 'My "class"'
