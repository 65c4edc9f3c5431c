"""Exercises 11.1 and 11.2: solutions, wrong answers, and the numbers that they are judged by."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpututor.exercises import ex11
from gpututor.exercises.on_card.ex11_data import FIRST_SCALE, N_SPIKES, N_STEPS, RATE, SPIKE, gradients
from tests.exercises.answers import Answers, Wrong

# fp32: flat at 10 ms, then 0.1 ms a picture; fp16: flat at 12 ms, then 0.05 ms. They cross at 12 ms, 120 pictures.
CASE = ex11.case_pays((10e6, 12e6), (100e6, 50e6), 1000)

SOLUTION = """
import torch

def train_step(weights, gradient_of, scale, rate):
    gradient = gradient_of(scale)
    if torch.isfinite(gradient).all():
        weights -= rate * (gradient.float() / scale)
        return scale
    return scale / 2
"""
NO_WAIT = """
import torch

def train_step(weights, gradient_of, scale, rate):
    gradient = gradient_of(scale).float() / scale
    whole = torch.isfinite(gradient).all()
    weights -= rate * torch.where(whole, gradient, torch.zeros_like(gradient))
    return scale * torch.where(whole, 1.0, 0.5)
"""
SCALED = SOLUTION.replace(" / scale)", ")")
EVERYTHING = """
def train_step(weights, gradient_of, scale, rate):
    weights -= rate * (gradient_of(scale).float() / scale)
    return scale
"""
HALVES_FIRST = SOLUTION.replace("gradient.float() / scale", "(gradient / scale).float()")
WHERE_FINITE = """
import torch

def train_step(weights, gradient_of, scale, rate):
    gradient = gradient_of(scale).float()
    finite = torch.isfinite(gradient)
    weights -= rate * torch.where(finite, gradient, torch.zeros_like(gradient)) / scale
    return scale if finite.all() else scale / 2
"""
AGAIN = """
import torch

def train_step(weights, gradient_of, scale, rate):
    gradient = gradient_of(scale)
    while not torch.isfinite(gradient).all():
        scale /= 2
        gradient = gradient_of(scale)
    weights -= rate * (gradient.float() / scale)
    return scale
"""
UNSCALED = SOLUTION.replace("gradient_of(scale)", "gradient_of(1.0)").replace(" / scale)", ")")
KEPT = SOLUTION.replace("return scale / 2", "return scale")
TWICE = SOLUTION.replace("torch.isfinite(gradient).all()", "not (gradient.isinf().any() or gradient.isnan().any())")
ON_HOST = """
import torch

def train_step(weights, gradient_of, scale, rate):
    gradient = gradient_of(scale).cpu().float()
    if torch.isfinite(gradient).all():
        weights -= (rate * (gradient / scale)).to("simgpu")
        return scale
    return scale / 2
"""
NOT_YET = "def train_step(weights, gradient_of, scale, rate):\n    raise NotImplementedError('soon')\n"

ANSWERS = {
    "11.1": Answers(
        lambda case: f"{case['host_16_ms'] / case['card_32_ms']:.1f} pictures",
        (
            Wrong("100", "There fp32 leaves its flat"),
            Wrong("240", "There fp16 leaves its flat"),  # 12 ms / 0.05
            Wrong("40", "adds host and card"),  # 2 ms / 0.05
            Wrong("200", "no step has both"),  # 10 ms / 0.05
            Wrong("1000", "Not there", hint=2),
            Wrong("many", "is not a number"),
        ),
        CASE,
    ),
    "11.2": Answers(
        SOLUTION,
        (
            Wrong(EVERYTHING, "no numbers any more", hint=2),
            Wrong(SCALED, "moved by the scaled gradient", hint=1),
            Wrong(HALVES_FIRST, "Divided while still in halves", hint=1),
            Wrong(WHERE_FINITE, "left out whole", hint=2),
            Wrong(AGAIN, "not done again", hint=2),
            Wrong(UNSCALED, "Without a scale", hint=1),
            Wrong(KEPT, "The scale should be 8,192 in the end, halved 3 times", hint=2, earned=0.8),
            Wrong(TWICE, "waits 45 times in 24 steps", hint=3, earned=0.7),  # 21 twice, 3 once
            Wrong(ON_HOST, "the work belongs there"),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
}


def test_a_scaler_that_never_waits_earns_full_marks():
    judged = ex11.SCALER.check(NO_WAIT, {})

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def test_the_solution_is_right_on_cases_that_nobody_saw():
    case = ex11.SCALER.hidden(random.Random(5))

    assert ex11.SCALER.check(SOLUTION, case).state == "right"


def test_the_steps_without_a_spike_are_added_up():
    true = gradients()
    good = true[np.abs(true).max(1) < SPIKE]
    weights, scale = ex11.expected(true)

    assert len(good) == N_STEPS - N_SPIKES
    assert scale == FIRST_SCALE / 2**N_SPIKES
    assert np.allclose(weights, -RATE * good.sum(0), atol=1e-4)  # a half has eleven digits of two


def test_every_slip_is_another_result_than_the_right_one():
    true = gradients()
    ours = ex11.expected(true)[0]
    slips = ({"unscaled": False}, {"leaves_out": "number"}, {"leaves_out": "nothing"}, {"halves_first": True})

    assert not any(ex11.same(ex11.expected(true, **slip)[0], ours) for slip in slips)


@pytest.mark.parametrize("seed", [11, 1000, 54321])
def test_a_spike_overflows_at_every_scale_on_the_way(seed):
    true = gradients(seed, n_spikes=6)

    assert (np.abs(true).max(1) == SPIKE).sum() == 6
    assert FIRST_SCALE / 2**6 * SPIKE >= 65_504  # the largest half


def test_what_is_asked_holds_the_numbers_of_the_run():
    asked = ex11.PAYS.asked(CASE)

    assert "12.0\u00a0ms in fp16" in asked or "12\u00a0ms in fp16" in asked


@pytest.mark.parametrize(("few", "many"), [((10, 10), (100, 50)), ((10, 12), (100, 100))])
def test_where_there_is_no_such_batch_nothing_is_asked(few, many):
    assert ex11.case_pays(few, many, 1000) is None
