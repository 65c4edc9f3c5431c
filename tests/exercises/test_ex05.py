"""Exercises 5.1 and 5.2: solutions, wrong answers, and what they are judged by."""

from __future__ import annotations

import numpy as np
import pytest

from gpututor.exercises import ex05
from tests.exercises.answers import Answers, Wrong

# Drawn: a host of 25 ms; kernels of 6 ms and a quarter for each square of the width over the tutorial's, so 10, 22 and
# 70 ms with 4, 8 and 16 times its units.
CASE = ex05.widest_case({1: 25e6, 4: 25e6, 8: 26e6, 16: 70e6}, {4: 10e6, 8: 22e6})

SOLUTION = """
import torch
from torch.nn.functional import linear

def make_gates(w_in, w_rec):
    a, b = torch.cat(w_in), torch.cat(w_rec)
    def gates(word, state):
        return list((linear(word, a) + linear(state, b)).chunk(len(w_in), -1))
    return gates
"""
ONE_PRODUCT = SOLUTION.replace(
    "a, b = torch.cat(w_in), torch.cat(w_rec)", "w = torch.cat((torch.cat(w_in), torch.cat(w_rec)), 1)"
)
ONE_PRODUCT = ONE_PRODUCT.replace("(linear(word, a) + linear(state, b))", "linear(torch.cat((word, state), 1), w)")
ADDED_LATER = SOLUTION.replace(
    "list((linear(word, a) + linear(state, b)).chunk(len(w_in), -1))",
    "[x + y for x, y in zip(linear(word, a).chunk(len(w_in), -1), linear(state, b).chunk(len(w_in), -1))]",
)
JOINED_EACH_TIME = SOLUTION.replace("    a, b", "    pass\n    def gates(word, state):\n        a, b").replace(
    "torch.cat(w_rec)\n    def gates(word, state):\n", "torch.cat(w_rec)\n"
)
ON_THE_HOST = SOLUTION.replace("torch.cat(w_rec)", "torch.cat(w_rec)\n    a, b = a.cpu(), b.cpu()").replace(
    "(word, state):\n", "(word, state):\n        word, state = word.cpu(), state.cpu()\n"
)
ON_THE_SIDE = SOLUTION.replace("torch.cat(w_in), torch.cat(w_rec)", "torch.cat(w_in, 1), torch.cat(w_rec, 1)")

ANSWERS = {
    "5.1": Answers(
        lambda case: f"{case['ms']}",
        (
            Wrong("25", "Four times the weights change that"),
            Wrong("44", "Twice as wide is four times the weights"),
            Wrong("88", "Not all of it grows fourfold"),
            Wrong("70000", "looks like microseconds"),
            Wrong("160", "Estimate how long the kernels will run", hint=2),
        ),
        CASE,
    ),
    "5.2": Answers(
        SOLUTION,
        (
            Wrong(ex05.STARTER + "\n# as it was", "take 16 products", hint=1, earned=0.2),
            Wrong(ADDED_LATER, "still launch 10 kernels", hint=3, earned=0.7),
            Wrong(JOINED_EACH_TIME, "still launch 5 kernels", hint=3, earned=0.7),
            Wrong(ON_THE_HOST, "not made on the card", hint=2),
            Wrong(ON_THE_SIDE, "RuntimeError"),
        ),
    ),
}


def test_one_product_of_word_and_state_side_by_side_is_right_too():
    assert ex05.COMBINED.check(ONE_PRODUCT, {}).state == "right"


def test_the_law_of_the_hints_gives_the_drawn_time():
    assert CASE["kernels_ms"] + 4 * CASE["grown_ms"] == pytest.approx(CASE["ms"])


def test_where_the_host_is_slower_still_that_is_what_is_said():
    case = ex05.widest_case({1: 20e6, 4: 20e6, 8: 20e6, 16: 20e6}, {4: 1e6, 8: 4e6})

    assert "the host still sets the pace" in ex05.WIDEST.check("20", case).text


@pytest.mark.parametrize("n_gates", ex05.N_GATES)
def test_the_judges_gates_are_sums_over_what_goes_in(n_gates):
    w_in, w_rec, word, state = ex05.drawn(n_gates)
    last = sum(w_in[-1, 2, k] * word[1, k] + w_rec[-1, 2, k] * state[1, k] for k in range(ex05.WIDTH))

    assert ex05.expected(n_gates)[-1][1][2] == pytest.approx(last)
    assert np.shape(ex05.expected(n_gates)) == (n_gates, ex05.BATCH, ex05.WIDTH)
