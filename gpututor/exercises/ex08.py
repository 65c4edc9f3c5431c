"""Exercises of lesson 8: how much of a copy can be hidden, and a loop that hides it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from gpututor.exercises.arrivals import exposed_ns, learned_too_soon
from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged, Points
from gpututor.exercises.typed import Slip, judge_number
from gpututor.lookup import machine_named
from gpututor.model.tape import CopyCall
from gpututor.text import duration

__all__ = ["AHEAD", "HIDDEN", "NOTES", "RECALL", "hidden_case"]

# --- 8.1 -------------------------------------------------------------------------------------------------------------

TOLERANCE = 0.08  # of the prediction: launches, latencies and the conversion back to float32 are left out of it


def hidden_case(copy_ns: float, work_ns: float, step_ns: float) -> dict[str, Any]:
    """The case of exercise 8.1: the pinned float32 copy, the step without any copy, and the step with it ahead."""
    words = {"copy": duration(copy_ns), "work": duration(work_ns)}
    return {"words": words, "copy_ms": copy_ns / 1e6, "work_ms": work_ns / 1e6, "step_ms": step_ns / 1e6}


def _judge_hidden(answer: Any, case: Case) -> Judged:
    copy, work = 2 * case["copy_ms"], case["work_ms"]
    slips: tuple[Slip, ...] = (
        (copy + work, "That is one after the other. In a stream of its own the copy runs while the card works."),
        (case["copy_ms"], "That is the copy of float32. How many bytes has a float64?"),
        (max(copy / 2, work), "That is the step with float32. How many bytes has a float64?"),
        (work, "That takes the copy to be hidden whatever it takes. How long is there work to hide it under?"),
        (copy, "That leaves out the card's own work, which takes longer than the copy."),
    )
    longer = "the copy" if copy > work else "the work"
    said = (
        f"The copy takes {duration(copy * 1e6)}, the work {duration(work * 1e6)}, and {longer} sets the pace. With "
        f"float32 your run took {duration(case['step_ms'] * 1e6)}."
    )
    otherwise = "Two things run side by side here. When is the step over?"
    return judge_number(
        str(answer), max(copy, work), tolerance_share=TOLERANCE, said=said, slips=slips, otherwise=otherwise
    )


HIDDEN = Exercise(
    "8.1",
    "Twice the bytes, out of sight",
    "number",
    "Pinned, your batch of float32 took {copy} to copy. All else in a step takes {work}. Now somebody leaves the batch "
    "in float64, pinned and copied ahead in a stream of its own. How long is a step, in milliseconds? Leave out the "
    "conversion on the card.",
    (
        "How long does the copy take now? It has twice the bytes.",
        "The copy of the next batch runs while the card works on this one. What does the next step wait for?",
        "Two runners start together, and the step is over when the slower one arrives: the larger of two numbers.",
    ),
    _judge_hidden,
    unit="ms",
)

# --- 8.2 -------------------------------------------------------------------------------------------------------------

FUNCTION = "train"
HARNESS = "gpututor.exercises.on_card.ex08:run"
MACHINE = "g4dn.xlarge"  # a T4: slow enough that a copy can be hidden under little arithmetic
N_BATCHES, BATCH, SIDE, SEED = 6, 32, 128, 8
BATCH_BYTES = BATCH * 3 * SIDE * SIDE
MOST_BYTES = 1.05  # of the batches' own; room for small things
MOST_EXPOSED = 0.3  # of the later copies: the card may pause a little between two kernels while one runs
STARTER = f"""import torch

def {FUNCTION}(batches, learn):
    # batches: a list of pictures, bytes (uint8) in pinned host memory
    # learn(x): trains on x, float32 from 0 to 1 on "cuda", and gives the loss
    losses = []
    for pictures in batches:
        x = (pictures.double() / 255).to("cuda").float()
        losses.append(learn(x))
    return losses
