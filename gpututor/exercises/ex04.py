"""Exercises of lesson 4: how long a longer sequence takes, and what an LSTM's loop can do before it begins."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE, Machine
from gpututor.exercises import drawn
from gpututor.exercises.coded import ELSEWHERE, Laid, Launched, close_to, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex04_data import BATCH, WIDTH, Numbers, inputs
from gpututor.exercises.ours import case_from
from gpututor.exercises.typed import judge_number
from gpututor.experiments.one_after_another import ASKED_LENGTH, key_of
from gpututor.lookup import machine_named
from gpututor.model.kernels import Gemm
from gpututor.model.tape import TapeOp
from gpututor.text import duration

KNOWN_LENGTHS = (64, 256)
TOLERANCE = 0.04  # a straight line through two lengths misses the third by less; twice the longer one often doesn't

RECALL = (
    (
        "Below the knee, what does a larger batch cost?",
        "Nothing: the host's time for a launch doesn't grow with the batch, and the card has room.",
    ),
    (
        "What does nvidia-smi's percentage not tell?",
        "How many SMs were at work, and how hard. It says only that some kernel was running.",
    ),
)
NOTES = (
    "**Ask first**: who has seen an LSTM keep a GPU busy? Then guess and run. **Watch for**: people who take a busy "
    "card for a fast one; SM fill and MFU stand beside it. And people who conclude that loops are slow because Python "
    "is: cuDNN's loop has the same order and no Python. **Discuss**: which part of their own model waits for itself? "
    "**Short of time**: guess, run, the table, the curve, takeaway. **Exercise 4.1**: the usual slip is a step in "
    "proportion to the words, which forgets what every step costs. **Exercise 4.2**: the usual slip is a list of "
    "products before the loop, which moves them and saves none."
)


# --- 4.1 -------------------------------------------------------------------------------------------------------------


def longer_case(step_ns: Mapping[str, float]) -> Case:
    """The case of 4.1 from the steps of the reader's run, in nanoseconds by the name of their variant."""
    short, long = (step_ns[key_of("lstm", n)] for n in KNOWN_LENGTHS)
    words = {
        "short": str(KNOWN_LENGTHS[0]),
        "long": str(KNOWN_LENGTHS[1]),
        "asked": str(ASKED_LENGTH),
        "short_took": duration(short),
        "long_took": duration(long),
    }
    return {
        "words": words,
        "short_ms": short / 1e6,
        "long_ms": long / 1e6,
        "ms": step_ns[key_of("lstm", ASKED_LENGTH)] / 1e6,
    }


def judge_longer(answer: Any, case: Case) -> Judged:
    """The verdict on a typed time in milliseconds."""
    short, long, right = case["short_ms"], case["long_ms"], case["ms"]
    times = ASKED_LENGTH / KNOWN_LENGTHS[1]
    each_us = 1e3 * (long - short) / (KNOWN_LENGTHS[1] - KNOWN_LENGTHS[0])
    slips = (
        (long, "That would be no time for the words that were added. Each waits for the one before it."),
        (long * times, "In proportion, every part of the step would grow. Some of it is there with one word already."),
        (
            short * ASKED_LENGTH / KNOWN_LENGTHS[0],
            "That is in proportion to the short one, whose fixed part is larger.",
        ),
        (long - short, "That is the difference of the two; the question is for a whole step."),
        (right * 1e3, "That looks like microseconds. Asked are milliseconds."),
        (right / 1e3, "That looks like seconds. Asked are milliseconds."),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"The run took {duration(right * 1e6)}: a straight line, {duration(each_us * 1e3)} for each further word.",
        slips=slips,
        otherwise="Draw a straight line through the two lengths that you know, and read it off at the third.",
    )


LONGER = Exercise(
    number="4.1",
    title="A longer sequence",
    kind="number",
    task=(
        "In one cuDNN call, {short} words take {short_took} a step, and {long} words take {long_took}. How many "
        "**milliseconds** will {asked} words take? The run has timed them; you see it afterwards."
    ),
    hints=(
        "What part of a step is there already with a single word, and what comes with each further one?",
        "Take the difference of the two steps and divide it by the difference in words. That is what one word adds.",
        "The longer step, plus what one word adds, times the words that are added.",
    ),
    judge=judge_longer,
    unit="ms",
    case_from=case_from("4.1"),
)

# --- 4.2 -------------------------------------------------------------------------------------------------------------

