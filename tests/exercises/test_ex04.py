"""Exercises 4.1 and 4.2: solutions, wrong answers, and an LSTM of our own to judge by."""

from __future__ import annotations

import numpy as np
import pytest

from gpututor.exercises import ex04
from tests.exercises.answers import Answers, Wrong

# Drawn: 8 ms at any length and 0.1 ms a word. 64 words 14.4 ms, 256 words 33.6 ms, so 512 words 59.2 ms.
STEP_NS = {"lstm": 14.4e6, "lstm_256": 33.6e6, "lstm_512": 59.2e6}

SOLUTION = ex04.STARTER.replace(
    "    for t in range(length):\n", "    seen = linear(words, w_in, bias)\n    for t in range(length):\n"
).replace("linear(words[t], w_in, bias)", "seen[t]")
MOVED_ONLY = SOLUTION.replace(
    "seen = linear(words, w_in, bias)", "seen = [linear(words[t], w_in, bias) for t in range(length)]"
)
WITHOUT_BIAS = SOLUTION.replace("linear(words, w_in, bias)", "linear(words, w_in)")
FIRST_WORD = SOLUTION.replace("seen[t]", "seen[0]")
ON_THE_HOST = SOLUTION.replace(
    "    length, batch",
    "    words, w_in, w_rec, bias = (each.cpu() for each in (words, w_in, w_rec, bias))\n    length, batch",
)

ANSWERS = {
    "4.1": Answers(
        lambda case: f"{case['ms']}",
        (
            Wrong("33.6", "no time for the words that were added"),
            Wrong("67.2", "every part of the step would grow"),  # twice the step of 256 words
            Wrong("115.2", "whose fixed part is larger"),  # eight times the step of 64 words
            Wrong("59200", "looks like microseconds"),
            Wrong("40", "straight line", hint=1),
        ),
        ex04.longer_case(STEP_NS),
    ),
    "4.2": Answers(
        SOLUTION,
        (
            Wrong(ex04.STARTER + "\n# as it was", "launch 24 products, not 13", hint=2, earned=0.3),
            Wrong(MOVED_ONLY, "launch 24 products, not 13", hint=2, earned=0.3),
            Wrong(WITHOUT_BIAS, "not those of the loop", hint=3),
            Wrong(FIRST_WORD, "not those of the loop", hint=3),
            Wrong(ON_THE_HOST, "the work belongs there", hint=3),
        ),
    ),
}


def test_a_right_time_is_told_what_each_further_word_takes():
    assert "100\u00a0µs for each further word" in ex04.LONGER.check("59.2", ANSWERS["4.1"].case).text


def test_the_judges_lstm_forgets_and_adds_as_its_gates_say():
    # One unit, no weights, only biases: with enter, forget and leave at 1/2 and new at tanh(1), memory is
    # 1/2 tanh(1), then 1/2 of that and 1/2 tanh(1) more. The state is half its tanh.
    words, none = np.zeros((2, 1, 1)), np.zeros((4, 1))
    first, second = ex04.states(words, none, none, np.array([0.0, 0.0, 1.0, 0.0]))
    half = 0.5 * np.tanh(1.0)

    assert first[0][0] == pytest.approx(0.5 * np.tanh(half))
    assert second[0][0] == pytest.approx(0.5 * np.tanh(1.5 * half))


@pytest.mark.parametrize("length", ex04.LENGTHS)
def test_inputs_are_the_same_at_every_call(length):
    assert all((a == b).all() for a, b in zip(ex04.inputs(length), ex04.inputs.__wrapped__(length), strict=True))
