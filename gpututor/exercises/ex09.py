"""Exercises of lesson 9: what is gained at most by not reading, and a log that asks the card once in ten steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.exercises.coded import close_to, is_number, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged, State
from gpututor.exercises.on_card.ex09_data import (
    N_INPUTS,
    N_KINDS,
    N_ROWS,
    N_STEPS,
    RATE,
    TENSORS,
    UNLABELLED_SHARE,
    Numbers,
    rows_of_data,
)
from gpututor.exercises.typed import judge_number
from gpututor.experiments.answers import at_length
from gpututor.experiments.stopwatch import Stopwatch
from gpututor.text import duration, percent

__all__ = ["ASKED_LENGTH", "LOGGED", "MOST", "NOTES", "RECALL", "case_most"]

ASKED_LENGTH = 64  # characters, of the sweep's: the card works longer than the host on some cards, shorter on others
TOLERANCE = 0.06

RECALL = (
    (
        "What must be true of a batch on the host before its copy can run beside the kernels?",
        "Its memory is pinned, and the copy is asked for with non_blocking.",
    ),
    (
        "A loader has enough workers. What would more of them bring?",
        "Nothing. The step is the longer of two times, and the card's is the longer one by then.",
    ),
)
NOTES = (
    "**Ask first**: who prints the loss at every step, and who has deleted that line to go faster? **Watch for**: "
    "people who take the stopwatch's line for the culprit. It shows where the host stands; delete that line and it "
    "stands elsewhere (Lightning issue 20995: total time the same, batch_to_device now slow). And people who conclude "
    "that waiting is free: it costs the lead, so most where host and card need equally long, more after the forward "
    "pass than at the end. **Discuss**: the bar that is hidden on all ranks but one, and still waits on all; "
    "logging.debug with an f-string, which is worked out before the level is looked at (fvdb-reality-capture pull "
    "request 308). LANfactory pull request 120 hoped for most of an epoch and got some percent: at most the shorter of "
    "host and card is won. torchtune pull request 522 saw 40 to 50 ms in cudaStreamSynchronize, which is the card's "
    "work, not the price. OneTrainer pull request 1608 reads a step later. **Short of time**: guess, run, the "
    "stopwatch, the curve. **Exercise 9.1**: the usual slip is the stopwatch's time. **9.2**: the mask is overlooked."
)


# --- 9.1 -------------------------------------------------------------------------------------------------------------


def case_most(watched: Mapping[str, Stopwatch]) -> Case:
    """The case of 9.1: the loop with two readings at `ASKED_LENGTH` characters, and the same without, by its key."""
    both, silent = (watched[at_length(key, ASKED_LENGTH)] for key in ("both", "silent"))
    host_ns = both.launching_ns + both.batch_ns
    words = {
        "length": str(ASKED_LENGTH),
        "step": duration(both.step_ns),
        "read": duration(both.read_ns),
        "host": duration(host_ns),
        "card": duration(both.card_ns),
    }
    return {
        "words": words,
        "step_ms": both.step_ns / 1e6,
        "read_ms": both.read_ns / 1e6,
        "host_ms": host_ns / 1e6,
        "card_ms": both.card_ns / 1e6,
        "saved_ms": (both.step_ns - silent.step_ns) / 1e6,
    }


def judge_most(answer: Any, case: Case) -> Judged:
    """The verdict on a typed time in milliseconds."""
    step, host, card = case["step_ms"], case["host_ms"], case["card_ms"]
    right = step - max(host, card)
    slips = (
        (case["read_ms"], "That is what the stopwatch shows. Much of it the card works, and that work stays."),
        (host + card - step, "That is how much of the two ran side by side already."),
        (min(host, card), "That would be won if nothing ran side by side yet; some of it does."),
        (max(host, card), "That is how long the step must take in any case. Asked is what can be saved."),
        (right * 1e3, "That looks like microseconds. Asked are milliseconds."),
    )
    said = (
        f"The step can't be shorter than the longer of the two. The run saved {duration(case['saved_ms'] * 1e6)}; "
        "small gaps between kernels, and the wait when the run ends, are there in any case."
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=said,
        slips=slips,
        otherwise="Ask which of the two, host or card, the step has to wait for when nobody reads.",
        hint=2,
    )


MOST = Exercise(
    number="9.1",
    title="What can be saved",
    kind="number",
    task=(
        "With {length} characters, bar and log, a step takes {step}. The stopwatch shows {read} in the two readings. "
        "The host works {host} in a step, the card {card}. How many **milliseconds** can deleting both readings save "
        "at most?"
    ),
    hints=(
        "When nobody reads, host and card work side by side. How long does a step take that they share like that?",
        "The longer of the two sets the pace: $\\max(h, k)$. Nothing that you delete from the log makes it shorter.",
        "The step as it is, minus the longer one of the host's and the card's time.",
    ),
    judge=judge_most,
    unit="ms",
)


# --- 9.2 -------------------------------------------------------------------------------------------------------------

FUNCTION = "train"
STARTER = f"""import torch
from torch.nn.functional import cross_entropy

