"""Exercises 15.1 and 15.2: solutions, wrong answers, and the loss that they are judged by."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own habit

from gpututor.exercises import ex15
from gpututor.exercises.on_card.ex15_data import arrays
from tests.exercises.answers import Answers, Wrong

# 200 ms of validation, 30 of saving, 10 of histograms: 240 ms. Nine times that are 2,160 ms, 540 steps of 4 ms.
CASE = ex15.case_rarely(
    SimpleNamespace(parts_ns={"validation": 200e6, "checkpoint": 30e6, "histograms": 10e6}, steps_ns=160e6)
)

SOLUTION = """
import torch
import torch.nn.functional as F

def evaluate(model, inputs, kinds):
    model.eval()
    with torch.no_grad():
        loss = F.cross_entropy(model(inputs), kinds)
    model.train()
    return loss.item()
"""
IN_BATCHES = """
import torch
import torch.nn.functional as F

def evaluate(model, inputs, kinds):
    was = model.training
    model.eval()
    with torch.inference_mode():
        total = 0
        for k in range(0, len(inputs), 64):
            total = total + F.cross_entropy(model(inputs[k:k + 64]), kinds[k:k + 64], reduction="sum")
    model.train(was)
    return total / len(inputs)
"""
MEAN_OF_MEANS = IN_BATCHES.replace(', reduction="sum"', "").replace(
    "total / len(inputs)", "total / -(-len(inputs) // 64)"
)
GRAPHS = SOLUTION.replace("with torch.no_grad():", "if True:")
LEFT = SOLUTION.replace("    model.train()\n", "")
DROPS = SOLUTION.replace("    model.eval()\n", "")
READS = """
import torch
import torch.nn.functional as F

def evaluate(model, inputs, kinds):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for k in range(0, len(inputs), 2):
            total += 2 * F.cross_entropy(model(inputs[k:k + 2]), kinds[k:k + 2]).item()
    model.train()
    return total / len(inputs)
"""
ON_HOST = """
import torch
import torch.nn.functional as F

def evaluate(model, inputs, kinds):
    x = inputs.cpu()
    first, _, _, last = model
    with torch.no_grad():
        h = torch.relu(x @ first.weight.cpu().T + first.bias.cpu())
        return F.cross_entropy(h @ last.weight.cpu().T + last.bias.cpu(), kinds.cpu()).item()
"""
NOTHING = "def evaluate(model, inputs, kinds):\n    pass\n"
NOT_YET = "def evaluate(model, inputs, kinds):\n    raise NotImplementedError('soon')\n"

ANSWERS = {
    "15.1": Answers(
        lambda case: f"{9 * sum(case['pauses_ms'].values()) / case['step_ms']:.1f}",
        (
            Wrong("600", "a tenth of the steps' time"),
            Wrong("60", "as much time goes into pauses as into steps"),
            Wrong("450", "counts the longest pause alone"),
            Wrong("6", "wrong way round"),
            Wrong("5000", "Not so many", hint=2),
            Wrong("seldom", "is not a number"),
        ),
        CASE,
    ),
    "15.2": Answers(
        SOLUTION,
        (
            Wrong(MEAN_OF_MEANS, "mean of the batches' means", hint=1, earned=0.6),
            Wrong(DROPS, "dropout drops numbers at random", hint=1, earned=0.6),
            Wrong(GRAPHS, "a backward pass that never comes", hint=2, earned=0.8),
            Wrong(READS, "waits", hint=3, earned=0.7),
            Wrong(LEFT, "left without dropout", hint=1, earned=0.9),
            Wrong(ON_HOST, "the work belongs there"),
            Wrong(NOTHING, "one number", hint=1),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
}


def test_large_batches_that_are_weighed_earn_full_marks_too():
    judged = ex15.EVALUATED.check(IN_BATCHES, {})

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def test_the_starter_is_wrong_in_all_but_the_mode():
    judged = ex15.EVALUATED.judge(ex15.STARTER, {})

    assert [check.holds for check in judged.checks] == [False, False, False, True]


def test_the_solution_is_right_on_cases_that_nobody_saw():
    case = ex15.EVALUATED.hidden(random.Random(5))

    assert ex15.EVALUATED.check(SOLUTION, case).state == "right"


def test_the_reckoned_loss_is_torchs():
    w_1, b_1, w_2, b_2, x, kinds = map(torch.tensor, arrays(3, 20))

    assert ex15.expected(3, 20) == pytest.approx(
        F.cross_entropy(torch.relu(x @ w_1.T + b_1) @ w_2.T + b_2, kinds).item()
    )


def test_the_mean_of_means_differs_where_the_last_batch_is_smaller():
    assert ex15.expected(batch=65) == pytest.approx(ex15.expected())
    assert abs(ex15.expected(batch=64) - ex15.expected()) > 1e-3


def test_what_is_asked_holds_the_numbers_of_the_run():
    asked = ex15.RARELY.asked(CASE)

    for text in ("200.00\u00a0ms of validation", "30.00\u00a0ms of saving", "4.000\u00a0ms", "10\u00a0% of the whole"):
        assert text in asked
