"""Every exercise that is listed: blank it reads "not answered yet", its solution earns full marks, wrong ones don't."""

from __future__ import annotations

import importlib

import pytest

from gpututor.errors import ExerciseNotKnown
from gpututor.exercises.form import NOT_ANSWERED
from gpututor.exercises.registry import EXERCISES, exercise
from tests.exercises.answers import Answers


def answers(number: str) -> Answers:
    lesson = int(number.partition(".")[0])
    return importlib.import_module(f"tests.exercises.test_ex{lesson:02d}").ANSWERS[number]


each_exercise = pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.number)
each_wrong = pytest.mark.parametrize(
    ("one", "wrong"),
    [
        pytest.param(one, wrong, id=f"{one.number}: {wrong.says}")
        for one in EXERCISES
        for wrong in answers(one.number).wrong
    ],
)


@each_exercise
@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_blank_one_reads_not_answered_yet(one, blank):
    assert one.check(blank, answers(one.number).case) == NOT_ANSWERED


@each_exercise
def test_the_starter_counts_as_blank(one):
    assert one.check(one.starter, answers(one.number).case) == NOT_ANSWERED


@each_exercise
def test_a_changed_starter_does_not_pass(one):
    if one.kind != "code":
        pytest.skip("only code begins with a starter")
    judged = one.judge(one.starter, answers(one.number).case)

    assert judged.earned_share < 1


@each_exercise
def test_the_solution_earns_full_marks(one):
    known = answers(one.number)
    judged = one.check(known.right_for(known.case), known.case)

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


@each_wrong
def test_a_wrong_answer_gets_its_sentence_its_hint_and_its_part_of_the_marks(one, wrong):
    judged = one.check(wrong.answer, answers(one.number).case)

    assert wrong.says in judged.text
    assert judged.state in ("wrong", "partial")
    assert judged.hint == wrong.hint
    assert judged.earned_share == pytest.approx(wrong.earned)


@each_exercise
def test_the_shares_of_what_is_checked_add_up_to_the_marks(one):
    known = answers(one.number)
    checks = one.check(known.right_for(known.case), known.case).checks

    assert not checks or sum(check.share for check in checks) == pytest.approx(1)


@each_exercise
def test_every_gap_of_the_task_is_filled(one):
    assert "{" not in one.asked(answers(one.number).case)


def test_another_number_is_told_the_known_ones():
    with pytest.raises(ExerciseNotKnown, match=r"3\.1"):
        exercise("3.11")


def test_a_number_may_begin_with_a_zero():
    assert exercise("03.1") is exercise("3.1")
