"""What the certificate claims: what is kept, and no more."""

from __future__ import annotations

import hashlib
import re
from html import unescape

import pytest

from gpututor.exercises.form import Judged
from gpututor.exercises.registry import exercise
from gpututor.page.certificate import Graded, certificate, in_a_sentence, shown_name, who_graded
from gpututor.page.course import LESSONS, lesson
from gpututor.page.standing import OfCourse
from tests.page.learners import HALF, NOW, answered, everything_done, of_lesson

RIGHT, WRONG = Judged("right", ""), Judged("wrong", "")
EVIL = '<script>alert("x")</script>'
ONE, TWO = exercise("3.1"), exercise("3.2")


def course(*exercises, **more) -> OfCourse:
    """Lessons 1 to 3 are there; in the third these exercises were answered."""
    third = of_lesson(lesson(3), exercises, **more)
    return OfCourse(tuple(third if each.number == 3 else of_lesson(each, ready=each.number <= 3) for each in LESSONS))


def seen(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html.partition("</style>")[2])).replace("\u00a0", " ")


def page(now: OfCourse, name: str = "Ada", graded: Graded | None = None) -> str:
    return certificate(now, name, "ada", NOW, graded)


def row(html: str, number: str) -> str:
    return " ".join(seen("</style>" + html.split(f">{number} ")[1].partition("</tr>")[0]).split())


def grades(**changed) -> Graded:
    told = {
        "class_title": "Fall",
        "learner_id": "s01",
        "learner_name": "Ada Archer",
        "points": 13.5,
        "marks": 20.0,
        "by_exercise": {"3.1": (9.5, 10.0), "3.2": (4.0, 10.0)},
        "handed_in_at": "2026-11-30T20:00:00+00:00",
        "grader": "gpututor 0.1.0, abc",
    }
    return Graded(**(told | changed))


# --- what was answered, when, with what score ------------------------------------------------------------------


def test_an_answer_stands_there_with_its_time_and_points():
    assert "224 pictures" in row(page(course(answered(ONE, RIGHT, "224"))), "3.1")
    assert "30 Nov 2026 14:03 right 10 of 10" in row(page(course(answered(ONE, RIGHT, "224"))), "3.1")


def test_code_is_told_by_its_length_and_the_begin_of_its_hash():
    code = "def f():\n    return 1\n"
    told = row(page(course(answered(TWO, RIGHT, code))), "3.2")

    assert "2 lines of code" in told
    assert hashlib.sha256(code.encode()).hexdigest()[:8] in told


def test_part_of_the_marks_is_part_of_the_points():
    assert row(page(course(answered(TWO, HALF))), "3.2").endswith("in part 5 of 10")


def test_an_answer_that_was_not_checked_earns_nothing_and_says_so():
    assert row(page(course(answered(ONE, None))), "3.1").endswith("not checked 0 of 10")


def test_guess_and_run_stand_at_their_lesson():
    told = seen(page(course(guess="hardly any longer", ran=True)))

    assert "“hardly any longer”" in told
    assert "run 30 Nov 2026 14:03" in told


def test_the_sum_is_of_all_exercises_there_are():
    told = seen(page(course(answered(ONE, RIGHT), answered(TWO, HALF))))

    assert "15 of 60 points, 25 %" in re.sub(r"\s+", " ", told)


def test_the_time_it_was_made_and_whose_progress_it_is_stand_at_its_foot():
    assert "Made 1 Dec 2026 05:00 UTC by gpututor" in seen(page(course()))
    assert "“ada”" in seen(page(course()))


# --- honest ----------------------------------------------------------------------------------------------------


def test_of_somebody_who_did_nothing_it_certifies_nothing():
    told = page(course())

    assert "This page certifies nothing." in seen(told)
    assert "<table" not in told


def test_a_guess_alone_is_no_score():
    assert "none of 6 exercises was answered" in in_a_sentence(course(guess="a"))


def test_what_was_left_out_is_named():
    told = seen(page(course(answered(ONE, RIGHT))))

    assert "Nothing done in: 1 The gauge, 2 The 25 % mystery." in told
    assert row(page(course(answered(ONE, RIGHT))), "3.2").endswith("not answered 0 of 10")


def test_lessons_that_are_not_there_yet_are_counted():
    assert "16 lessons of the course were not there yet" in in_a_sentence(course(answered(ONE, WRONG)))


def test_a_whole_course_has_nothing_left_out():
    assert "Nothing done in" not in seen(page(everything_done(LESSONS)))


def test_it_says_that_nobody_looked_on():
    assert "Self-graded" in seen(page(course()))
    assert "nobody looked on" in seen(page(course()))


# --- with an instructor's grades -------------------------------------------------------------------------------


def test_with_grades_the_points_are_the_instructors():
    told = page(course(answered(ONE, RIGHT), answered(TWO, WRONG)), graded=grades())

    assert row(told, "3.1").endswith("9.5 of 10")
    assert "13.5 of 20" in seen(told)
    assert "Self-graded" not in seen(told)


def test_with_grades_it_says_for_which_class_and_that_it_is_no_proof():
    said = who_graded(grades())

    assert "“Fall” for s01" in said
    assert "handed in 30 Nov 2026 20:00 UTC" in said.replace("\u00a0", " ")
    assert "no proof by itself" in said


def test_an_exercise_outside_the_class_is_not_graded():
    told = page(course(answered(ONE, RIGHT)), graded=grades(by_exercise={"3.1": (10.0, 10.0)}))

    assert row(told, "3.2").endswith("not graded")


def test_nothing_handed_in_is_said():
    assert "with nothing handed in" in who_graded(grades(handed_in_at=None))


def test_grades_of_answers_that_are_not_kept_here_stand_there_all_the_same():
    told = page(course(), graded=grades())

    assert row(told, "3.1").endswith("9.5 of 10")
    assert "certifies nothing" not in seen(told)


def test_without_a_typed_name_the_class_list_has_one():
    assert "Ada Archer" in seen(page(course(), name=" ", graded=grades()))


# --- whatever is typed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: page(course(), EVIL), id="name"),
        pytest.param(lambda: certificate(course(), "", EVIL, NOW), id="learner"),
        pytest.param(lambda: page(course(answered(ONE, RIGHT, EVIL))), id="answer"),
        pytest.param(lambda: page(course(answered(ONE, RIGHT, at=EVIL))), id="time"),
        pytest.param(lambda: page(course(guess=EVIL)), id="guess"),
        pytest.param(lambda: page(course(guess="a"), graded=grades(class_title=EVIL)), id="class"),
        pytest.param(lambda: page(course(guess="a"), "", grades(learner_name=EVIL)), id="name in the class"),
    ],
)
def test_what_others_wrote_never_becomes_markup(made):
    html = made()

    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_a_name_keeps_its_letters_and_loses_what_nobody_sees():
    assert shown_name("\u202eAda\x00 \tLovelace\n") == "Ada Lovelace"
    assert shown_name("علی\u200cرضا") == "علی\u200cرضا"


def test_a_very_long_name_is_cut():
    assert len(shown_name("a" * 10_000)) == 200


def test_a_very_long_answer_is_cut():
    assert "x" * 100 not in page(course(answered(ONE, WRONG, "x" * 10_000)))


def test_half_a_character_in_a_damaged_file_still_makes_a_page():
    assert page(course(answered(ONE, WRONG, "\ud800")), "\ud800").encode()


def test_the_page_runs_nothing_and_fetches_nothing():
    html = page(everything_done(LESSONS))

    assert "default-src 'none'" in html
    assert not re.search(r"<script|http:|https:|url\(|@import", html)