def {FUNCTION}(model, optimizer, batches, bar):
    # batches: (x, y) on the card; a y of -1 has no label and doesn't count
    log, total = [], 0.0
    for k, (x, y) in enumerate(batches, 1):
        labelled = y >= 0
        loss = cross_entropy(model(x[labelled]), y[labelled])
        bar.show(loss=loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if k % 10 == 0:
            log.append(total / 10)
            total = 0.0
    return log
"""
EVERY = 10
HARNESS = "gpututor.exercises.on_card.ex09:run"
CHECKS = (
    "the same four numbers, as plain numbers",
    "every batch is learned from",
    f"at most one wait in {EVERY} steps",
)
SHARES = (0.3, 0.2, 0.5)
LEAST_FLOP = N_STEPS * 2 * (2 * N_ROWS * N_INPUTS * N_KINDS)  # a product forward and one back, over labelled rows


@lru_cache(maxsize=1)
def expected() -> tuple[list[float], Numbers]:
    """The log and the weights after the run, from the formulas of softmax regression in double precision."""
    xs, ys = rows_of_data()
    weights: Numbers = np.zeros((N_KINDS, N_INPUTS))
    losses = []
    for rows, kinds in zip(xs, ys, strict=True):
        x, y = rows[kinds >= 0], kinds[kinds >= 0]
        scores = np.exp(x @ weights.T)
        chances = scores / scores.sum(1, keepdims=True)
        losses.append(-np.log(chances[np.arange(len(y)), y]).mean())
        chances[np.arange(len(y)), y] -= 1
        weights = weights - RATE * chances.T @ x / len(y)
    return np.reshape(losses, (-1, EVERY)).mean(1).tolist(), weights


def judge_logged(answer: Any, case: Case) -> Judged:
    """The verdict on a training loop that writes the same log and hardly ever waits."""
    runs, why = on_card(str(answer), FUNCTION, HARNESS)
    if not runs:
        return Judged("wrong", why)
    gave: Mapping[str, Any] = runs[0].gave if isinstance(runs[0].gave, dict) else {}
    log, (ours, weights) = gave.get("log"), expected()
    if log is None:
        return NOT_ANSWERED
    same = close_to(log, ours, 1e-3, 1e-4)
    on = machine(case.get("machine") or DEFAULT_MACHINE)
    trained = close_to(gave.get("weights"), weights.tolist(), 1e-2, 1e-3)
    trained = trained and runs[0].flop(on) >= (1 - 2 * UNLABELLED_SHARE) * LEAST_FLOP
    waits = runs[0].n_waits
    few = same and trained and waits <= N_STEPS // EVERY
    checks = tuple(map(Check, CHECKS, (same, trained, few), SHARES))
    listed = log if isinstance(log, list) else []
    theirs = tuple((float(EVERY * k), float(v)) for k, v in enumerate(listed, 1) if is_number(v))
    picture = (theirs, tuple((float(EVERY * k), v) for k, v in enumerate(ours, 1))) if theirs else ((), ())
    if few:
        step_ns = runs[0].on(on).step_ns / N_STEPS
        text = (
            f"The same log with {_times(waits)} in {N_STEPS} steps, where the loop you were given waits "
            f"{4 * N_STEPS} times. A step takes {duration(step_ns)} on the {on.card.name}."
        )
        return Judged("right", text, checks, *picture)
    state, sentence, hint = _miss(log, same, trained, waits)
    return Judged(state, sentence, checks, *picture, hint)


def _times(n: int) -> str:
    return "one wait" if n == 1 else f"{n} waits"


def _miss(log: Any, same: bool, trained: bool, waits: int) -> tuple[State, str, int]:
    """State, sentence and the hint that would help, for an answer that isn't right."""
    if log == TENSORS:
        return "wrong", "The log holds tensors: its numbers are still on the card, and nobody can read them there.", 3
    if not same:
        if isinstance(log, list) and len(log) == N_STEPS // EVERY:
            return "wrong", "There are four numbers, but they are not the means of ten losses each.", 2
        return "wrong", f"The log should hold {N_STEPS // EVERY} numbers, the mean loss of every {EVERY} steps.", 2
    if not trained:
        return "partial", "The log is right, but the model has not learned from every batch.", 1
    each = waits / N_STEPS
    if each >= 1:
        often = "once" if round(each) == 1 else f"{each:.0f} times"
        return "partial", f"The log is right. The host still waits {often} a step; some line asks the card.", 1
    return "partial", f"The log is right. The host waits {waits} times in {N_STEPS} steps, {percent(each)} of them.", 3


_NEARLY = (
    "`loss = cross_entropy(model(x), y, ignore_index=-1)`, then `total = total + loss.detach()`, and one "
    f"`(total / {EVERY}).item()` where `k % {EVERY} == 0`."
)

LOGGED = Exercise(
    number="9.2",
    title="The same log, hardly a wait",
    kind="code",
    task=(
        f"`{FUNCTION}` learns from {N_STEPS} batches and gives the mean loss of every {EVERY} steps. Its host waits "
        f"several times a step. Let it wait **at most once in {EVERY} steps** and give the same numbers. "
        "The bar is hidden and may go without the loss. The circles are the log as it should be; yours is the line."
    ),
    hints=(
        "Which lines need a number, or a size, that only the card knows? There are more than the two with `.item()`.",
        "A tensor can be added to a tensor, so `total` can stay on the card. `cross_entropy` has an `ignore_index`.",
        _NEARLY,
    ),
    judge=judge_logged,
    starter=STARTER,
    x_title="step",
    needs_run=False,
)
