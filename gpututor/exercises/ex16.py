"""Exercises of lesson 16: how rarely to exchange, and a step that exchanges once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex16_data import N_PARTS, N_RANKS, N_ROWS, RATE, SEED, dealt
from gpututor.exercises.typed import judge_number
from gpututor.model.exchange import RanksExchange
from gpututor.text import duration, percent

__all__ = ["NOTES", "ONCE", "RARELY", "RECALL", "case_rarely"]

TOLERANCE, SHARE = 0.04, 0.1
NUMBER_BYTES = 4  # of a gradient in fp32

RECALL = (
    (
        "A job saves a checkpoint between two steps. Who waits?",
        "The card, for as long as the host copies and writes; a copy in the background takes most of that away.",
    ),
    (
        "A tenth of the FLOP, and hardly faster. What had been counted wrongly?",
        "FLOP were counted where bytes and launches set the pace.",
    ),
)
NOTES = (
    "**Ask first**: who uses several cards, and has anybody tried one? **Watch for**: people who compare steps where "
    "the batch grew with the cards; here it doesn't. Let them say what each card has left to do. **Discuss**: the "
    "last line of the losses: eight cards with a batch each take an eighth of the steps, and learn less from the same "
    "pictures; lesson 3 says what the rate must do. DataParallel looks good beside NVLink; on a slow host its one "
    "interpreter is the limit. **Simulated**: collectives reach a quarter of the link's rate beside other kernels, and "
    "cards of a box differ by half a percent, both fitted to public runs; boxes of one kind differ more than that. "
    "**Short of time**: guess, run, the curve, one timeline. **Exercise 16.1**: the usual slip is a tenth of the work "
    "in place of a tenth of the step. **16.2**: the usual slip is not to divide the loss by the number of parts."
)


# --- 16.1 ------------------------------------------------------------------------------------------------------------


def case_rarely(once_ns: float | None, several_ns: float | None, n_passes: int, link: str, card: str) -> Case:
    """The case of 16.1: steps with one backward pass and with several, one exchange in each, over this link.

    Without either, or where nothing of the exchange shows, it is empty.
    """
    if once_ns is None or several_ns is None:
        return {}
    work_ns = (several_ns - once_ns) / (n_passes - 1)
    if once_ns < 1.3 * work_ns:  # then one pass hides most of it already
        return {}
    words = {
        "once": duration(once_ns),
        "several": duration(several_ns),
        "n": f"{n_passes}",
        "link": link,
        "card": card,
        "share": percent(SHARE),
        "tolerance": percent(TOLERANCE),
    }
    return {"once_ms": once_ns / 1e6, "several_ms": several_ns / 1e6, "n_passes": n_passes, "words": words}


def _judge_rarely(typed: Any, case: Case) -> Judged:
    once, several, n = case["once_ms"], case["several_ms"], case["n_passes"]
    work = (several - once) / (n - 1)
    rest = once - work
    right = math.ceil(rest * (1 - SHARE) / SHARE / work)
    slips = (
        (rest / SHARE / work, "Then the exchange is a tenth of the work, not of the whole step."),
        (once * (1 - SHARE) / SHARE / work, "One of the two steps holds a backward pass besides the exchange."),
        (
            rest * (1 - SHARE) / SHARE / (several / n),
            "A pass takes less than that: the exchange is in the longer step.",
        ),
        (1 / SHARE, "That would do if an exchange took as long as a pass."),
    )
    said = (
        f"A pass takes {duration(1e6 * work)}, and the exchange shows for {duration(1e6 * rest)}. With {right} passes "
        "the step is nine tenths work. The batch grows with it, so the learning rate has to follow."
    )
    return judge_number(
        str(typed), right, tolerance_share=TOLERANCE, said=said, slips=slips, otherwise="Not so many.", hint=2
    )


RARELY = Exercise(
    "16.1",
    "How rarely must they talk?",
    "number",
    "Eight {card} over {link}: a step with one backward pass takes {once}, and with {n} passes and no_sync {several}. "
    "How many passes does a step need, so that the exchange is {share} of it or less? Within {tolerance} counts as "
    "right.",
    (
        "Both steps hold one exchange. What else is in them, and how often?",
        "The longer step has more passes and nothing else. So what does one pass take, and what is left for talking?",
        "With e for the exchange and c for a pass, e / (m c + e) is a tenth where m is nine times e / c.",
    ),
    _judge_rarely,
    unit="passes",
)


# --- 16.2 ------------------------------------------------------------------------------------------------------------

FUNCTION = "train_step"
HARNESS = "gpututor.exercises.on_card.ex16:run"
STARTER = f"""def {FUNCTION}(model, optimizer, parts):
    # model: in DistributedDataParallel; {N_RANKS} cards run this, each
    # with {N_PARTS} parts (x, y) of its own, all of one size.
    # One step, as if all parts of all cards were one batch.
    # The loss is the mean squared error.
    optimizer.zero_grad()
    for x, y in parts:
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
    optimizer.step()
