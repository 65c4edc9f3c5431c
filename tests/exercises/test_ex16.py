"""Exercises 16.1 and 16.2: solutions, wrong answers, and the closed forms that they are judged by."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex16
from gpututor.exercises.on_card.ex16_data import N_PARTS, N_RANKS, dealt
from tests.exercises.answers import Answers, Wrong

# A pass of 100 ms and an exchange that shows for 400: one pass 500, eight 1,200. Nine tenths work: 36 passes.
CASE = ex16.case_rarely(500e6, 1200e6, 8, "Ethernet", "drawn cards")

SOLUTION = """
from contextlib import nullcontext

def train_step(model, optimizer, parts):
    optimizer.zero_grad()
    for k, (x, y) in enumerate(parts):
        with nullcontext() if k == len(parts) - 1 else model.no_sync():
            loss = ((model(x) - y) ** 2).mean() / len(parts)
            loss.backward()
    optimizer.step()
"""
NOT_DIVIDED = SOLUTION.replace(" / len(parts)", "")
NEVER = SOLUTION.replace("nullcontext() if k == len(parts) - 1 else model.no_sync()", "model.no_sync()")
EACH = SOLUTION.replace("nullcontext() if k == len(parts) - 1 else model.no_sync()", "nullcontext()")
CLEARED = SOLUTION.replace(
    "            loss.backward()", "            optimizer.zero_grad()\n            loss.backward()"
)
FIRST = SOLUTION.replace("k == len(parts) - 1", "k == 0")


def passes(case) -> str:
    work = (case["several_ms"] - case["once_ms"]) / (case["n_passes"] - 1)
    return str(9 * (case["once_ms"] - work) / work)


ANSWERS = {
    "16.1": Answers(
        passes,
        (
            Wrong("40", "a tenth of the work"),  # 400 / (0.1 * 100)
            Wrong("45", "holds a backward pass"),  # 9 * 500 / 100
            Wrong("24", "A pass takes less"),  # 9 * 400 / 150
            Wrong("10", "as long as a pass"),
            Wrong("3", "Not so many", hint=2),
        ),
        CASE,
    ),
    "16.2": Answers(
        SOLUTION,
        (
            Wrong(EACH, "exchanged 4 times", hint=1, earned=0.5),
            Wrong(NOT_DIVIDED, "4 times too long", hint=3, earned=0.5),
            Wrong(NEVER, "Nothing was exchanged", hint=2),
            Wrong(CLEARED, "Only part 4", hint=2, earned=0.5),
            Wrong(FIRST, "are not those", hint=2, earned=0.5),
        ),
    ),
}


def test_the_weights_of_one_step_are_the_closed_form_of_least_squares():
    rows = [
        (row, y)
        for rank in range(N_RANKS)
        for part in range(N_PARTS)
        for row, y in zip(*dealt()[rank][part], strict=True)
    ]
    step = 1e-6  # central differences of the mean squared error at zero, which know nothing of the closed form

    def loss(w: float) -> float:
        return sum((w * row[0] - wanted) ** 2 for row, wanted in rows) / len(rows)

    slope = (loss(step) - loss(-step)) / (2 * step)

    assert ex16.expected_weights()[0] == pytest.approx(-ex16.RATE * slope, rel=1e-5)


def test_another_seed_is_another_step():
    assert ex16.expected_weights(1) != ex16.expected_weights(2)


def test_code_that_typed_in_the_weights_of_one_seed_fails_another():
    typed = f"""
import torch
def train_step(model, optimizer, parts):
    with torch.no_grad():
        model.module.weight.copy_(torch.tensor([{ex16.expected_weights(1)}]).to(model.module.weight.device))
"""

    assert ex16.ONCE.check(typed, {"seed": 2}).state == "wrong"


def test_where_the_exchange_hides_under_one_pass_nothing_is_asked():
    assert ex16.case_rarely(110e6, 810e6, 8, "NVLink", "drawn cards") == {}
