"""Hidden cases: plain data that any machine draws alike; solutions are right on them, what is known by heart isn't.

All of it goes through what grades a class: learners' code in a sandbox, the simulated card in a process of its own.
"""

from __future__ import annotations

import importlib
import json
import random
import shutil

import pytest

from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.grading import judging
from tests.exercises.by_heart import BY_HEART

CODE = [one.number for one in EXERCISES if one.kind == "code"]
N_DRAWN = 3
each_code = pytest.mark.parametrize("number", CODE)


def answers(number):
    return importlib.import_module(f"tests.exercises.test_ex{int(number.partition('.')[0]):02d}").ANSWERS[number]


def drawn(number, n=N_DRAWN):
    one = exercise(number)
    return [json.loads(json.dumps(one.hidden(random.Random(f"{number} {k}")), allow_nan=False)) for k in range(n)]


@pytest.fixture(scope="module")
def judged():
    """Judges an answer as grading does, in the shown case and in so many hidden ones."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not here")
    with judging.shut_in(judging.BUBBLEWRAP):

        def judge(number, answer, n=N_DRAWN):
            item = {"number": number, "answer": answer, "case": answers(number).case, "hidden": drawn(number, n)}
            return judging.judge_item(item)

        yield judge
    if judging.cards.cache_info().currsize:
        judging.cards().__exit__(None, None, None)
        judging.cards.cache_clear()


@each_code
def test_every_exercise_in_code_draws_plain_data_from_its_generator_alone(number):
    one = exercise(number)
    twice = [one.hidden(random.Random("a seed")) for _ in range(2)]
    many = [json.dumps(one.hidden(random.Random(k)), allow_nan=False, sort_keys=True) for k in range(20)]

    assert twice[0] == twice[1]
    assert len(set(many)) == (20 if number != "6.2" else len(set(many)))


@each_code
def test_the_solution_has_full_marks_in_all_hidden_cases(number, judged):
    told = judged(number, answers(number).right_for(answers(number).case))

    assert (told["share"], told["hidden"]) == (1.0, [N_DRAWN, N_DRAWN]), told["text"]


@each_code
def test_who_knows_the_shown_case_by_heart_earns_nothing(number, judged):
    assert judged(number, BY_HEART[number])["share"] == 0.0


@pytest.mark.parametrize(
    ("number", "wrong"),
    [pytest.param(number, wrong, id=f"{number}: {wrong.says}") for number in CODE for wrong in answers(number).wrong],
)
def test_a_wrong_answer_earns_its_part_in_a_hidden_case_too(number, wrong, judged):
    told = judged(number, wrong.answer, 1)

    assert told["share"] == pytest.approx(wrong.earned)
