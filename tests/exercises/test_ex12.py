"""Exercises 12.1 and 12.2: solutions, wrong answers, and the closed forms that they are judged by."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpututor.exercises import ex12
from gpututor.exercises.on_card.ex12_data import MOMENTUM, N_UPDATES, RATE, numbers, sizes
from tests.exercises.answers import Answers, Wrong

# SGD: 200 steps of 10 ms, 2 s in all. Adam has 160 steps for it: 12.5 ms each, of which 8 ms are no update: 4.5 ms.
CASE = ex12.case_allowed(8e6, {"SGD": (200, 10e6), "momentum": (180, 10e6), "Adam": (160, 11e6)})

SOLUTION = """
import torch

def update(parameters, gradients, means, rate, momentum):
    torch._foreach_mul_(means, momentum)
    torch._foreach_add_(means, gradients)
    torch._foreach_add_(parameters, means, alpha=-rate)
"""
JOINED = """
import torch

def update(parameters, gradients, means, rate, momentum):
    each = [len(p) for p in parameters]
    mean = torch.cat(means) * momentum + torch.cat(gradients)
    new = torch.cat(parameters) - rate * mean
    torch._foreach_copy_(means, list(mean.split(each)))
    torch._foreach_copy_(parameters, list(new.split(each)))
"""
TORCHS_OWN = """
import torch

def update(parameters, gradients, means, rate, momentum):
    optimizer = torch.optim.SGD(parameters, rate, momentum, foreach=True)
    for p, g, m in zip(parameters, gradients, means):
        p.grad = g
        optimizer.state[p]["momentum_buffer"] = m
    optimizer.step()
"""
LATE = """
import torch

def update(parameters, gradients, means, rate, momentum):
    torch._foreach_add_(parameters, means, alpha=-rate)
    torch._foreach_mul_(means, momentum)
    torch._foreach_add_(means, gradients)
"""
AVERAGED = SOLUTION.replace("(means, gradients)", "(means, gradients, alpha=1 - momentum)")
UPWARDS = SOLUTION.replace("-rate", "rate")
NOT_KEPT = """
import torch

def update(parameters, gradients, means, rate, momentum):
    new = torch._foreach_add(torch._foreach_mul(means, momentum), gradients)
    torch._foreach_add_(parameters, new, alpha=-rate)
"""
PLAIN = """
import torch

def update(parameters, gradients, means, rate, momentum):
    torch._foreach_add_(parameters, gradients, alpha=-rate)
"""
COMPREHENSION = """
def update(parameters, gradients, means, rate, momentum):
    [m.mul_(momentum).add_(g) for m, g in zip(means, gradients)]
    [p.sub_(m, alpha=rate) for p, m in zip(parameters, means)]
"""
ON_HOST = """
import torch

def update(parameters, gradients, means, rate, momentum):
    each = [len(p) for p in parameters]
    mean = torch.cat(means).cpu() * momentum + torch.cat(gradients).cpu()
    new = torch.cat(parameters).cpu() - rate * mean
    torch._foreach_copy_(means, list(mean.to("simgpu").split(each)))
    torch._foreach_copy_(parameters, list(new.to("simgpu").split(each)))
"""
NOT_YET = "def update(parameters, gradients, means, rate, momentum):\n    raise NotImplementedError('soon')\n"

ANSWERS = {
    "12.1": Answers(
        lambda case: f"{case['n_many'] * case['step_ms'] / case['n_few'] - case['rest_ms']:.4g} ms",
        (
            Wrong("12.5", "what a whole step may take"),
            Wrong("2", "the other rule's update"),  # 10 - 8
            Wrong("0", "divides the wrong way round"),  # 160 steps of 10 ms over 200, less 8
            Wrong("4500", "microseconds taken for milliseconds"),
            Wrong("7", "Not that long", hint=2),
            Wrong("long", "is not a number"),
        ),
        CASE,
    ),
    "12.2": Answers(
        SOLUTION,
        (
            Wrong(COMPREHENSION, "2,160 launches for 3 updates of 240 tensors", hint=2, earned=0.5),
            Wrong(ON_HOST, "by way of the host", hint=2, earned=0.5),
            Wrong(LATE, "the new gradient comes too late", hint=1, earned=0.5),
            Wrong(AVERAGED, "enter at a tenth", hint=1, earned=0.5),
            Wrong(NOT_KEPT, "The means are still zero", hint=1, earned=0.5),
            Wrong(PLAIN, "The means are still zero", hint=1, earned=0.5),
            Wrong(UPWARDS, "not those of the rule", hint=1, earned=0.5),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
}


@pytest.mark.parametrize("code", [JOINED, TORCHS_OWN], ids=["joined and split", "torch's own optimizer"])
def test_another_way_to_few_launches_earns_full_marks_too(code):
    judged = ex12.FEW.check(code, {})

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def test_the_solution_is_right_on_cases_that_nobody_saw():
    case = ex12.FEW.hidden(random.Random(5))

    assert ex12.FEW.check(SOLUTION, case).state == "right"


def test_the_closed_form_is_the_rule_step_by_step():
    parameters, gradients = numbers()
    means = np.zeros_like(parameters)
    for k in range(N_UPDATES):
        means = MOMENTUM * means + gradients[k]
        parameters = parameters - RATE * means

    assert ex12.expected()[0] == pytest.approx(parameters)
    assert ex12.expected()[1] == pytest.approx(means)


def test_other_seeds_and_numbers_of_tensors_are_other_data():
    assert len(numbers(10)[0]) == sum(sizes(10)) != len(numbers(20)[0])
    assert not np.allclose(numbers(10, seed=1)[0], numbers(10, seed=2)[0])


def test_tensors_of_other_sizes_are_no_answer():
    told = [[0.0] * n for n in sizes(3)]

    assert ex12.joined(told, 3) == [0.0] * sum(sizes(3))
    assert ex12.joined([*told[:2], [0.0]], 3) is None
    assert ex12.joined(told[:2], 3) is None


def test_what_is_asked_holds_the_numbers_of_the_run():
    asked = ex12.ALLOWED.asked(CASE)

    assert "SGD reaches the loss after 200 steps of 10.000\u00a0ms" in asked
    assert "Adam needs 160 steps" in asked
    assert "8.000\u00a0ms" in asked


def test_with_one_rule_alone_nothing_is_asked():
    assert ex12.case_allowed(8e6, {"SGD": (200, 10e6)}) is None


def test_where_both_need_as_many_steps_the_update_may_take_as_long():
    case = ex12.case_allowed(8e6, {"SGD": (100, 10e6), "Adam": (100, 12e6)})

    assert ex12.ALLOWED.check("4" if case["words"]["many"] == "Adam" else "2", case).state == "right"
