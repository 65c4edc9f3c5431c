"""Exercises 7.1 and 7.2: solutions, wrong answers, and what the harness counts."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex07
from gpututor.exercises.on_card.ex07 import run
from tests.exercises.answers import Answers, Wrong

# 1.28 ms for the rows of a batch of 256 (5 µs each), 0.5 ms for all else: with 1,024 rows 0.5 + 4 · 1.28 = 5.62 ms.
CASE = ex07.case_larger({"rows-0": 1.78e6, "batch-0": 0.5e6, "rows-large": 5.9e6}, 256, 1024)

SOLUTION = """
def batches(x, y, order, batch_size):
    for k in range(0, len(order), batch_size):
        piece = order[k : k + batch_size]
        yield x[piece], y[piece]
"""
ROW_BY_ROW = f"{ex07.STARTER}    if rows:\n        yield torch.stack(rows), torch.stack(labels)\n"
NO_LAST = SOLUTION.replace("len(order), batch", "len(order) - batch_size, batch")
IN_THE_TABLES_ORDER = SOLUTION.replace("x[piece], y[piece]", "x[k : k + batch_size], y[k : k + batch_size]")
BY_LISTS = """
import torch

def batches(x, y, order, batch_size):
    x, y = x.tolist(), y.tolist()
    for k in range(0, len(order), batch_size):
        piece = order[k : k + batch_size]
        yield torch.tensor([x[i] for i in piece]), torch.tensor([y[i] for i in piece])
"""
OTHER_SOLUTIONS = {
    "a loader with a sampler of batches": """
from torch.utils.data import BatchSampler, DataLoader, TensorDataset

def batches(x, y, order, batch_size):
    sampler = BatchSampler(order, batch_size, drop_last=False)
    return DataLoader(TensorDataset(x, y), batch_size=None, sampler=sampler)
""",
    "put into order once, then split": """
import torch

def batches(x, y, order, batch_size):
    order = torch.as_tensor(order)
    return zip(x[order].split(batch_size), y[order].split(batch_size))
""",
}

ANSWERS = {
    "7.1": Answers(
        lambda case: f"{case['at_once_ms'] + case['times'] * max(0.0, case['by_row_ms'] - case['at_once_ms'])} ms",
        (
            Wrong("7.1", "lets the whole step grow"),  # 4 · 1.78
            Wrong("1.78", "today's step"),
            Wrong("0.5", "fetched at once"),
            Wrong("20", "Split the step of today", hint=1),
            Wrong("five", "is not a number"),
        ),
        CASE,
    ),
    "7.2": Answers(
        SOLUTION,
        (
            Wrong(ROW_BY_ROW, "calls of torch", hint=2, earned=0.5),
            Wrong(BY_LISTS, "calls of torch", hint=2, earned=0.5),
            Wrong(NO_LAST, "fill no whole batch", hint=3, earned=0.9),
            Wrong(IN_THE_TABLES_ORDER, "another order", hint=1),
        ),
    ),
}


@pytest.mark.parametrize("code", OTHER_SOLUTIONS.values(), ids=OTHER_SOLUTIONS)
def test_other_ways_to_ask_once_are_right_too(code):
    assert ex07.BATCHES.check(code, {}).earned_share == 1


def test_the_answer_is_compared_with_what_the_run_measured():
    assert "5.90\u00a0ms" in ex07.LARGER.check("5.6", CASE).text


def test_code_that_gives_nothing_reads_not_answered_yet():
    assert ex07.BATCHES.check("def batches(x, y, order, batch_size):\n    return None\n", {}).state == "unanswered"


@pytest.mark.parametrize(
    ("way", "n_calls"),
    [
        pytest.param(lambda x, y, order, b: [(x[order], y[order])], 2, id="two tensors indexed once"),
        pytest.param(lambda x, y, order, b: [(x[0], y[0]), (x[1], y[1])], 4, id="twice"),
        pytest.param(lambda x, y, order, b: [(x.tolist(), y.tolist())], 6, id="three rows walked through, twice"),
        pytest.param(lambda x, y, order, b: [(len(x), x.shape[0], y.dim())], 0, id="its outside only"),
    ],
)
def test_the_harness_counts_what_is_asked_of_the_table(way, n_calls):
    told = run(way, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0.0, 1.0, 2.0], [2, 0, 1], 2)

    assert told["n_calls"] == n_calls


def test_what_was_yielded_comes_back_as_plain_data():
    told = run(lambda x, y, order, b: [(x[order], y[order])], [[1.0], [3.0]], [0.0, 1.0], [1, 0], 2)

    assert told["batches"] == [[[[3.0], [1.0]], [1.0, 0.0]]]


def test_what_was_counted_for_the_drawn_case_is_right():
    assert ex07.LARGER.check("5.62 ms", ANSWERS["7.1"].case).state == "right"
