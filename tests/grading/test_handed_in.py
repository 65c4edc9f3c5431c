"""Whose a submission is, which one counts, and what is said of those that don't."""

from __future__ import annotations

import os

import pytest

from gpututor.errors import RosterDamaged, SubmissionRefused
from gpututor.grading import handed_in
from tests.grading.rooms import NOON, NOW, hand_in, room

LATER = "2026-01-16T12:00:00+00:00"


@pytest.fixture
def made(tmp_path):
    return room(tmp_path)


def read(tmp_path, made):
    """The files that count by id, and the notes as text."""
    (tmp_path / "submissions").mkdir(exist_ok=True)
    chosen, notes = handed_in.read(tmp_path / "submissions", made, NOW)
    return {learner_id: one.file for learner_id, one in chosen.items()}, [f"{n.file}: {n.what}" for n in notes]


def manifest(tmp_path, *lines):
    (tmp_path / "submissions" / "manifest.csv").write_text("\n".join(("file,id,received_at", *lines)) + "\n")


@pytest.mark.parametrize(
    ("name", "learner_id"),
    [
        ("007.json", "007"),
        ("007_week2.json", "007"),
        ("ann_b.json", "ann_b"),  # an id that holds the sign between an id and the rest
        ("ann_b_late_1.json", "ann_b"),
        ("007/answers.json", "007"),
        ("7_12345_assignsubmission_file/007.json", "7"),  # the folder is the school's, the name the learner's
        ("ANN_B.JSON", "ann_b"),
    ],
)
def test_a_name_given_by_the_schools_system_says_whose_it_is(tmp_path, made, name, learner_id):
    hand_in(tmp_path, name)

    assert read(tmp_path, made)[0] == {learner_id: name}


def test_the_manifest_beats_the_name(tmp_path, made):
    hand_in(tmp_path, "007.json")
    manifest(tmp_path, "007.json,ann_b,")

    assert read(tmp_path, made)[0] == {"ann_b": "007.json"}


def test_without_the_schools_word_the_file_says_whose_it_is(tmp_path, made):
    hand_in(tmp_path, "answers.json", "007")

    assert read(tmp_path, made) == ({"007": "answers.json"}, ["answers.json: only the file itself says whose it is"])


def test_a_file_that_claims_anothers_id_is_scored_for_neither(tmp_path, made):
    hand_in(tmp_path, "007.json", "ann_b")

    assert read(tmp_path, made) == (
        {},
        ['007.json: not scored: it came from 007 and claims to be from "ann_b"; scored for neither'],
    )


def test_a_false_claim_does_not_touch_the_other_ones_own_file(tmp_path, made):
    hand_in(tmp_path, "ann_b.json", "ann_b")
    hand_in(tmp_path, "007.json", "ann_b", at=LATER)

    assert read(tmp_path, made)[0] == {"ann_b": "ann_b.json"}


def test_a_newer_file_under_a_free_name_does_not_push_the_schools_one_out(tmp_path, made):
    hand_in(tmp_path, "ann_b.json", "ann_b")
    hand_in(tmp_path, "zzz.json", "ann_b", at=LATER)

    chosen, notes = read(tmp_path, made)
    assert chosen == {"ann_b": "ann_b.json"}
    assert "ann_b.json: counts, the newest of 2; not read: zzz.json" in notes


def test_of_two_files_the_newer_counts_and_both_are_named(tmp_path, made):
    hand_in(tmp_path, "007_a.json", at=LATER)
    hand_in(tmp_path, "007_b.json", at=NOON)

    chosen, notes = read(tmp_path, made)
    assert chosen == {"007": "007_a.json"}
    assert "007_a.json: counts, the newest of 2; not read: 007_b.json" in notes


def test_a_file_from_the_future_does_not_count_before_one_that_isnt(tmp_path, made):
    hand_in(tmp_path, "007_a.json", at="2030-01-01T00:00:00+00:00")
    hand_in(tmp_path, "007_b.json", at=NOON)

    chosen, notes = read(tmp_path, made)
    assert chosen == {"007": "007_b.json"}
    assert any("lies in the future" in note for note in notes)


