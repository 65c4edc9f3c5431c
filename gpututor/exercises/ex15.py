"""Exercises of lesson 15: how seldom a run must pause, and a validation that costs next to nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises.coded import ELSEWHERE, SMALL_BYTES, Laid, Launched, close_to, is_number, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex15_data import N_HIDDEN, N_KINDS, N_NUMBERS, N_SAMPLES, SEED, arrays
from gpututor.exercises.typed import judge_number
from gpututor.lookup import machine_named
from gpututor.model.spec import HostKind
from gpututor.model.tape import TapeOp
from gpututor.text import NBSP, percent

__all__ = ["EVALUATED", "NOTES", "RARELY", "RECALL", "case_rarely"]

TOLERANCE = 0.03
PAUSED = 0.1  # of the time
RECALL = (
    (
        "Dozens of small tensors are updated, and the card idles. What helps?",
        "Fewer calls: a fused optimizer, which walks through many tensors in one launch.",
    ),
    (
        "A stopwatch around `loss.item()` shows a third of the step. Is that what it costs?",
        "No: the host waits there for work that has to be done anyway. It costs the lead that the host had.",
    ),
)
NOTES = (
    "**Ask first**: who knows how long an epoch of theirs is, by the clock, and how long its steps are together? "
    "**Watch for**: people who profile five steps in the middle and are content. People who validate on everything "
    "after each short epoch, since the tutorial did. **Discuss**: how often is a checkpoint worth it? The answer hangs "
    "on how much work you are ready to lose. Where do debugging switches come from: a colleague's file, a variable in "
    "a start script, a helper that calls `gc.collect()`. **Simulated**: files, histograms and collections are this "
    "computer's own, so they differ from run to run; a real cloud's network disk is slower than a laptop's. The "
    "writing thread is taken to cost the training nothing; it shares Python's lock and the processor. Anomaly mode's "
    "stacks are Python 3.11's. **Short of time**: guess, run, the table of pauses, the switches. **Exercise 15.1**: "
    "the usual slip is a tenth of the steps' time instead of the whole. **15.2**: the usual slips are the mean of "
    "means, and a network left in `eval()`."
)


# --- 15.1 ------------------------------------------------------------------------------------------------------------


class Epoch(Protocol):
    """What the case needs of an epoch of the reader's run."""

    @property
    def parts_ns(self) -> Mapping[str, float]:
        """Its pauses by name."""

    @property
    def steps_ns(self) -> float:
        """What its steps take."""


def case_rarely(epoch: Epoch, n_steps: int = 40) -> dict[str, Any]:
    """The case of 15.1: a step and each pause of the reader's own epoch, in milliseconds."""
    step_ms = epoch.steps_ns / n_steps / 1e6
    pauses = {name: ns / 1e6 for name, ns in epoch.parts_ns.items()}
    words = {name: f"{ms:.2f}{NBSP}ms" for name, ms in pauses.items()}
    words |= {"step": f"{step_ms:.3f}{NBSP}ms", "paused": percent(PAUSED), "tolerance": percent(TOLERANCE)}
    return {"step_ms": step_ms, "pauses_ms": pauses, "words": words}


def judge_rarely(answer: Any, case: Case) -> Judged:
    """The verdict on a typed number of steps."""
    step, pauses = case["step_ms"], case["pauses_ms"]
    whole = sum(pauses.values())
    right = (1 - PAUSED) / PAUSED * whole / step
    longest = max(pauses.values())
    slips = (
        (whole / step / PAUSED, "That makes the pauses a tenth of the steps' time. Asked is a tenth of the whole."),
        (whole / step, "With so few steps as much time goes into pauses as into steps."),
        ((1 - PAUSED) / PAUSED * longest / step, "That counts the longest pause alone. All of them come each time."),
        (PAUSED * whole / step, "That is the wrong way round: the steps would be the tenth."),
        (PAUSED / (1 - PAUSED) * whole / step, "That is the wrong way round: the steps would be the tenth."),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"{right:,.0f} steps take nine times as long as the pauses, so of ten parts of the time one is paused.",
        slips=slips,
        otherwise="Not so many.",
        hint=2,
    )


RARELY = Exercise(
    "15.1",
    "How seldom?",
    "number",
    "As found, the epoch pauses for {validation} of validation, {checkpoint} of saving and {histograms} of histograms. "
    "A step takes {step}. How many steps must lie between two such pauses, so that they take {paused} of the whole "
    "time? Within {tolerance} counts as right.",
    (
        "Add the pauses up. They come together.",
        "If they are one part of ten, how many parts are left for the steps?",
        "The steps take nine times as long as the pauses. How many steps is that?",
    ),
    judge_rarely,
    unit="steps",
)

# --- 15.2 ------------------------------------------------------------------------------------------------------------

HARNESS, DATA = "gpututor.exercises.on_card.ex15:run", "gpututor.exercises.on_card.ex15_data:on_card"
FUNCTION = "evaluate"
MOST_OPS = 60  # a few large batches; one sample at a time takes some thousand
STARTER = f"""import torch
import torch.nn.functional as F

def {FUNCTION}(model, inputs, kinds):
    # the mean loss over all samples
    # the model is in the middle of its training
    losses = []
    for k in range(0, len(inputs), 4):
        loss = F.cross_entropy(model(inputs[k:k + 4]), kinds[k:k + 4])
        losses.append(loss.item())
    return sum(losses) / len(losses)
"""
CHECKS = (
    "the loss is the mean over all samples",
    "no graph is made",
    "a few large batches, and one wait at most",
    "the model goes on training as it was",
)
SHARES = (0.4, 0.2, 0.3, 0.1)


