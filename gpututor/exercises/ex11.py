"""Exercises of lesson 11: from how many pictures on fewer bits are faster, and a loss scaler of your own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises import drawn
from gpututor.exercises.coded import ELSEWHERE, Laid, close_to, is_number, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex11_data import (
    FIRST_SCALE,
    N_SPIKES,
    N_STEPS,
    N_WEIGHTS,
    RATE,
    SEED,
    Numbers,
    gradients,
)
from gpututor.exercises.typed import judge_number
from gpututor.lookup import machine_named
from gpututor.text import duration, percent

__all__ = ["NOTES", "PAYS", "RECALL", "SCALER", "case_pays", "case_scaler"]

TOLERANCE = 0.08
RECALL = (
    (
        "What does a graph spare the host, and when does that stop helping?",
        "The work for each launch. It stops where the card is the longer of the two.",
    ),
    (
        "Copying bytes instead of float32 took a quarter of the time. Why?",
        "The link has so many bytes a second, whatever numbers they hold.",
    ),
)
NOTES = (
    "**Ask first**: who trains in mixed precision, and who has measured what it brought? **Watch for**: people who "
    "take the tensor cores' rate for the speed-up, and people who take half the bits for half the memory. **Discuss**: "
    "why bf16 needs no scaler; why a V100 takes bf16 without complaint and is no faster; the first losses of a run "
    "whose scale began too high. apex issue 101 saw a K80 get slower by more than half-size numbers cost here: the "
    "model has no slower kernels for them on Kepler. The vocabulary's 25 % came from an A100 with torch.compile; our "
    "model's share for rows of odd length rests on that report, so it is no second witness. The norm with one float64 "
    "stands for Liger's: there a compiler made a double of a Python number. **Short of time**: guess, run, the curve, "
    "the losses. **Exercise 11.1**: the usual slip is fp32's own knee. **11.2**: the usual slips are to divide while "
    "the gradient is still in halves, and to ask the card twice."
)

# --- 11.1 ------------------------------------------------------------------------------------------------------------


def case_pays(few: tuple[float, float], many: tuple[float, float], n_many: int) -> dict[str, Any] | None:
    """The case of 11.1, from nanoseconds of a step in fp32 and in fp16: with few pictures, and with `n_many`.

    None where fp16 isn't slower with few pictures, or isn't faster with many: then there is no such batch.
    """
    (host_32, host_16), (card_32, card_16) = few, (many[0] / n_many, many[1] / n_many)
    if host_16 <= host_32 or card_16 >= card_32:
        return None
    words = {
        "host_32": duration(host_32),
        "host_16": duration(host_16),
        "card_32": duration(card_32),
        "card_16": duration(card_16),
        "tolerance": percent(TOLERANCE),
    }
    numbers = {"host_32_ms": host_32, "host_16_ms": host_16, "card_32_ms": card_32, "card_16_ms": card_16}
    return {name: ns / 1e6 for name, ns in numbers.items()} | {"words": words}


def judge_pays(answer: Any, case: Case) -> Judged:
    """The verdict on a typed number of pictures."""
    host_32, host_16, card_32, card_16 = (case[f"{name}_ms"] for name in ("host_32", "host_16", "card_32", "card_16"))
    right = host_16 / card_32
    slips = (
        (host_32 / card_32, "There fp32 leaves its flat. fp16 still takes its own, longer flat."),
        (host_16 / card_16, "There fp16 leaves its flat. By then fp32 has been slower for a while."),
        ((host_16 - host_32) / (card_32 - card_16), "That adds host and card. They work side by side."),
        (host_32 / card_16, "That is fp32's host and fp16's card: no step has both."),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"With {right:.0f} pictures fp32's card takes as long as fp16's host, {duration(host_16 * 1e6)}. Above, "
        "fp32 is on its slope while fp16 is flat still.",
        slips=slips,
        otherwise="Not there.",
        hint=2,
    )


PAYS = Exercise(
    "11.1",
    "Where it begins to pay",
    "number",
    "ResNet-20 on this machine: the host needs {host_32} for a step in fp32 and {host_16} in fp16, whatever the batch. "
    "The card needs {card_32} for each picture in fp32 and {card_16} in fp16. From how many pictures a step on is fp16 "
    "the faster one? Within {tolerance} counts as right.",
    (
        "Draw both: each is flat first, then rises. Where do they cross?",
        "They cross where one is still flat and the other rises already. Which is which?",
        "fp16 takes its host's time, fp32 its card's time for a picture times the pictures. Set them equal.",
    ),
    judge_pays,
    unit="pictures",
)

# --- 11.2 ------------------------------------------------------------------------------------------------------------

HARNESS, DATA = "gpututor.exercises.on_card.ex11:run", "gpututor.exercises.on_card.ex11_data:on_card"
FUNCTION = "train_step"
STARTER = f"""import torch

def {FUNCTION}(weights, gradient_of, scale, rate):
    # weights: float32, on the card
    # gradient_of(scale): the gradient of scale * loss, in float16, on the card
    # give back the scale for the next step
    gradient = gradient_of(scale)
    weights -= rate * gradient
    return scale