"""


def expected_weights(
    seed: int = SEED,
    *,
    times: float = 1.0,
    ranks: Sequence[int] = range(N_RANKS),
    parts: Sequence[int] = range(N_PARTS),
) -> list[float]:
    """Weights of the linear model after a step from zero on these ranks' parts as one batch, `times` as long.

    Mean squared error without bias: at zero its gradient is -2/n times the sum of targets times inputs.
    """
    chosen = [dealt(seed)[rank][part] for rank in ranks for part in parts]
    x = np.array([row for rows, _ in chosen for row in rows])
    y = np.array([target for _, targets in chosen for target in targets])
    return [float(w) for w in times * RATE * 2 / len(x) * x.T @ y]


def n_exchanges(launched: Launched) -> float:
    """How many times over all gradients were exchanged."""
    sent = sum(e.n_bytes for e in launched.tape.entries if type(e) is RanksExchange and e.kind == "all_reduce")
    return sent / (NUMBER_BYTES * len(expected_weights()))


def _judge_once(code: Any, case: Case) -> Judged:
    seed = case.get("seed", SEED) if case else SEED
    launched, sentence = on_card(str(code), FUNCTION, HARNESS, [(seed,)], on_ranks=True)
    if not launched:
        return Judged("wrong", sentence)
    gave = launched[0].gave if isinstance(launched[0].gave, list) else []
    weights = [each.get("weights") if isinstance(each, dict) else None for each in gave]
    right = len(weights) == N_RANKS and all(close_to(each, expected_weights(seed), 1e-3) for each in weights)
    sent = n_exchanges(launched[0])
    checks = (
        Check("both cards have the weights after one step on all parts", right, 0.5),
        Check("gradients are exchanged once", 0 < sent <= 1, 0.5),
    )
    if right and sent == 1:
        text = f"The same step with one exchange in place of {N_PARTS}: all but one were talk that nobody needed."
        return Judged("right", text, checks)
    if right:
        return Judged("partial", f"The step is right, but gradients were exchanged {sent:g} times.", checks, hint=1)
    return Judged("partial" if 0 < sent <= 1 else "wrong", *_miss(weights, sent, seed, checks))


def _miss(weights: Sequence[Any], sent: float, seed: int, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on a wrong step, by what it amounts to; checks, no picture, and the hint that would help."""
    first = weights[0] if weights else None
    if close_to(first, expected_weights(seed, times=N_PARTS), 1e-3):
        text = f"The step is {N_PARTS} times too long: each part's mean counts as if it were the whole."
        return text, checks, (), (), 3
    if not sent:
        text = "Nothing was exchanged, so each card went its own way: their weights differ from now on."
        return text, checks, (), (), 2
    for part in range(N_PARTS):
        for times in (1.0, 1 / N_PARTS):
            if close_to(first, expected_weights(seed, times=times, parts=(part,)), 1e-3):
                return f"Only part {part + 1} has moved the weights; something forgets the others.", checks, (), (), 2
    return "The weights are not those after one step on all parts of both cards.", checks, (), (), 2


ONCE = Exercise(
    "16.2",
    "Talk once",
    "code",
    f"Two cards go through {N_PARTS} parts of {N_ROWS} rows each before the optimizer steps. As it stands, every "
    "`backward` exchanges gradients. Change it so that they are exchanged once, and the weights end up as after one "
    "step on all rows of both cards.",
    (
        "`with model.no_sync():` around forward and backward keeps gradients at home.",
        "Kept gradients add up, and the next backward outside of `no_sync` exchanges the sum. So which part is that?",
        "The mean over all parts is the sum of their means, each divided by the number of parts.",
    ),
    _judge_once,
    starter=STARTER,
    needs_run=False,
    hidden=lambda dice: {"seed": dice.randrange(1, 1_000_000)},
)