"""


def _judge_ahead(code: Any, case: Case) -> Judged:
    call = (MACHINE, N_BATCHES, BATCH, SIDE, case.get("seed", SEED))
    launched, sentence = on_card(str(code), FUNCTION, HARNESS, [call])
    if not launched:
        return Judged("wrong", sentence)
    return judge_launched(launched[0], expected_losses(*call[1:]))


def judge_launched(run: Launched, losses: list[float]) -> Judged:
    """The judgement on what was launched, against the right losses."""
    copies = [entry for entry in run.tape.entries if type(entry) is CopyCall]
    carried = [copy for copy in copies if copy.to_gpu]
    right = close_to(run.gave, losses, rel=2e-3)
    few_bytes = 0 < sum(copy.n_bytes for copy in carried) <= MOST_BYTES * N_BATCHES * BATCH_BYTES
    free = bool(copies) and run.n_waits == 0
    spans = exposed_ns(run.on(machine_named(MACHINE)).timeline)
    whole, exposed = sum(span[0] for span in spans[1:]), sum(span[1] for span in spans[1:])
    hidden = len(spans) >= N_BATCHES and exposed <= MOST_EXPOSED * whole
    waits = not learned_too_soon(run.tape, BATCH_BYTES)
    checks = (
        Check("the losses are right", right, 0.2),
        Check("one byte a value crosses the link", right and few_bytes, 0.2),
        Check("no copy holds the host", right and free, 0.2),
        Check("after the first, copies run while the card works", right and hidden, 0.2),
        Check("no batch is used before it has arrived", right and hidden and waits, 0.2),
    )
    theirs: Points = tuple((k + 1.0, span[1] / 1e3) for k, span in enumerate(spans[: 2 * N_BATCHES]))
    ours: Points = tuple((k + 1.0, span[0] / 1e3 if k == 0 else 0.0) for k, span in enumerate(spans[:N_BATCHES]))
    return _said(checks, theirs, ours)


def _said(checks: tuple[Check, ...], theirs: Points, ours: Points) -> Judged:
    misses = (
        ("The losses are others than those of the six batches in order, each divided by 255.", 1),
        ("More than a byte a value crosses the link: something is converted before the copy.", 1),
        ("The host stands still at a copy or a wait. Pinned memory alone doesn't let it go on.", 2),
        ("Copies still run while the card has nothing to do. In which stream are they, and from when on?", 3),
        ("A batch is used before its copy is sure to be over; on a card this learns from whatever is there.", 3),
    )
    for check, (text, hint) in zip(checks, misses, strict=True):
        if not check.holds:
            return Judged("partial" if checks[0].holds else "wrong", text, checks, theirs, ours, hint)
    text = "Hardly more than the first copy is seen. The others run while the card works."
    return Judged("right", text, checks, theirs, ours)


@lru_cache(maxsize=4)
def _expected(n_batches: int, batch: int, side: int, seed: int) -> tuple[float, ...]:
    from gpututor.exercises.on_card.ex08 import RATE, drawn

    pictures, weights = drawn(n_batches, batch, side, seed)
    losses = []
    for each in pictures:
        flat = each.reshape(batch, -1).astype("float32") / 255
        scores = flat @ weights
        losses.append(float((scores**2).mean()))
        weights -= 2 * RATE / scores.size * (flat.T @ scores)
    return tuple(losses)


def expected_losses(n_batches: int, batch: int, side: int, seed: int) -> list[float]:
    """The losses by numpy, in the order of the batches."""
    return list(_expected(n_batches, batch, side, seed))


_FREE = (
    "The batches are pinned already. `.to('cuda', non_blocking=True)` returns at once; a copy of them in another "
    "number format is in new memory, which isn't pinned."
)
_IN_TIME = (
    "Start the copy of the next batch in `with torch.cuda.stream(side):` before you call `learn`. Before you use a "
    "batch, `torch.cuda.current_stream().wait_stream(side)`."
)
AHEAD = Exercise(
    "8.2",
    "Copy ahead",
    "code",
    "This loop is right, and the card waits for every batch. Rewrite it: the same losses, a byte a value across the "
    "link, and every copy but the first one hidden under the card's work. The line shows how many µs each copy "
    "keeps the card waiting; the circles are the least there can be.",
    (
        "What is the smallest thing that can cross the link? Convert it where it arrives.",
        _FREE,
        _IN_TIME,
    ),
    _judge_ahead,
    starter=STARTER,
    x_title="number of the copy",
    needs_run=False,
    machine=MACHINE,
)

RECALL = (
    (
        "When do workers make a loader of rows in memory slower?",
        "When handing a batch over costs more than making it.",
    ),
    (
        "Does a wider or a deeper network keep the card busier?",
        "A wider one: its kernels have more blocks. A deeper one has more kernels of the same size.",
    ),
)
NOTES = (
    "**Ask first**: who has pin_memory=True in a loader and no non_blocking in the loop? **Watch for**: people who "
    "take the first table for a rule; with a heavy network and many workers the host may be the better place. "
    "**Discuss**: what would you lose by leaving augmentation out? Compare the two losses. **Exercise 8.1**: the usual "
    "slip is to take a hidden copy for a free one. **Exercise 8.2**: right losses don't prove the order right; a "
    "missing wait is seen in the launches only. **Short of time**: guess, run, the table of copies, the curve."
)
