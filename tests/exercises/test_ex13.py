"""Exercises 13.1 and 13.2: solutions, wrong answers, and the numbers that they are judged by."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpututor.exercises import ex13
from gpututor.exercises.on_card.ex13_data import arrays
from tests.exercises.answers import Answers, Wrong

# Of 20 ms, 10 are depthwise: four times as fast they are 2.5, so 12.5 ms are left, 1.6 times as fast.
CASE = ex13.case_faster(20e6, 10e6, 0.08)

SOLUTION = """
import torch

def smaller(first, second, n_kept):
    size = first.abs().flatten(1).sum(1)
    kept = size.topk(n_kept).indices
    return first[kept], second[:, kept]
"""
IN_ORDER = """
def smaller(first, second, n_kept):
    size = first.abs().sum((1, 2, 3))
    kept = size.argsort(descending=True)[:n_kept].sort().values
    return first.index_select(0, kept).contiguous(), second.index_select(1, kept).contiguous()
"""
MASKED = """
import torch

def smaller(first, second, n_kept):
    size = first.abs().flatten(1).sum(1)
    mask = torch.zeros_like(size)
    mask[size.topk(n_kept).indices] = 1
    return first * mask.view(-1, 1, 1, 1), second * mask.view(1, -1, 1, 1)
"""
SMALLEST = SOLUTION.replace("topk(n_kept)", "topk(n_kept, largest=False)")
FIRST_ONES = "def smaller(first, second, n_kept):\n    return first[:n_kept], second[:, :n_kept]\n"
NOTHING = "def smaller(first, second, n_kept):\n    return first, second\n"
MIXED = SOLUTION.replace("second[:, kept]", "second[:, kept.sort().values]")
ONE_SIDE = SOLUTION.replace("second[:, kept]", "second")
BY_ROWS_OUT = SOLUTION.replace("first.abs().flatten(1).sum(1)", "second.abs().sum((0, 2, 3))")
NOT_YET = "def smaller(first, second, n_kept):\n    raise NotImplementedError('soon')\n"

ANSWERS = {
    "13.1": Answers(
        lambda case: f"{ex13.faster(case['depthwise_ms'] / case['card_ms']):.4g} times",
        (
            Wrong("4", "one kind of kernel"),
            Wrong("2", "take no time at all"),  # 20 over 10
            Wrong("1.064", "their share of the FLOP"),  # 1 over 0.92 and a fourth of 0.08
            Wrong("0.625", "share of the time that is left"),
            Wrong("12.5", "the time that is left"),
            Wrong("3", "Not so much", hint=2),
            Wrong("much", "is not a number"),
        ),
        CASE,
    ),
    "13.2": Answers(
        SOLUTION,
        (
            Wrong(MASKED, "compute 2.0 times what is kept", hint=2, earned=0.5),
            Wrong(SMALLEST, "The smallest channels were kept", hint=1),
            Wrong(FIRST_ONES, "The first channels were kept", hint=1),
            Wrong(NOTHING, "Nothing is left out yet", hint=1),
            Wrong(MIXED, "in different orders", hint=3),
            Wrong(BY_ROWS_OUT, "not the picture without the smaller", hint=1),
            Wrong(ONE_SIDE, "RuntimeError"),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
}


def test_any_order_of_the_kept_channels_earns_full_marks():
    judged = ex13.SMALLER.check(IN_ORDER, {})

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def test_the_solution_is_right_on_a_case_that_nobody_saw():
    case = ex13.SMALLER.hidden(random.Random(5))

    assert ex13.SMALLER.check(SOLUTION, case).state == "right"


def test_the_reference_convolves_as_one_counts_by_hand():
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    weights = np.zeros((1, 1, 3, 3), np.float32)
    weights[0, 0, 0, 1] = 1  # the point above

    assert ex13.convolved(x, weights)[0, 0].tolist() == [[0, 0, 0], [0, 1, 2], [3, 4, 5]]


def test_kept_channels_alone_give_what_all_of_them_give_with_the_others_silent():
    pictures, first, second = arrays()
    size = np.abs(first).sum((1, 2, 3))
    silent = np.where((size >= np.sort(size)[-ex13.N_KEPT])[:, None, None, None], first, 0)
    whole = ex13.convolved(np.maximum(ex13.convolved(pictures, silent), 0), second)

    assert ex13.expected() == pytest.approx(whole.ravel().tolist(), rel=1e-3, abs=1e-3)


def test_other_seeds_are_other_data():
    assert not np.allclose(arrays(1)[1], arrays(2)[1])


def test_what_is_asked_holds_the_numbers_of_the_run():
    asked = ex13.FASTER.asked(CASE)

    assert "the card works for 20 ms" in asked
    assert "10 ms of that" in asked
    assert "only 8.0\u00a0% of the FLOP" in asked


@pytest.mark.parametrize("depthwise_ns", [0, 20e6])
def test_without_both_kinds_of_kernel_nothing_is_asked(depthwise_ns):
    assert ex13.case_faster(20e6, depthwise_ns, 0.1) is None