"""
CHECKS = (
    "the weights are those of the steps that did not overflow",
    "the scale was halved at each overflow",
    "at most one wait a step",
)
SHARES = (0.5, 0.2, 0.3)


def expected(
    true: Numbers,
    *,
    unscaled: bool = True,
    halves_first: bool = False,
    leaves_out: str = "step",
    from_scale: float = FIRST_SCALE,
) -> tuple[list[float], float]:
    """Weights and scale after all steps, with NumPy's halves, which round as the card's do.

    A slip leaves the scale in, takes it out while the gradient is in halves, leaves out an overflow's numbers alone
    ("number") or repeats the step with a lower scale ("nothing"), or begins with another scale and keeps it.
    """
    weights, scale = np.zeros(true.shape[1], np.float32), np.float32(from_scale)
    with np.errstate(over="ignore", invalid="ignore"):
        for row in true:
            half = (row * scale).astype(np.float16)
            while leaves_out == "nothing" and not np.isfinite(half).all():
                scale /= np.float32(2)
                half = (row * scale).astype(np.float16)
            used_scale, is_whole = scale, bool(np.isfinite(half).all())
            if not is_whole and from_scale == FIRST_SCALE:
                scale /= np.float32(2)
            if is_whole or leaves_out == "number":
                half = np.where(np.isfinite(half), half, np.float16(0))
                plain = half.astype(np.float32) / (used_scale if unscaled else np.float32(1))
                weights -= np.float32(RATE) * (plain.astype(np.float16).astype(np.float32) if halves_first else plain)
    return [float(w) for w in weights], float(scale)


def same(theirs: Any, ours: list[float]) -> bool:
    """Whether weights agree; they are hundredths."""
    return close_to(theirs, ours, 1e-3, 1e-5)


def judge_scaler(answer: Any, case: Case) -> Judged:
    """The verdict on a step that takes its gradient in halves."""
    on = machine_named(case.get("machine") or DEFAULT_MACHINE)
    data = case.get("seed", SEED), case.get("n_weights", N_WEIGHTS), case.get("n_spikes", N_SPIKES)
    runs, why = on_card(str(answer), FUNCTION, HARNESS, [[on.name, Laid(DATA, data)]])
    if not runs:
        return Judged("wrong", why)
    gave: Mapping[str, Any] = runs[0].gave if isinstance(runs[0].gave, dict) else {}
    true, weights, scale = gradients(*data), gave.get("weights"), gave.get("scale")
    ours, right_scale = expected(true)
    if same(weights, [0.0] * data[1]) and scale == FIRST_SCALE:
        return NOT_ANSWERED
    # its own product with the scale, and the learner's: taking it out, or adding to the weights
    there = runs[0].is_done_there(2 * N_STEPS * data[1], on)
    moved, waits = same(weights, ours), runs[0].n_waits
    halved = moved and close_to(scale, right_scale)
    checks = tuple(
        map(Check, CHECKS, (moved and there, halved and there, moved and there and waits <= N_STEPS), SHARES)
    )
    if moved and not there:
        return Judged("wrong", ELSEWHERE, checks)
    if not moved:
        return Judged("wrong", *_miss(weights, true, checks))
    if not halved:
        text = f"The weights are right. The scale should be {right_scale:,.0f} in the end, halved {data[2]} times."
        return Judged("partial", text, checks, hint=2)
    if waits > N_STEPS:
        text = (
            f"Weights and scale are right. The host waits {waits} times in {N_STEPS} steps, and one answer is enough."
        )
        return Judged("partial", text, checks, hint=3)
    text = (
        f"{N_STEPS - data[2]} steps, {data[2]} left out, and a scale of {right_scale:,.0f}. torch's GradScaler does "
        "the same, and doubles the scale again after some thousand good steps."
    )
    return Judged("right", text, checks)


def _miss(weights: Any, true: Numbers, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on wrong weights, by what they amount to; the checks, no picture, and the hint that would help."""
    if not isinstance(weights, list) or not all(map(is_number, weights)):
        return "The weights are no numbers any more: an overflow got into them.", checks, (), (), 2
    slips: tuple[tuple[dict[str, Any], str, int], ...] = (
        ({"unscaled": False}, "The weights moved by the scaled gradient, which is far too large.", 1),
        ({"leaves_out": "number"}, "A step with an overflow is left out whole, not only where it overflowed.", 2),
        ({"leaves_out": "nothing"}, "A step that overflowed is left out here, not done again.", 2),
        ({"halves_first": True}, "Divided while still in halves, small gradients lose what the scale had saved.", 1),
        ({"from_scale": 1.0}, "Without a scale small gradients lose their digits in halves.", 1),
    )
    for slip, sentence, hint in slips:
        if same(weights, expected(true, **slip)[0]):
            return sentence, checks, (), (), hint
    return "The weights are not those after the steps that did not overflow.", checks, (), (), 1


def case_scaler(machine: str) -> dict[str, Any]:
    """The case of 11.2: the machine on which the launches are priced."""
    return {"machine": machine}


def _draw(rng: random.Random) -> Case:
    return {
        "machine": drawn.machine_name(rng),
        "seed": drawn.seed(rng),
        "n_weights": rng.randint(3000, 6000),
        "n_spikes": rng.randint(2, 6),
    }


SCALER = Exercise(
    "11.2",
    "A scaler of your own",
    "code",
    f"`gradient_of(scale)` gives halves, of the loss times the scale. Write `{FUNCTION}` so that the weights move by "
    "`rate` times the true gradient. Where anything overflowed, leave the weights as they are and halve the scale. Ask "
    "the card **at most once a step**.",
    (
        "Make it float32 first, and take the scale out of that.",
        "One infinity spoils the step. `torch.isfinite` looks at every number, and `.all()` makes one answer of them.",
        "`if torch.isfinite(gradient).all():` asks once. In it the weights move; otherwise give back `scale / 2`.",
    ),
    judge_scaler,
    starter=STARTER,
    needs_run=False,
    hidden=_draw,
)
