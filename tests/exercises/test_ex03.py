"""Exercises 3.1 and 3.2: solutions, wrong answers, and the closed forms that they are judged by."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex03
from tests.exercises.answers import Answers, Wrong

# 2 GiB at any batch and 64 MiB a picture, on a card of 16 GiB: (16 - 2) GiB / 64 MiB = 224 pictures.
CASE = {
    "small": 16,
    "large": 32,
    "small_bytes": 3 * 2**30,
    "large_bytes": 4 * 2**30,
    "card_bytes": 16 * 2**30,
    "words": {
        "small": "16",
        "large": "32",
        "small_gib": "3.00 GiB",
        "large_gib": "4.00 GiB",
        "card": "a drawn card",
        "card_gib": "16 GiB",
        "tolerance": "5 %",
    },
}

SOLUTION = """
def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    n_parts = len(x) // 8
    for part, wanted in zip(x.split(8), y.split(8)):
        loss = ((model(part) - wanted) ** 2).mean() / n_parts
        loss.backward()
    optimizer.step()
"""
NOT_DIVIDED = SOLUTION.replace(" / n_parts", "")
CLEARED_EACH_TIME = SOLUTION.replace(
    "        loss.backward()", "        optimizer.zero_grad()\n        loss.backward()"
)
LARGER_STEPS = SOLUTION.replace("        loss.backward()", "        loss.backward()\n        optimizer.step()")


def largest(case) -> str:
    each = (case["large_bytes"] - case["small_bytes"]) / (case["large"] - case["small"])
    return str((case["card_bytes"] - (case["small_bytes"] - each * case["small"])) // each)


ANSWERS = {
    "3.1": Answers(
        largest,
        (
            Wrong("128", "all memory to grow with the batch"),  # 16 GiB over 4 GiB for 32
            Wrong("85", "all memory to grow with the batch"),  # 16 GiB over 3 GiB for 16
            Wrong("40", "Not that many", hint=2),
            Wrong("many", "is not a number"),
        ),
        CASE,
    ),
    "3.2": Answers(
        SOLUTION,
        (
            Wrong(ex03.STARTER + "\n# as it was", "a product had 32 rows", hint=1, earned=0.6),
            Wrong(NOT_DIVIDED, "4 times too large", hint=3, earned=0.4),
            Wrong(CLEARED_EACH_TIME, "What does one backward do", hint=2, earned=0.4),
            Wrong(LARGER_STEPS, "What does one backward do", hint=2, earned=0.4),
            Wrong("def train_step(model, optimizer, x, y):\n    return None", "What does one backward do", hint=2),
        ),
    ),
}


def test_the_weights_of_one_step_are_the_closed_form_of_least_squares():
    x, y = ex03.rows_of_data()
    # by central differences of the mean squared error at zero, which know nothing of the closed form
    step = 1e-6

    def loss(w: float) -> float:
        return sum((w * row[0] - wanted) ** 2 for row, wanted in zip(x, y, strict=True)) / len(x)

    slope = (loss(step) - loss(-step)) / (2 * step)

    assert ex03.expected_weights((x, y))[0] == pytest.approx(-ex03.RATE * slope, rel=1e-5)


def test_what_fits_is_said_with_both_parts_of_the_memory():
    text = ex03.LARGEST.check("224", CASE).text

    assert "2.00\u00a0GiB" in text
    assert "64\u00a0MiB" in text