def test_the_schools_time_counts_before_the_files_own(tmp_path, made):
    hand_in(tmp_path, "007.json", at=NOON)
    manifest(tmp_path, "007.json,007,2026-01-18 12:00")
    one = handed_in.read(tmp_path / "submissions", made, NOW)[0]["007"]

    assert (one.at.isoformat(), one.is_received) == ("2026-01-18T11:00:59+00:00", True)


def test_a_time_after_it_was_received_is_named(tmp_path, made):
    hand_in(tmp_path, "007.json", at=LATER)
    manifest(tmp_path, "007.json,007,2026-01-15 12:00")

    assert any("but it was received at" in note for note in read(tmp_path, made)[1])


def test_answers_from_after_the_file_was_saved_are_named(tmp_path, made):
    hand_in(tmp_path, "007.json", at=NOON, answered_at=LATER)

    assert any("times were edited" in note for note in read(tmp_path, made)[1])


def test_an_unknown_id_is_named_and_the_rest_goes_on(tmp_path, made):
    hand_in(tmp_path, "x.json", "008")
    hand_in(tmp_path, "007.json")

    chosen, notes = read(tmp_path, made)
    assert chosen == {"007": "007.json"}
    assert notes[-1] == 'x.json: not scored: nobody in the class has the id "008"'


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', "\0"])
def test_a_damaged_file_is_one_line_and_the_rest_goes_on(tmp_path, made, text):
    hand_in(tmp_path, "007.json")
    (tmp_path / "submissions" / "ann_b.json").write_text(text)

    chosen, notes = read(tmp_path, made)
    assert chosen == {"007": "007.json"}
    assert [note.partition(":")[0] for note in notes if "not scored" in note] == ["ann_b.json"]


def test_a_listed_file_that_is_missing_is_named(tmp_path, made):
    hand_in(tmp_path, "007.json")
    manifest(tmp_path, "007.json,007,", "gone.json,7,")

    assert "gone.json: stands in manifest.csv and isn't there" in read(tmp_path, made)[1]


def test_a_file_twice_in_the_manifest_is_refused_with_its_line(tmp_path, made):
    hand_in(tmp_path, "007.json")
    manifest(tmp_path, "007.json,007,", "007.json,7,")

    with pytest.raises(RosterDamaged, match=r"manifest\.csv, line 3"):
        read(tmp_path, made)


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_link_is_not_followed(tmp_path, made):
    secret = hand_in(tmp_path, "../elsewhere.json", "007")
    (tmp_path / "submissions").mkdir(exist_ok=True)
    (tmp_path / "submissions" / "007.json").symlink_to(secret)

    assert read(tmp_path, made) == ({}, ["007.json: is a link to another file, so it was not read"])


def test_what_a_file_claims_can_stand_in_a_report(tmp_path, made):
    hand_in(tmp_path, "007.json", "a\u202eb\ud800\n")

    assert read(tmp_path, made)[1] == [
        '007.json: not scored: it came from 007 and claims to be from "a?b??"; scored for neither'
    ]


@pytest.mark.skipif(os.name != "posix", reason="names are text elsewhere")
def test_a_name_that_is_no_text_is_read_and_shown(tmp_path, made):
    path = hand_in(tmp_path, "x.json", "007")
    path.rename(path.parent / os.fsdecode(b"\xff.json"))

    assert read(tmp_path, made)[0] == {"007": "?.json"}


def test_what_is_no_json_file_is_named(tmp_path, made):
    hand_in(tmp_path, "007.json")
    (tmp_path / "submissions" / "007.py").write_text("x")

    assert "007.py: is no .json file, so it was not read" in read(tmp_path, made)[1]


def test_no_folder_is_one_sentence(tmp_path, made):
    with pytest.raises(SubmissionRefused, match="there is no folder"):
        handed_in.read(tmp_path / "none", made, NOW)
