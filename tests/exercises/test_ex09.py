"""Exercises 9.1 and 9.2: solutions, wrong answers, and the formulas that they are judged by."""

from __future__ import annotations

import numpy as np
import pytest

from gpututor.exercises import ex09
from gpututor.experiments.answers import at_length
from gpututor.experiments.stopwatch import Stopwatch
from tests.exercises.answers import Answers, Wrong

# Host and card need 6 and 8 ms; of the 9 ms that the step takes with two readings, 8 are needed in any case.
WATCHED = {
    at_length("both", ex09.ASKED_LENGTH): Stopwatch(9e6, 0.5e6, 3e6, 2e3, 8e6, 2.0),
    at_length("silent", ex09.ASKED_LENGTH): Stopwatch(8.2e6, 0.5e6, 0.0, 2e3, 8e6, 0.0),
}
CASE = {"machine": "p3.2xlarge"}

SOLUTION = """
import torch
from torch.nn.functional import cross_entropy

def train(model, optimizer, batches, bar):
    log, total = [], 0.0
    for k, (x, y) in enumerate(batches, 1):
        loss = cross_entropy(model(x), y, ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total + loss.detach()
        if k % 10 == 0:
            log.append((total / 10).item())
            total = 0.0
    return log
"""
NO_BAR = ex09.STARTER.replace("        bar.show(loss=loss.item())\n", "")
TENSORS = SOLUTION.replace(".item()", "")
LAST_ONES = SOLUTION.replace("(total / 10).item()", "loss.item()")
TEN_IN_A_ROW = (
    SOLUTION.replace("total = 0.0", "losses = []")
    .replace("total = total + loss.detach()", "losses.append(loss.detach())")
    .replace("(total / 10).item()", "sum(each.item() for each in losses) / 10")
    .replace("log, total = [], 0.0", "log, losses = [], []")
)
NOT_LEARNED = SOLUTION.replace("        optimizer.step()\n", "")
AT_THE_END = SOLUTION.replace("log.append((total / 10).item())", "log.append(total / 10)").replace(
    "return log", "return torch.stack(log).tolist()"
)

ANSWERS = {
    "9.1": Answers(
        lambda case: f"{case['step_ms'] - max(case['host_ms'], case['card_ms'])} ms",
        (
            Wrong("3", "what the stopwatch shows"),
            Wrong("5", "side by side already"),  # 6 + 8 - 9
            Wrong("6", "if nothing ran side by side"),
            Wrong("8", "must take in any case"),
            Wrong("1000", "looks like microseconds"),
            Wrong("0.3", "which of the two", hint=2),
        ),
        ex09.case_most(WATCHED),
    ),
    "9.2": Answers(
        SOLUTION,
        (
            Wrong(ex09.STARTER + "\n# as it was", "waits 4 times a step", hint=1, earned=0.5),
            Wrong(NO_BAR, "waits 3 times a step", hint=1, earned=0.5),
            Wrong(TEN_IN_A_ROW, "waits once a step", hint=1, earned=0.5),
            Wrong(TENSORS, "The log holds tensors", hint=3, earned=0.2),
            Wrong(LAST_ONES, "not the means of ten losses", hint=2, earned=0.2),
            Wrong(NOT_LEARNED, "not the means of ten losses", hint=2),
        ),
        CASE,
    ),
}


def test_a_log_that_is_read_once_after_the_run_earns_full_marks():
    assert ex09.LOGGED.check(AT_THE_END, CASE).state == "right"


def test_the_first_loss_is_that_of_a_guess_among_all_kinds():
    # with weights of nothing every kind has the same chance, and the loss is the logarithm of their number
    xs, ys = ex09.rows_of_data()
    log, weights = ex09.expected()
    first = np.log(ex09.N_KINDS)

    assert log[0] < first
    assert sorted(log, reverse=True) == log
    assert weights.shape == (ex09.N_KINDS, xs.shape[2])
    assert (ys == -1).mean() == pytest.approx(ex09.UNLABELLED_SHARE, abs=0.02)


def test_the_expected_log_is_what_torch_gives_on_the_processor():
    torch = pytest.importorskip("torch")
    names: dict[str, object] = {}
    exec(SOLUTION, names)
    xs, ys = ex09.rows_of_data()
    model = torch.nn.Linear(ex09.N_INPUTS, ex09.N_KINDS, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    batches = [(torch.tensor(x), torch.tensor(y)) for x, y in zip(xs, ys, strict=True)]
    log = names["train"](model, torch.optim.SGD(model.parameters(), lr=ex09.RATE), batches, None)

    assert log == pytest.approx(ex09.expected()[0])
    assert model.weight.detach().numpy() == pytest.approx(ex09.expected()[1])


def test_what_can_be_saved_is_asked_for_with_the_numbers_of_the_run():
    asked = ex09.MOST.asked(ex09.case_most(WATCHED))

    assert "9.00\u00a0ms" in asked
    assert "6.00\u00a0ms" in asked
    assert "8.00\u00a0ms" in asked


def test_what_was_counted_for_the_drawn_case_is_right():
    assert ex09.MOST.check("1.0 ms", ANSWERS["9.1"].case).state == "right"
