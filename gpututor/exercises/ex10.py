"""Exercises of lesson 10: when compiling has paid, and a training loop that replays one graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex10_data import N_BATCHES, N_INPUTS, N_ROWS, RATE, rows_of_data
from gpututor.exercises.typed import judge_number
from gpututor.model.tape import GraphReplay
from gpututor.text import duration

__all__ = ["NOTES", "PAID", "RECALL", "REPLAYED", "case_paid"]

TOLERANCE = 0.05

RECALL = (
    (
        "A stopwatch shows much time in the line that reads the loss. What does deleting it save?",
        "At most the lead that the wait took. Work that the card did meanwhile is to be done in any case.",
    ),
    (
        "A table lies in memory. Why may a loader without workers be slower than none at all?",
        "It goes row by row: Python's time for a row, not the bytes, is what it costs.",
    ),
)
NOTES = (
    "**Ask first**: what does one call of torch do before the card hears of it? Collect: Python, types and shapes, "
    "memory, notes for the backward pass, the driver. **Watch for**: people who call all of it launch overhead and "
    "blame the driver; and people who compile everything at once, a debugging session of ten steps included. "
    "**Discuss**: TorchScript in their own code. Torch 2.13 warns at each torch.jit.script and torch.jit.trace; "
    "torch.export takes its place for running without Python. Simulated: TorchScript's interpreter costs nothing, and "
    "its fuser is left out; compiling takes a base and an amount for each operator, right to an order of magnitude. "
    "pytorch issue 111182 saw compiled training slower than eager: measure before you believe. **Short of time**: "
    "guess, run, the bars, the curve. **Exercise 10.1**: the usual slip is to divide by the whole step. **10.2**: the "
    "usual slip is a graph that reads the first batch for ever."
)


# --- 10.1 ------------------------------------------------------------------------------------------------------------


def case_paid(once_ns: float, steps_ns: Mapping[int, tuple[float, float]]) -> Case:
    """The case of 10.1: what compiling takes once, and by batch a step as it is and compiled, in nanoseconds.

    Asked is the middle one of the batches at which compiled code is faster; none gives an empty case.
    """
    faster = [n for n, (eager, compiled) in steps_ns.items() if compiled < 0.98 * eager]
    if not faster or once_ns <= 0:
        return {}
    batch = sorted(faster)[-1 if len(faster) < 3 else len(faster) // 2 + 1]
    eager, compiled = steps_ns[batch]
    words = {
        "batch": f"{batch} pictures" if batch > 1 else "1 picture",
        "once": duration(once_ns),
        "eager": duration(eager),
        "compiled": duration(compiled),
    }
    return {"words": words, "once_ms": once_ns / 1e6, "eager_ms": eager / 1e6, "compiled_ms": compiled / 1e6}


def judge_paid(answer: Any, case: Case) -> Judged:
    """The verdict on a typed number of steps."""
    once, eager, compiled = case["once_ms"], case["eager_ms"], case["compiled_ms"]
    right = once / (eager - compiled)
    slips = (
        (once / eager, "That is how many steps as they were fit into compiling. Those steps would be done by then."),
        (once / compiled, "That is how many compiled steps fit into compiling. What counts is what each one saves."),
        (right / 1e3, "That looks like thousands of steps, or seconds taken for milliseconds."),
        (right * 1e3, "That looks like milliseconds taken for seconds."),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"Each step saves {duration(1e6 * (eager - compiled))}, so {right:,.0f} steps bring in what compiling "
        f"took. A run of {right / 10:,.0f} steps is faster as it is.",
        slips=slips,
        otherwise="Not after so many.",
        hint=2,
    )


PAID = Exercise(
    "10.1",
    "When has it paid?",
    "number",
    "With {batch} a step, ResNet-50 takes {eager} as it is and {compiled} compiled. Compiling takes {once} once. After "
    "how many steps is the compiled run ahead?",
    (
        "Two runs start together: one compiles first, one goes at once. When does the first catch up?",
        "What does each compiled step win back of what compiling took?",
        "Divide what compiling takes by the difference of the two steps, in the same unit.",
    ),
    judge_paid,
    unit="steps",
)

# --- 10.2 ------------------------------------------------------------------------------------------------------------

MOST_WARM_UP = 4
FUNCTION = "train"
HARNESS = "gpututor.exercises.on_card.ex10:run"
STARTER = f"""import torch

