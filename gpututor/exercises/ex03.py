"""Exercises of lesson 3: the largest batch that fits, and a large batch's gradient in the memory of a small one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.cards import Card
from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex03_data import N_INPUTS, N_ROWS, RATE, rows_of_data
from gpututor.exercises.typed import judge_number
from gpututor.text import NBSP, percent

__all__ = ["ACCUMULATE", "LARGEST", "NOTES", "RECALL", "memory_case"]

GIB = 2**30
TOLERANCE = 0.05
HARNESS = "gpututor.exercises.on_card.ex03:run"
N_AT_ONCE = 8

RECALL = (
    (
        "Why did the H100 hardly help the translator?",
        "The host sets the pace: launching a kernel took longer than running it.",
    ),
    ("What does 100 % in nvidia-smi not say?", "How much of the card works: one block on one SM is enough for it."),
)
NOTES = (
    "**Ask first**: who picks the batch by what fits? By habit? **Watch for**: people who see busy rise to 100 % at "
    "the knee and go on doubling; what is gained after it is lost memory. **Discuss**: the rate that grows with the "
    "batch is a rule of thumb with an end; the last line of the table is beyond it. **Short of time**: guess, run, "
    "the curve, the table of losses. **Exercise 3.1**: the usual slip is to divide memory by memory a picture and "
    "forget what weights take. **3.2**: not dividing the loss gives a gradient four times too large."
)


def memory_case(points: Sequence[Any], card: Card) -> dict[str, Any]:
    """Peak memory at two batches of the learner's run, and the card's size: what 3.1 needs.

    `points` are those of the sweep over ResNet-50's batch (page.sweep.Point).
    """
    known = [(p.n_samples, p.memory_bytes) for p in points if p.memory_bytes is not None]
    (small, small_bytes), (large, large_bytes) = known[len(known) // 2 - 1], known[len(known) // 2]
    return {
        "small": small,
        "large": large,
        "small_bytes": small_bytes,
        "large_bytes": large_bytes,
        "card_bytes": card.memory_bytes,
        "words": {
            "small": f"{small}",
            "large": f"{large}",
            "small_gib": f"{small_bytes / GIB:.2f}{NBSP}GiB",
            "large_gib": f"{large_bytes / GIB:.2f}{NBSP}GiB",
            "card": card.name,
            "tolerance": percent(TOLERANCE),
            "card_gib": f"{card.memory_bytes / GIB:.0f}{NBSP}GiB",
        },
    }


def _judge_largest(typed: Any, case: Case) -> Judged:
    each = (case["large_bytes"] - case["small_bytes"]) / (case["large"] - case["small"])
    fixed = case["small_bytes"] - each * case["small"]
    right = math.floor((case["card_bytes"] - fixed) / each)
    slips = (
        (case["card_bytes"] / (case["large_bytes"] / case["large"]), "That takes all memory to grow with the batch."),
        (case["card_bytes"] / (case["small_bytes"] / case["small"]), "That takes all memory to grow with the batch."),
        (2.0 ** math.floor(math.log2(right)), "That is the power of two below it; nothing asks for one. Count on."),
    )
    said = (
        f"{fixed / GIB:.2f}{NBSP}GiB are there at any batch, and each picture takes {each / 2**20:.0f}{NBSP}MiB more, "
        f"so {right:,} fit. A real card holds some hundred MiB less: CUDA's own context lives there too."
    )
    return judge_number(
        str(typed), right, tolerance_share=TOLERANCE, said=said, slips=slips, otherwise="Not that many.", hint=2
    )


LARGEST = Exercise(
    "3.1",
    "What fits",
    "number",
    "ResNet-50 took {small_gib} at {small} pictures a step and {large_gib} at {large}. How many pictures a step fit "
    "into the {card_gib} of a {card}? Within {tolerance} counts as right.",
    (
        "Some memory is there whatever the batch: weights, gradients, momentum. Some comes with each picture.",
        "Two points make a line. What does one more picture cost, by the two peaks and the two batches?",
        "Take what a picture costs, work back to a batch of none, and see how many fit into what is left.",
    ),
    _judge_largest,
    unit="pictures",
)

STARTER = f"""def train_step(model, optimizer, x, y):
    # x holds {N_ROWS} rows, but only {N_AT_ONCE} may be on their way at a time.
    # One optimizer step, as if all {N_ROWS} had been one batch. The loss is the mean squared error.
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _judge_accumulate(code: Any, case: Case) -> Judged:
    launched, sentence = on_card(str(code), "train_step", HARNESS)
    if not launched:
        return Judged("wrong", sentence)
    gave = launched[0].gave if isinstance(launched[0].gave, Mapping) else {}
    ours = expected_weights()
    right = close_to(gave.get("weights"), ours, 1e-3)
    most = most_rows(launched[0])
    narrow = most is not None and most <= N_AT_ONCE
    checks = (
        Check("the weights are those after one step on all rows", right, 0.6),
        Check(f"never more than {N_AT_ONCE} rows in one product", narrow, 0.4),
    )
    if right and narrow:
        text = "The same step in a quarter of the memory. It launches four times as many kernels: no time is saved."
        return Judged("right", text, checks)
    if not right:
        return Judged("partial" if narrow else "wrong", *_miss(gave.get("weights"), checks))
    return Judged("partial", f"The step is right, but a product had {most} rows in it.", checks, hint=1)


