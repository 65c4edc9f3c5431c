"""How far a reader is, and the index of the course that shows it."""

from __future__ import annotations

import pytest

import gpututor.page as gt
from gpututor.exercises.form import Judged
from gpututor.exercises.keeping import keep_given, keep_judged, standing
from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.page.course import LESSONS, PARTS, lesson
from gpututor.page.standing import OfCourse, standing_of
from gpututor.page.whole_course import course_index, in_all
from gpututor.results import StoredResult
from gpututor.store import Store
from tests.page.learners import HALF, answered, of_lesson

RIGHT = Judged("right", "")
ONE, TWO = exercise("3.1"), exercise("3.2")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Store("zoë")


def course(**changed):
    """A course whose first two lessons and the third are there; `l1` to `l3` are their states."""
    shown = [changed.get(f"l{each.number}") or of_lesson(each, ready=each.number <= 3) for each in LESSONS]
    return OfCourse(tuple(shown))


# --- what is kept ----------------------------------------------------------------------------------------------


def test_a_new_reader_has_begun_nothing(store):
    now = standing_of(store)

    assert {each.state for each in now.lessons} <= {"not begun", "coming"}
    assert (now.n_answered, now.earned, now.times) == (0, 0, [])


def test_a_guess_alone_is_guessed(store):
    store.guess("03", "eight", "hardly any longer")

    assert standing_of(store).lessons[2].state == "guessed"


def test_a_run_is_run_and_the_newest_counts(store):
    results = store.results("03")
    results.keep(StoredResult(results.new_folder(), "stopped", "", {}, {}, "", store.time(), 1, 9))
    now = standing_of(store).lessons[2]

    assert (now.state, now.run.state) == ("run", "stopped")


def test_with_every_exercise_right_a_run_lesson_is_all_right(store):
    results = store.results("03")
    results.keep(StoredResult(results.new_folder(), "done", "", {}, {}, "", store.time(), 9, 9))
    for one in (ONE, TWO):
        keep_judged(store, one, "x", {}, RIGHT)

    now = standing_of(store).lessons[2]
    assert (now.state, now.earned, now.marks) == ("all right", 20, 20)


def test_points_add_up_over_right_and_in_part(store):
    keep_judged(store, ONE, "224", {}, RIGHT)
    keep_judged(store, TWO, "def f(): ...", {}, HALF)

    assert standing_of(store).earned == ONE.marks + TWO.marks / 2


def test_an_answer_changed_after_its_verdict_has_no_points(store):
    keep_judged(store, ONE, "224", {}, RIGHT)
    keep_given(store, ONE, "225", {})

    assert (standing(store, ONE).state, standing(store, ONE).earned) == ("not checked", None)


@pytest.mark.parametrize("earned", [11, -1, "nan", "inf"])
def test_points_that_nobody_can_earn_are_none(store, earned):
    keep_judged(store, ONE, "224", {}, RIGHT)
    told = store.get("03", ONE.key)
    store.put("03", ONE.key, told | {"earned": earned})

    assert standing(store, ONE).earned is None


def test_a_verdict_that_no_judge_gives_is_none(store):
    keep_judged(store, ONE, "224", {}, RIGHT)
    store.put("03", ONE.key, store.get("03", ONE.key) | {"state": "<b>best</b>"})

    assert standing(store, ONE).state == "not checked"


def test_the_file_is_read_once_for_all_lessons(store, monkeypatch):
    reads = []
    monkeypatch.setattr("gpututor.store._parse", lambda path: reads.append(path) or {})
    standing_of(store)

    assert len(reads) == 1


# --- what comes next -------------------------------------------------------------------------------------------


def test_next_is_the_first_lesson_without_a_run():
    assert course(l1=of_lesson(lesson(1), ran=True)).next.lesson.number == 2


def test_with_all_run_next_is_the_first_with_an_exercise_that_is_not_right():
    first = of_lesson(lesson(1), [answered(one, RIGHT) for one in EXERCISES if one.lesson == 1], ran=True)

    assert (
        course(l1=first, l2=of_lesson(lesson(2), ran=True), l3=of_lesson(lesson(3), ran=True)).next.lesson.number == 2
    )


def test_with_everything_right_nothing_is_next():
    done = {
        f"l{n}": of_lesson(lesson(n), [answered(one, RIGHT) for one in EXERCISES if one.lesson == n], ran=True)
        for n in (1, 2, 3)
    }

    assert course(**done).next is None


def test_a_lesson_that_is_coming_is_never_next_and_counts_nothing():
    now = course(
        l1=of_lesson(lesson(1), ran=True), l2=of_lesson(lesson(2), ran=True), l3=of_lesson(lesson(3), ran=True)
    )

    assert now.next.lesson.number == 1  # not the fourth
    assert now.marks == sum(one.marks for one in EXERCISES if one.lesson <= 3)


# --- the index -------------------------------------------------------------------------------------------------


def test_the_parts_hold_every_lesson_once_and_in_order():
    assert [each for part in PARTS for each in part.lessons] == list(LESSONS)


def test_the_index_names_every_lesson_with_its_question():
    shown = course_index(course()).text

    assert all(gt.html(each.title).text.replace("'", "&#x27;") in shown for each in LESSONS)
    assert all(each.question.replace("'", "&#x27;") in shown for each in (gt.START, *LESSONS))
    assert all(part.title in shown for part in PARTS)


def test_only_lessons_that_are_there_have_a_link():
    shown = course_index(course()).text

    assert shown.count("<a ") == 3
    assert shown.count("coming</td>") == len(LESSONS) - 3


def test_one_lesson_is_marked_as_next():
    shown = course_index(course(l1=of_lesson(lesson(1), ran=True))).text

    assert shown.count("<b>next</b>") == 1
    assert "The 25 % mystery" in shown.split('<tr class="next">')[1].split("</tr>")[0]


def test_a_lesson_shows_its_state_exercises_and_points():
    third = of_lesson(lesson(3), [answered(ONE, RIGHT), answered(TWO, HALF)], guess="a", ran=True)
    row = course_index(course(l3=third)).text.split("03_one_sample")[1].split("</tr>")[0]

    assert "</i>run" in row
    assert "1 of 2<span> right" in row
    assert "15 of 20<span> points" in row


def test_the_sum_says_what_is_still_to_come():
    assert in_all(course()) == "0 of 3 lessons run, 0 of 6 exercises right, 0 of 60 points. 16 more are still to come."


def test_an_exercises_answer_without_guess_or_run_is_a_beginning():
    assert of_lesson(lesson(3), [answered(TWO, RIGHT)]).state == "begun"