def {FUNCTION}(step, batches):
    # step(x, y) trains the model on one batch: forward, backward, update
    # batches: a list of pairs (x, y) on the card, all of one shape
    for x, y in batches:
        step(x, y)
"""
CHECKS = ("the weights are those after one step on each batch", "nearly every step is one replay")
SHARES = (0.5, 0.5)


def expected_weights(order: tuple[int, ...] = tuple(range(N_BATCHES))) -> list[float]:
    """Weights of a linear model from zero, after a step of gradient descent on each batch in this order.

    Mean squared error of n rows: its gradient is 2/n times the inputs times what is missing.
    """
    x, y = rows_of_data()
    w = np.zeros(N_INPUTS)
    for k in order:
        w += RATE * 2 / N_ROWS * x[k].T @ (y[k] - x[k] @ w)
    return [float(each) for each in w]


def n_replays(launched: Launched) -> int:
    """How often a graph was replayed."""
    return sum(type(entry) is GraphReplay for entry in launched.tape.entries)


def judge_replayed(answer: Any, case: Case) -> Judged:
    """The verdict on a loop that replays a graph."""
    launched, sentence = on_card(str(answer), FUNCTION, HARNESS)
    if not launched:
        return Judged("wrong", _of_capture(sentence), hint=2 if "captur" in sentence else None)
    gave = launched[0].gave if isinstance(launched[0].gave, Mapping) else {}
    weights, replays = gave.get("weights"), n_replays(launched[0])
    if close_to(weights, [0.0] * N_INPUTS) and not replays:
        return NOT_ANSWERED
    right, replayed = close_to(weights, expected_weights(), 1e-3), replays >= N_BATCHES - MOST_WARM_UP
    checks = tuple(map(Check, CHECKS, (right, replayed), SHARES))
    if right and replayed:
        text = (
            f"{replays} replays for {N_BATCHES} batches. The host copies a batch to where the graph reads it and makes "
            "one call; nothing of the step's Python, framework and autograd is left."
        )
        return Judged("right", text, checks)
    if right:
        return Judged(
            "partial", f"The weights are right, with {replays} replays for {N_BATCHES} batches.", checks, hint=1
        )
    return Judged("partial" if replayed else "wrong", *_miss(weights, checks))


def _of_capture(sentence: str) -> str:
    """Torch's word on a capture that can't be, with what follows from it."""
    if "when stream is capturing" not in sentence:
        return sentence
    return f"{sentence.rstrip('.')}. What waits for the card can't be part of a graph."


def _miss(weights: Any, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on wrong weights, by what they amount to; the checks, no picture, and the hint that would help."""
    every = tuple(range(N_BATCHES))
    for n_first in range(MOST_WARM_UP + 1):
        seen = every[:n_first]
        for n_stale in (N_BATCHES - n_first, N_BATCHES):
            for stale in {0, max(0, n_first - 1), min(n_first, N_BATCHES - 1)}:
                if close_to(weights, expected_weights((*seen, *[stale] * n_stale)), 1e-3):
                    return (
                        "Every replay has trained on the same batch: the graph reads where it read.",
                        checks,
                        (),
                        (),
                        3,
                    )
        again = (*every[:1] * n_first, *every), (*seen, *every)
        if n_first and any(close_to(weights, expected_weights(order), 1e-3) for order in again):
            return f"{n_first} steps too many: the warm-up has trained too.", checks, (), (), 2
    return "The weights are not those after one step on each batch.", checks, (), (), 3


REPLAYED = Exercise(
    "10.2",
    "One call a step",
    "code",
    "Each call of `step` launches a dozen kernels one by one. Capture a step once as a graph, and replay it for the "
    "batches that follow. The weights must be the same as before, to the last batch.",
    (
        "`with torch.cuda.graph(graph): step(x, y)`, for a `torch.cuda.CUDAGraph()`, notes kernels and runs none.",
        "Nothing in a capture may wait. Steps before it, on a side stream, train too: let them be the first batches.",
        "A replay reads the capture's memory. Clone a batch for it, and `copy_` each new one into the clone.",
    ),
    judge_replayed,
    starter=STARTER,
    needs_run=False,
)
