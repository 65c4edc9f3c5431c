"""Exercises of lesson 19: what an hour of another machine may buy, and the whole training raised in code."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE, Machine
from gpututor.exercises import drawn
from gpututor.exercises.coded import Laid, Launched, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex19_data import HIDDEN, N_TRAINED, SEED, text
from gpututor.exercises.typed import judge_number
from gpututor.jobs.held_out import NAMES, Weights, loss_of
from gpututor.jobs.numbering import Rows
from gpututor.ledger.device import SHOWN_BY_NVIDIA_SMI, covered_by
from gpututor.lookup import machine_named
from gpututor.paths import data_dir
from gpututor.replay import Played, play_file
from gpututor.text import NBSP, dollars, duration, percent

__all__ = ["NOTES", "PRICED", "RAISED", "RECALL", "case_priced", "case_raised"]

TOLERANCE = 0.05
RECALL = (
    (
        "Eight cards share a batch over a slow link and take longer than one. What do they wait for?",
        "Each other's gradients: they have less to do each, and as much to say.",
    ),
    (
        "A sampler shows that the card is busy all the time. What does that not say?",
        "How much of the card works, and at what: one block in a slow format is busy, too.",
    ),
)
NOTES = (
    "**Ask first**: which of the lessons would you begin with, and why? **Watch for**: people who raise the batch and "
    "stop at the gauge; the loss is what is paid for. People who try one lever at a time: a graph needs whole "
    "sentences, and a batch needs another rate. **Discuss**: the last tenth of utilization often costs more than it "
    "brings; a cheaper card may be the larger step. **Our solution** stands folded at the end of this page, and in "
    "docs/capstone.md, both computed from the run that we kept. **Simulated**: no start of a process, no files, no "
    "check on unseen sentences within the run; a real job pays for all three. **Short of time**: the guess, one "
    "attempt together, the two ledgers. **Exercise 19.2**: the usual slip is a loop over words that reads each guess; "
    "the next is a graph whose batch never changes. **19.1**: the usual slip is to divide the wrong way round."
)


# --- 19.1 ------------------------------------------------------------------------------------------------------------


def case_priced(step_ns: float, here: Machine, there: Machine, there_ns: float) -> dict[str, Any] | None:
    """The case of 19.1: a step of the reader's attempt here, and what both machines cost an hour.

    `there_ns` is the same step there. None where a machine has no price.
    """
    if here.usd_per_hour is None or there.usd_per_hour is None:
        return None
    words = {
        "step": f"{step_ns / 1e6:.3f}{NBSP}ms",
        "here": here.name,
        "there": there.name,
        "usd_here": f"${here.usd_per_hour:.3f}",
        "usd_there": f"${there.usd_per_hour:.3f}",
        "tolerance": percent(TOLERANCE),
    }
    prices = {"usd_here": here.usd_per_hour, "usd_there": there.usd_per_hour}
    return {"step_ms": step_ns / 1e6, "there_ms": there_ns / 1e6, **prices, "words": words}


def judge_priced(answer: Any, case: Case) -> Judged:
    """The verdict on a typed time."""
    step, here, there, really = (case[name] for name in ("step_ms", "usd_here", "usd_there", "there_ms"))
    right = step * here / there
    verdict = "so it is the cheaper one for this job" if really < right else "so it is the dearer one for this job"
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"An hour there costs {there / here:.2f} of an hour here, so a step may take {here / there:.2f} times as "
        f"long: {duration(right * 1e6)}. It takes {duration(really * 1e6)}, {verdict}.",
        slips=(
            (step * there / here, "That divides the wrong way round: a cheap hour may take longer, not a dear one."),
            (step, "That is the step as it is. The other machine costs another sum an hour."),
            (really, "That is how long it does take there; asked is how long it may."),
            (right * 1e3, "That looks like microseconds taken for milliseconds."),
            (right / 1e3, "That looks like seconds taken for milliseconds."),
        ),
        otherwise="Not that long.",
        hint=1,
    )


PRICED = Exercise(
    "19.1",
    "How slow may a cheap card be?",
    "number",
    "A usual step of your attempt takes {step} on {here}, at {usd_here} an hour. {there} is let for {usd_there}. How "
    "long may the same step take there, before that machine is the dearer one? Within {tolerance} counts as right.",
    (
        "What does one step cost here?",
        "For that sum, how long is the other machine yours?",
        "The step's time, times this price, divided by the other.",
    ),
    judge_priced,
    unit="ms",
)

# --- 19.2 ------------------------------------------------------------------------------------------------------------

HARNESS, DATA = "gpututor.exercises.on_card.ex19:run", "gpututor.exercises.on_card.ex19_data:on_card"
FUNCTION = "train"
LOSS = 1.8  # of a word
N_MYSTERY = 2_500  # sentences that the loop of lesson 2 takes to it, with a model as small: our run, in steps of 500
BUSY = 0.8
CHEAP, CHEAPER = 50, 80  # times; our 45 steps launched one by one come to 67, our graph to 97 or more
N_HELD_OUT = 400
LEAST_SENTENCES = 300  # nobody learns it from so few: our quickest training took three times as many
MOST_DOWN_BYTES, MOST_UP_BYTES = 2**14, 2**17  # some losses, some lists of sentences; the weights have 450,000 bytes
CHECKS = (
    f"translates unseen sentences at a loss of {LOSS} or better",
    f"then, the card is busy for {percent(BUSY)} of the second half",
    f"then, takes a {CHEAP}th of the mystery job's time and money, or less",
    f"then, takes an {CHEAPER}th or less",
)
SHARES = (0.4, 0.3, 0.15, 0.15)
STARTER = f"""import random
import torch
from torch.nn import functional as F