def _miss(weights: Any, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on a wrong step, by what it amounts to; and the checks, no picture, and the hint that would help."""
    parts = N_ROWS // N_AT_ONCE
    if close_to(weights, expected_weights(rate=RATE * parts), 1e-3):
        return (
            f"The step is {parts} times too large: each part's mean counts as if it were the whole.",
            checks,
            (),
            (),
            3,
        )
    if close_to(weights, expected_weights(rows=range(N_ROWS - N_AT_ONCE, N_ROWS)), 1e-3):
        return "Only the last part has moved the weights; something forgets the others.", checks, (), (), 2
    return (
        "The weights are not those after one step on all rows. What does one backward do to the gradients?",
        checks,
        (),
        (),
        2,
    )


def expected_weights(rate: float = RATE, rows: Sequence[int] = range(N_ROWS)) -> list[float]:
    """The weights after one step of gradient descent from zero, in closed form: w = rate * 2/n * sum of y x.

    Mean squared error of a linear model without bias, whose gradient at w = 0 is -2/n sum y x.
    """
    x, y = rows_of_data()
    return [rate * 2 / len(rows) * sum(y[r] * x[r][c] for r in rows) for c in range(N_INPUTS)]


def most_rows(launched: Launched) -> int | None:
    """The most rows that one product of the model had, None where none was launched."""
    from gpututor.model.spec import Gemm
    from gpututor.model.tape import TapeOp

    kernels = [kernel for entry in launched.tape.entries if type(entry) is TapeOp for kernel in entry.kernels]
    sizes = [max(k.m, k.n, k.k) for k in kernels if isinstance(k, Gemm)]
    return max(sizes) if sizes else None


ACCUMULATE = Exercise(
    "3.2",
    "A large batch in little memory",
    "code",
    f"A batch of {N_ROWS} learns well, but only {N_AT_ONCE} rows fit. Change `train_step` so that the weights end up "
    f"exactly as after one step on all {N_ROWS}, with never more than {N_AT_ONCE} rows on their way.",
    (
        f"`x[i : i + {N_AT_ONCE}]` is a part. A backward for each part frees what its forward kept.",
        "Gradients add up over several backwards until `zero_grad`. So where does that belong, and where `step`?",
        f"The mean over {N_ROWS} rows is the sum of the parts' means, each divided by the number of parts.",
    ),
    _judge_accumulate,
    starter=STARTER,
    needs_run=False,
)
