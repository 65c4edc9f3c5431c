"""Exercises of lesson 5: when width stops being free, and one wide product in the place of many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.typed import judge_number
from gpututor.experiments.wider_or_deeper import ASKED_FACTOR, FACTORS
from gpututor.jobs.tutorial import HIDDEN
from gpututor.model.kernels import Gemm
from gpututor.model.tape import TapeOp
from gpututor.text import duration

__all__ = ["COMBINED", "NOTES", "RECALL", "WIDEST", "widest_case"]

TOLERANCE = 0.2  # two points and a square law say no more: not every kernel's time has one fixed and one growing part

RECALL = (
    (
        "Why did a Transformer's step hardly grow with the words, and an LSTM's did?",
        "Each state of an LSTM waits for the one before it: a chain. A Transformer looks at all words at once.",
    ),
    (
        "How busy is a card whose kernels are shorter than their launches?",
        "As busy as the kernel's time is a share of the launch's. Until both are equal, a longer kernel is free.",
    ),
)
NOTES = (
    "**Ask first**: which of the two would you have told him? Then guess and run. **Watch for**: people who read a "
    "busier gauge as a better model; the loss is in the table. And people who take deeper for useless: it may learn "
    "more, it only doesn't fill the card. **Discuss**: the curve with another card chosen. Where does width stop "
    "being free, and where do layers win on the gauge? **Short of time**: guess, run, the curve, takeaway. "
    "**Exercise 5.1**: the usual slip is four times all of it, though a part of a kernel's time doesn't grow. "
    "**Exercise 5.2**: the usual slip is to join the matrices at every call, which launches more than it saves."
)


# --- 5.1 -------------------------------------------------------------------------------------------------------------


def widest_case(step_ns: Mapping[int, float], kernels_ns: Mapping[int, float]) -> Case:
    """The case of 5.1 from the reader's run: steps, and the time in which kernels run, by width over the tutorial's.

    Wants 1, the two largest of `FACTORS`, and the width that is asked for.
    """
    known = FACTORS[-2:]
    words = {
        "units": str(known[0] * HIDDEN),
        "more_units": str(known[1] * HIDDEN),
        "asked": str(ASKED_FACTOR * HIDDEN),
        "kernels": duration(kernels_ns[known[0]]),
        "more_kernels": duration(kernels_ns[known[1]]),
        "host": duration(step_ns[1]),
    }
    return {
        "words": words,
        "host_ms": step_ns[1] / 1e6,
        "kernels_ms": kernels_ns[known[1]] / 1e6,
        "grown_ms": (kernels_ns[known[1]] - kernels_ns[known[0]]) / 1e6,
        "step_ms": step_ns[known[1]] / 1e6,
        "ms": step_ns[ASKED_FACTOR] / 1e6,
    }


def judge_widest(answer: Any, case: Case) -> Judged:
    """The verdict on a typed time in milliseconds."""
    host, kernels, right = case["host_ms"], case["kernels_ms"], case["ms"]
    free = "Up to now the host was the slower of the two. Four times the weights change that; compare them again."
    slips = (
        (4 * kernels, "Not all of it grows fourfold: a part of each kernel's time is there at any width."),
        (2 * kernels, "Twice as wide is four times the weights: what goes in doubles, and what comes out does."),
        (host, free),
        (case["step_ms"], free),
        (right * 1e3, "That looks like microseconds. Asked are milliseconds."),
        (right / 1e3, "That looks like seconds. Asked are milliseconds."),
    )
    kernels_then = kernels + 4 * case["grown_ms"]
    which = (
        f"four times the growth gives kernels of {duration(kernels_then * 1e6)}, and the card is the slower one now"
        if right > 1.3 * host
        else "the host still sets the pace"
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"The run took {duration(right * 1e6)}: {which}.",
        slips=slips,
        otherwise="Estimate how long the kernels will run, and compare it with the host.",
        hint=2,
    )


WIDEST = Exercise(
    number="5.1",
    title="Wider still",
    kind="number",
    task=(
        "One sentence a step. The host needs about {host} for a step of any width. Kernels run {kernels} of it with "
        "{units} units and {more_kernels} with {more_units}. About how many **milliseconds** does a step take with "
        "{asked} units? The run has timed it; within a fifth counts as right."
    ),
    hints=(
        "Two clocks run side by side, the host's and the card's. Which of them grows with the width?",
        "A layer's weights are a matrix, as high as it is wide. What part of a kernel's time is there at any width?",
        "What the last doubling added, the next one adds four times. The step is the longer of the two clocks.",
    ),
    judge=judge_widest,
    unit="ms",
)

# --- 5.2 -------------------------------------------------------------------------------------------------------------

FUNCTION = "make_gates"
STARTER = f"""import torch
from torch.nn.functional import linear

