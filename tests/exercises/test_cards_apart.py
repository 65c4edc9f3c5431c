"""Exercises on the card are judged alike where the card lives apart from the learner's code: verdict and tape."""

from __future__ import annotations

import importlib
import os

import pytest

from gpututor.exercises import coded, registry
from gpututor.lab.cards_pool import on_cards_apart
from tests.simgpu.remote.bridge import run_with_card
from tests.simgpu.remote.conftest import cards  # noqa: F401  # the same server

if not hasattr(os, "fork"):
    pytest.skip("a card in another process needs fork", allow_module_level=True)

LESSONS = ("03", "04", "05", "08", "09", "10")


@pytest.fixture
def handed_down(monkeypatch):
    plain = coded.run_learner

    def run(code, function, calls, *, card=None, **limits):
        return (
            plain(code, function, calls, **limits)
            if card is None
            else run_with_card(code, function, calls, card=card, **limits)
        )

    monkeypatch.setattr(coded, "run_learner", run)


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_solution_gets_the_same_verdict_on_the_same_tape(lesson, cards, handed_down):  # noqa: F811
    number = f"{int(lesson)}.2"
    answers = importlib.import_module(f"tests.exercises.test_ex{lesson}").ANSWERS[number]
    exercise, answer = registry.exercise(number), answers.right_for(answers.case)
    with coded.noted() as here:
        verdict_here = exercise.judge(answer, answers.case)
    with coded.noted() as apart, on_cards_apart(cards):
        verdict_apart = exercise.judge(answer, answers.case)

    assert [run.tape for run in apart] == [run.tape for run in here]
    assert verdict_apart == verdict_here