FUNCTION = "all_states"
STARTER = f"""import torch
from torch.nn.functional import linear

def {FUNCTION}(words, w_in, w_rec, bias):
    # words: (length, batch, width)
    # gates come in the order enter, forget, new, leave
    length, batch, width = words.shape
    state = memory = words.new_zeros(batch, width)
    states = []
    for t in range(length):
        gates = linear(words[t], w_in, bias) + linear(state, w_rec)
        enter, forget, new, leave = gates.chunk(4, 1)
        memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
        state = leave.sigmoid() * memory.tanh()
        states.append(state)
    return torch.stack(states)
"""
LENGTHS = (4, 8, 12)
HARNESS, DATA = "gpututor.exercises.on_card.ex04:run", "gpututor.exercises.on_card.ex04_data:on_card"
CHECKS = ("the same states as the loop it began as", "one product for all words, one a word for the state")
SHARES = (0.3, 0.7)


def states(words: Numbers, w_in: Numbers, w_rec: Numbers, bias: Numbers) -> list[Any]:
    """An LSTM's states in double precision, from its formulas as torch.nn.LSTM documents them."""
    state = memory = np.zeros(words.shape[1:])
    found = []
    for word in words:
        enter, forget, new, leave = np.split(word @ w_in.T + state @ w_rec.T + bias, 4, axis=1)
        memory = _sigmoid(forget) * memory + _sigmoid(enter) * np.tanh(new)
        state = _sigmoid(leave) * np.tanh(memory)
        found.append(state.tolist())
    return found


def _sigmoid(x: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-x))


def n_products(launched: Launched) -> int:
    """Matrix products that were launched."""
    return sum(type(k) is Gemm for e in launched.tape.entries if isinstance(e, TapeOp) for k in e.kernels)


def _is_done_there(launched: Launched, sizes: tuple[int, int, int], on: Machine) -> bool:
    """Whether both products were made on the card: a multiplication and an addition for each weight and row."""
    length, batch, width = sizes
    return launched.is_done_there(2 * 2 * length * batch * width * 4 * width, on)


def judge_hoisted(answer: Any, case: Case) -> Judged:
    """The verdict on a loop from which the input's product was taken."""
    lengths, on = tuple(case.get("lengths", LENGTHS)), machine_named(case.get("machine", DEFAULT_MACHINE))
    sizes = [(n, case.get("batch", BATCH), case.get("width", WIDTH)) for n in lengths]
    data = [(*each, case.get("seed", 0)) for each in sizes]
    runs, why = on_card(str(answer), FUNCTION, HARNESS, [[on.name, Laid(DATA, each)] for each in data])
    if not runs:
        return Judged("wrong", why)
    if all(run.gave is None for run in runs):
        return NOT_ANSWERED
    close = all(close_to(run.gave, states(*inputs(*each)), 1e-3, 1e-4) for run, each in zip(runs, data, strict=True))
    same = close and all(_is_done_there(run, each, on) for run, each in zip(runs, sizes, strict=True))
    counts = [n_products(run) for run in runs]
    fewer = same and all(count <= n + 1 for count, n in zip(counts, lengths, strict=True))
    checks = tuple(map(Check, CHECKS, (same, fewer), SHARES))
    theirs = tuple((float(n), float(count)) for n, count in zip(lengths, counts, strict=True))
    ours = tuple((float(n), float(n + 1)) for n in lengths)
    if fewer:
        text = (
            f"{counts[-1]} products for {lengths[-1]} words instead of {2 * lengths[-1]}, and all states as before. "
            f"What is left in the loop, {runs[-1].on(on).ledger.n_kernels} kernels in all, waits for the state."
        )
        return Judged("right", text, checks, theirs, ours)
    if same:
        text = f"The states are right, but {lengths[-1]} words launch {counts[-1]} products, not {lengths[-1] + 1}."
        return Judged("partial", text, checks, theirs, ours, 2)
    text = ELSEWHERE if close else "The states are not those of the loop it began as."
    return Judged("wrong", text, checks, theirs, ours, 3)


def _draw(rng: random.Random) -> Case:
    lengths = sorted(rng.sample(range(4, 15), 3))
    sizes = {"lengths": lengths, "batch": rng.randint(3, 6), "width": rng.randint(12, 20)}
    return {"machine": drawn.machine_name(rng), "seed": drawn.seed(rng)} | sizes


HOISTED = Exercise(
    number="4.2",
    title="Before the loop",
    kind="code",
    task=(
        f"`{FUNCTION}` is the LSTM of this lesson's loop. Each word is multiplied with `w_in` inside it, though that "
        "product waits for nothing. Take it out, so that it is **one** product for all words. The circles count the "
        "products that are left; your function is drawn as a line."
    ),
    hints=(
        "Which of the two products needs `state`, and which is known before the first word is read?",
        "`linear` takes any number of leading sizes: it multiplies a whole (length, batch, width) at once.",
        "Before the loop `seen = linear(words, w_in, bias)`; inside it `gates = seen[t] + linear(state, w_rec)`.",
    ),
    judge=judge_hoisted,
    starter=STARTER,
    x_title="words",
    needs_run=False,
    hidden=_draw,
)