def expected(seed: int = SEED, n_samples: int = N_SAMPLES, batch: int | None = None) -> float:
    """The mean cross-entropy of the network without dropout; with `batch` the mean of the batches' means."""
    w_1, b_1, w_2, b_2, x, kinds = (each.astype(float) for each in arrays(seed, n_samples))
    scores = np.maximum(x @ w_1.T + b_1, 0.0) @ w_2.T + b_2
    highest = scores.max(1, keepdims=True)
    logs = np.log(np.exp(scores - highest).sum(1)) + highest[:, 0]
    each = logs - scores[np.arange(n_samples), kinds.astype(int)]
    if batch is None:
        return float(each.mean())
    return float(np.mean([each[k : k + batch].mean() for k in range(0, n_samples, batch)]))


def least_flop(n_samples: int) -> float:
    """What the two layers need for all samples."""
    return 2.0 * n_samples * (N_NUMBERS * N_HIDDEN + N_HIDDEN * N_KINDS)


def with_graph(launched: Launched) -> bool:
    """Whether a layer's product ran with gradients on."""
    products = (e for e in launched.tape.entries if type(e) is TapeOp and e.host is HostKind.GEMM)
    return any(entry.phase == "forward" for entry in products)


def judge_evaluated(answer: Any, case: Case) -> Judged:
    """The verdict on a validation."""
    n_samples, seed = case.get("n_samples", N_SAMPLES), case.get("seed", SEED)
    machine = case.get("machine", DEFAULT_MACHINE)
    calls = ((machine, Laid(DATA, (seed, n_samples))),)
    launched, sentence = on_card(str(answer), FUNCTION, HARNESS, calls)
    if not launched:
        return Judged("wrong", sentence)
    ran = launched[0]
    gave = ran.gave if isinstance(ran.gave, Mapping) else {}
    loss = gave.get("loss")
    if loss is None or not is_number(loss):
        return Judged("wrong", f"`{FUNCTION}` gave {loss!r}; give back the mean loss, one number.", hint=1)
    read_bytes = SMALL_BYTES + 4 * n_samples  # a number for each sample, where the samples themselves are 32
    there = ran.downloaded_bytes <= read_bytes and ran.uploaded_bytes <= SMALL_BYTES
    there = there and ran.flop(machine_named(machine)) >= least_flop(n_samples)
    right = there and close_to(loss, expected(seed, n_samples))
    graph, n_ops, n_waits = with_graph(ran), ran.n_ops, ran.n_waits
    held = (
        right,
        there and not graph,
        there and n_ops <= MOST_OPS and n_waits <= 1,
        there and gave.get("trains") is True,
    )
    checks = tuple(map(Check, CHECKS, held, SHARES))
    if all(held):
        return Judged("right", f"{n_ops} operators and {_times(n_waits)}: training goes on at once.", checks)
    text, hint = _miss(float(loss), there, held, (n_ops, n_waits), expected(seed, n_samples), (seed, n_samples))
    return Judged("partial" if any(held) else "wrong", text, checks, hint=hint)


def _times(n_waits: int) -> str:
    return {0: "no wait", 1: "one wait"}.get(n_waits, f"{n_waits} waits")


def _miss(
    loss: float, there: bool, held: tuple[bool, ...], counted: tuple[int, int], ours: float, data: tuple[int, int]
) -> tuple[str, int | None]:
    """The first miss in one sentence, and the hint that would help."""
    n_ops, n_waits = counted
    if not there:
        return (
            ELSEWHERE if close_to(loss, ours) else "The card has reckoned too little for a loss of all samples."
        ), None
    if not held[0]:
        sizes = (2, 4, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128)
        if any(close_to(loss, expected(*data, batch)) for batch in sizes):
            return "That is the mean of the batches' means: the last batch is smaller, and counts as much.", 1
        return "That is not the loss: in training, dropout drops numbers at random. In a validation it must not.", 1
    if not held[1]:
        return "The loss is right, but every batch had a graph made for a backward pass that never comes.", 2
    if not held[2]:
        return f"The loss is right, with {n_ops} operators and {_times(n_waits)}.", 3
    return "The loss is right, but the model is left without dropout: the training goes on as another one.", 1


def _hidden(rng: random.Random) -> Case:
    machine = rng.choice(("p3.2xlarge", "A100-SXM4-80GB", "T4"))
    return {"machine": machine, "n_samples": 64 * rng.randrange(2, 5) + 2, "seed": rng.randrange(1, 10**6)}


EVALUATED = Exercise(
    "15.2",
    "A validation that hardly pauses",
    "code",
    f"Write `{FUNCTION}`: the mean cross-entropy over all samples, without dropout, and without a graph. It "
    "takes a few large batches, the host waits once at most, and the model is in training mode afterwards.",
    (
        "`model.eval()` before and `model.train()` after. Weigh each batch by its samples, or take all at once.",
        "Under `torch.no_grad()` nothing is kept for a backward pass.",
        "Each `.item()` waits. What can be added up on the card, and read once?",
    ),
    judge_evaluated,
    starter=STARTER,
    needs_run=False,
    hidden=_hidden,
)