def {FUNCTION}(w_in, w_rec):
    # two lists of square matrices; what happens here happens once
    def gates(word, state):
        # this happens at every word
        made = []
        for a, b in zip(w_in, w_rec):
            made.append(linear(word, a) + linear(state, b))
        return made
    return gates
"""
HARNESS = "gpututor.exercises.on_card.ex05:run"
N_GATES = (1, 2, 4, 8)
BATCH, WIDTH = 3, 6
FEWEST = 3  # two products and their sum; joined into one product it's two: laying word and state side by side, product
CHECKS = (
    "the same gates as before",
    "two products at most, however many gates",
    "no more kernels than a single gate's",
)
SHARES = (0.2, 0.5, 0.3)
Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=8)
def drawn(n_gates: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Weights of the input and of the state (gates, width, width), a word and a state; the same at every call."""
    draws = np.random.default_rng(n_gates)
    shapes = ((n_gates, WIDTH, WIDTH), (n_gates, WIDTH, WIDTH), (BATCH, WIDTH), (BATCH, WIDTH))
    w_in, w_rec, word, state = (np.round(draws.normal(size=shape), 3) for shape in shapes)
    return w_in, w_rec, word, state


def expected(n_gates: int) -> list[Any]:
    """The gates in double precision."""
    w_in, w_rec, word, state = drawn(n_gates)
    return [(word @ a.T + state @ b.T).tolist() for a, b in zip(w_in, w_rec, strict=True)]


def kernels_of(launched: Launched) -> list[Any]:
    """Every kernel that was launched."""
    return [kernel for entry in launched.tape.entries if isinstance(entry, TapeOp) for kernel in entry.kernels]


def _is_on_the_card(launched: Launched, n_gates: int) -> bool:
    """Whether at least the products' arithmetic was done there: a multiplication and an addition for each weight."""
    return launched.flop(machine(DEFAULT_MACHINE)) >= 2 * 2 * n_gates * BATCH * WIDTH**2


def judge_combined(answer: Any, case: Case) -> Judged:
    """The verdict on gates that are made of one wide product."""
    calls = []
    for n in N_GATES:
        w_in, w_rec, word, state = drawn(n)
        calls.append([DEFAULT_MACHINE, [w_in.tolist(), w_rec.tolist()], [word.tolist(), state.tolist()]])
    runs, why = on_card(str(answer), FUNCTION, HARNESS, calls, reads_before=True)  # what they read, they were handed
    if not runs:
        return Judged("wrong", why)
    pairs = list(zip(runs, N_GATES, strict=True))
    same = all(close_to(run.gave, expected(n), 1e-3, 1e-4) and _is_on_the_card(run, n) for run, n in pairs)
    kernels = [kernels_of(run) for run in runs]
    products = max(sum(type(kernel) is Gemm for kernel in each) for each in kernels)
    few = same and products <= 2
    fewest = few and max(map(len, kernels)) <= FEWEST
    checks = tuple(map(Check, CHECKS, (same, few, fewest), SHARES))
    theirs = tuple((float(n), float(len(each))) for n, each in zip(N_GATES, kernels, strict=True))
    ours = tuple((float(n), float(FEWEST)) for n in N_GATES)
    if fewest:
        text = f"{len(kernels[-1])} kernels for {N_GATES[-1]} gates, as for one: wider, not more. cuDNN does the same."
        return Judged("right", text, checks, theirs, ours)
    if few:
        text = f"The products are joined, but {N_GATES[-1]} gates still launch {len(kernels[-1])} kernels."
        return Judged("partial", text, checks, theirs, ours, 3)
    if same:
        text = f"The gates are right, but {N_GATES[-1]} of them take {products} products."
        return Judged("partial", text, checks, theirs, ours, 1)
    return Judged(
        "wrong", "The gates are not those that were asked for, or not made on the card.", checks, theirs, ours, 2
    )


COMBINED = Exercise(
    number="5.2",
    title="Wider instead of more",
    kind="code",
    task=(
        f"A recurrent cell multiplies one word with several matrices, and one state with several others. `{FUNCTION}` "
        "makes a function that does so, gate by gate. Make it launch as many kernels for eight gates as for one. The "
        "circles are what is enough; your function is drawn as a line."
    ),
    hints=(
        "Two matrices that are multiplied with the same word: could they be one matrix, twice as high?",
        "`torch.cat(w_in)` lays the matrices on top of each other. Do it once, outside of `gates`, in the same order.",
        "Add the two wide results before you cut them: `(linear(word, a) + linear(state, b)).chunk(len(w_in), -1)`.",
    ),
    judge=judge_combined,
    starter=STARTER,
    x_title="gates",
    needs_run=False,
)