def {FUNCTION}(encoder, decoder, french, english, n_french, n_english):
    # encoder: embedding, gru; decoder: embedding, dropout, attn, attn_combine, gru, out
    # french, english: word numbers (sentences, 10) on the card, filled up with 1, the end mark
    # n_french, n_english: how many of a row count, end mark included, as lists
    # nothing is returned: the weights count
    weights = [*encoder.parameters(), *decoder.parameters()]
    sgd = torch.optim.SGD(weights, lr=0.01)
    for _ in range(20):  # it would take thousands
        k = random.randrange(len(n_french))
        state, read = torch.zeros(1, 1, {HIDDEN}, device="cuda"), torch.zeros(10, {HIDDEN}, device="cuda")
        for i in range(n_french[k]):
            output, state = encoder.gru(encoder.embedding(french[k, i]).view(1, 1, -1), state)
            read[i] = output[0, 0]
        word, loss = torch.zeros(1, dtype=torch.long, device="cuda"), 0
        for i in range(n_english[k]):
            embedded = decoder.dropout(decoder.embedding(word))
            look = torch.softmax(decoder.attn(torch.cat((embedded, state[0]), 1)), 1)
            mixed = torch.relu(decoder.attn_combine(torch.cat((embedded, look @ read), 1)))
            output, state = decoder.gru(mixed.unsqueeze(0), state)
            loss = loss + F.cross_entropy(decoder.out(output[0]), english[k, i : i + 1])
            word = english[k, i : i + 1]
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        print(loss.item() / n_english[k])
"""


@lru_cache(maxsize=8)
def held_out(seed: int, which: int) -> Rows:
    """The sentences that a training is judged by: among those that it was not given, drawn by the judge."""
    unseen = text(seed).unseen
    picked = sorted(random.Random(which).sample(range(len(unseen)), N_HELD_OUT))
    return Rows(*(getattr(unseen, name)[picked] for name in ("french", "english", "n_french", "n_english")))


def weights_in(gave: Any, n_french: int, n_english: int) -> Weights | None:
    """The weights that a run handed back; None where they are not those of the model."""
    if not isinstance(gave, Mapping) or set(gave) != set(NAMES):
        return None
    try:
        found = {name: np.asarray(gave[name], np.float32) for name in NAMES}
    except (TypeError, ValueError):
        return None
    return found if {name: each.shape for name, each in found.items()} == _shapes(n_french, n_english) else None


def _shapes(n_french: int, n_english: int) -> dict[str, tuple[int, ...]]:
    h, places = HIDDEN, text().trained.french.shape[1]
    words = {"encoder": n_french, "decoder": n_english}
    shapes: dict[str, tuple[int, ...]] = {}
    for half, n in words.items():
        gates = {
            f"{half}.gru.{name}_{of}_l0": (3 * h, h)[: 2 - (name == "bias")]
            for name in ("weight", "bias")
            for of in ("ih", "hh")
        }
        shapes |= {f"{half}.embedding.weight": (n, h), **gates}
    shapes |= {"decoder.attn.weight": (places, 2 * h), "decoder.attn.bias": (places,)}
    shapes |= {"decoder.attn_combine.weight": (h, 2 * h), "decoder.attn_combine.bias": (h,)}
    return shapes | {"decoder.out.weight": (n_english, h), "decoder.out.bias": (n_english,)}


def least_flop(seed: int) -> float:
    """Of so few sentences, forward and backward: both GRUs and the last layer alone, two operations a product."""
    known = text(seed)
    a_french = 2 * 6 * HIDDEN**2
    an_english = 2 * (6 * HIDDEN**2 + HIDDEN * known.n_english)
    words = known.trained.n_french.mean() * a_french + known.trained.n_english.mean() * an_english
    return float(3 * LEAST_SENTENCES * words)


def busy_later(played: Played) -> float:
    """The busy share of the second half: warming up and capturing belong to the first."""
    begin_ns, end_ns = played.timeline.window_ns
    half = ((begin_ns + end_ns) // 2, end_ns)
    busy_ns = covered_by(played.timeline.spans, half, lambda span: span.activity in SHOWN_BY_NVIDIA_SMI)
    return busy_ns / max(1, half[1] - half[0])


@lru_cache(maxsize=16)
def mystery_ns(machine: str) -> float:
    """What the mystery job takes to the loss on a machine: the mean of our kept steps, as many times."""
    played = play_file(data_dir() / "capstone" / "mystery.tape.gz", machine_named(machine))
    return N_MYSTERY * played.step_ns


def judge_raised(answer: Any, case: Case) -> Judged:
    """The verdict on a whole training."""
    on, seed = machine_named(case.get("machine") or DEFAULT_MACHINE), case.get("seed", SEED)
    known = text(seed)
    lengths = (known.trained.n_french.tolist(), known.trained.n_english.tolist())
    calls = [[on.name, Laid(DATA, (seed,)), [known.n_french, known.n_english], *lengths]]
    launched, sentence = on_card(str(answer), FUNCTION, HARNESS, calls)
    if not launched:
        return Judged("wrong", _of_capture(sentence), hint=2 if "captur" in sentence else None)
    weights = weights_in(launched[0].gave, known.n_french, known.n_english)
    if weights is None:
        return Judged("wrong", "The model has other weights than before: train those that it has, in place.")
    if launched[0].downloaded_bytes > MOST_DOWN_BYTES or launched[0].uploaded_bytes > MOST_UP_BYTES:
        return Judged("wrong", "Too much was copied between host and card: sentences and weights stay on it.", hint=1)
    loss = loss_of(weights, held_out(seed, case.get("held_out", 0)))
    return _judged(launched[0], on, loss, seed)


def _judged(launched: Launched, on: Machine, loss: float, seed: int) -> Judged:
    """The verdict on weights of this loss, and on how they came about."""
    if loss <= LOSS and launched.flop(on) < least_flop(seed):
        return Judged("wrong", "So little was reckoned on the card that these weights can't have been learned there.")
    played = launched.on(on)
    took_ns, busy = float(played.timeline.duration_ns), busy_later(played)
    times = mystery_ns(on.name) / took_ns
    there = loss <= LOSS
    holds = (there, there and busy >= BUSY, there and times >= CHEAP, there and times >= CHEAPER)
    checks = tuple(map(Check, CHECKS, holds, SHARES))
    usd = None if on.usd_per_hour is None else took_ns / 3600e9 * on.usd_per_hour
    spent = f"{duration(took_ns)}" + ("" if usd is None else f" and {dollars(usd)}")
    if not there:
        text_ = f"After {spent} unseen sentences stand at a loss of {loss:.2f}; {LOSS} is asked for."
        return Judged("wrong", text_, checks, hint=1)
    said = f"A loss of {loss:.2f} for {spent}, {times:.0f} times as cheap as the mystery job; busy for {percent(busy)}"
    if all(holds):
        return Judged("right", f"{said}.", checks, usd=usd)
    hint = 3 if not holds[1] else 2
    return Judged("partial", f"{said}.", checks, hint=hint, usd=usd if holds[1] else None)


def _of_capture(sentence: str) -> str:
    """Torch's word on a capture that can't be, with what follows from it."""
    if "when stream is capturing" not in sentence:
        return sentence
    return f"{sentence.rstrip('.')}. What waits for the card can't be part of a graph."


def case_raised(machine: str) -> dict[str, Any]:
    """The case of 19.2: the machine on which the training is priced."""
    return {"machine": machine}


def _draw(rng: random.Random) -> Case:
    return {"machine": drawn.machine_name(rng), "seed": drawn.seed(rng), "held_out": rng.randrange(1, 10**6)}


RAISED = Exercise(
    "19.2",
    "From 25 to 80",
    "code",
    f"Write `{FUNCTION}` so that a small sister of the mystery job ({HIDDEN} numbers a word, {N_TRAINED:,} sentences) "
    f"translates unseen sentences at a loss of {LOSS} a word, with the card busy and for as little as you can. The "
    "model stays as it is; how you call it, batch, optimizer and rate are yours. We hold its weights against "
    "sentences that your code never gets.",
    (
        "Many sentences a step, the right word always given, Adam. How many steps does that leave?",
        "Give the encoder all words in one call, and what needs no state one product. Nothing in a loop may wait.",
        "All batches of one shape: then one `torch.cuda.CUDAGraph` holds a step, with `Adam(capturable=True)`.",
    ),
    judge_raised,
    starter=STARTER,
    marks=20,
    needs_run=False,
    hidden=_draw,
)
