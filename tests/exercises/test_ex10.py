"""Exercises 10.1 and 10.2: solutions, wrong answers, and the formulas that they are judged by."""

from __future__ import annotations

import numpy as np
import pytest

from gpututor.exercises import ex10, planted
from gpututor.ledger import Account
from tests.exercises.answers import Answers, Wrong

# Compiling takes 20 s and saves 10 of 40 ms a step: it has paid after 20 / 0.01 = 2,000 steps.
CASE = ex10.case_paid(20e9, {1: (40e6, 30e6)})

SOLUTION = """
import torch

def train(step, batches):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for x, y in batches[:3]:
            step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    held_x, held_y = (each.clone() for each in batches[3])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(held_x, held_y)
    for x, y in batches[3:]:
        held_x.copy_(x)
        held_y.copy_(y)
        graph.replay()
"""
NOT_COPIED = SOLUTION.replace("        held_x.copy_(x)\n        held_y.copy_(y)\n", "")
TRAINED_TWICE = SOLUTION.replace("batches[3:]", "batches")
READS = SOLUTION.replace("        step(held_x, held_y)\n", "        print(step(held_x, held_y).item())\n")
STILL_EAGER = """
def train(step, batches):
    for pair in batches:
        step(*pair)
"""
HALF = SOLUTION.replace("    for x, y in batches[3:]:", "    for x, y in batches[3:12]:") + (
    "    for x, y in batches[12:]:\n        step(x, y)\n"
)
NO_WARM_UP = """
import torch

def train(step, batches):
    held = [each.clone() for each in batches[0]]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(*held)
    for pair in batches:
        for place, new in zip(held, pair):
            place.copy_(new)
        graph.replay()
"""
NOT_YET = "def train(step, batches):\n    raise NotImplementedError('soon')\n"

SEED = 3  # of the recording
IF_IT_WERE = {
    Account.LAUNCH_OVERHEAD: "kernels would be short",
    Account.BLOCKING_SYNC: "stand in them again and again",
    Account.WAITING_FOR_INPUT: "time on the next batch",
    Account.EXPOSED_COPY: "would stand in it",
    Account.TOO_FEW_BLOCKS: "do few of them work",
    Account.MEMORY_BOUND: "wait for bytes",
}
ANSWERS = {
    "10.1": Answers(
        lambda case: f"{case['once_ms'] / (case['eager_ms'] - case['compiled_ms']):,.0f} steps",
        (
            Wrong("500", "fit into compiling. Those steps"),  # 20 s of 40 ms
            Wrong("667", "compiled steps fit into compiling"),  # 20 s of 30 ms
            Wrong("2", "thousands of steps"),
            Wrong("12", "Not after so many", hint=2),
            Wrong("soon", "is not a number"),
        ),
        CASE,
    ),
    "10.2": Answers(
        SOLUTION,
        (
            Wrong(STILL_EAGER, "0 replays for 24 batches", hint=1, earned=0.5),
            Wrong(HALF, "9 replays for 24 batches", hint=1, earned=0.5),
            Wrong(NOT_COPIED, "trained on the same batch", hint=3, earned=0.5),
            Wrong(TRAINED_TWICE, "the warm-up has trained too", hint=2, earned=0.5),
            Wrong(READS, "can't be part of a graph", hint=2),
            Wrong(NOT_YET, "NotImplementedError"),
        ),
    ),
    "10.3": Answers(
        lambda case: planted.planted(case["seed"]).option,
        tuple(
            Wrong(cause.option, IF_IT_WERE[cause.account], hint=1)
            for cause in planted.CAUSES
            if cause.account is not planted.planted(SEED).account
        ),
        dict(planted.case_of(SEED)),
    ),
}


def test_a_graph_without_warm_up_earns_full_marks():
    # a simulated card needs none; the lesson's own code warms up as a real one wants it
    assert ex10.REPLAYED.check(NO_WARM_UP, {}).state == "right"


def test_the_expected_weights_are_what_torch_gives_on_the_processor():
    torch = pytest.importorskip("torch")
    xs, ys = ex10.rows_of_data()
    model = torch.nn.Linear(ex10.N_INPUTS, 1, bias=False, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=ex10.RATE)
    for x, y in zip(xs, ys, strict=True):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(torch.tensor(x)).squeeze(1), torch.tensor(y)).backward()
        optimizer.step()

    assert model.weight.detach().numpy()[0] == pytest.approx(
        ex10.expected_weights(range(ex10.N_BATCHES), ex10.rows_of_data())
    )


def test_any_other_order_of_the_batches_gives_other_weights():
    rows, order = ex10.rows_of_data(), range(ex10.N_BATCHES)

    assert not np.allclose(ex10.expected_weights(order[::-1], rows), ex10.expected_weights(order, rows), rtol=0.01)


def test_it_has_paid_when_what_is_saved_is_what_was_spent():
    assert ex10.PAID.check("2000", CASE).state == "right"


def test_what_is_asked_holds_the_numbers_of_the_run():
    asked = ex10.PAID.asked(CASE)

    assert "20.0\u00a0s" in asked
    assert "40.0\u00a0ms" in asked
    assert "30.0\u00a0ms" in asked


def test_asked_is_a_batch_at_which_compiling_helps():
    steps = {1: (40e6, 20e6), 2: (40e6, 21e6), 4: (41e6, 25e6), 8: (44e6, 38e6), 16: (80e6, 80e6)}

    assert ex10.case_paid(1e9, steps)["words"]["batch"] == "8 pictures"


def test_where_compiling_never_helps_nothing_is_asked():
    assert ex10.case_paid(1e9, {1: (40e6, 40e6)}) == {}
