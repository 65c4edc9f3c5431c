"""Exercises of lesson 7: predict what a larger batch costs row by row, and hand out batches without touching rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises import drawn
from gpututor.exercises.coded import SMALL_BYTES, Laid, close_to, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged, Points
from gpututor.exercises.on_card.ex07_data import table_of
from gpututor.exercises.typed import Slip, judge_number
from gpututor.lab.learner_code import run_learner
from gpututor.text import duration

__all__ = ["BATCHES", "LARGER", "NOTES", "RECALL", "case_larger"]

TOLERANCE = 0.12  # of the prediction: the times it rests on repeat within some percent on a quiet computer

# --- 7.1 -------------------------------------------------------------------------------------------------------------


def case_larger(step_ns: Mapping[str, float], n_rows: int, n_larger: int) -> dict[str, Any]:
    """The case of exercise 7.1 from the mean step of the run's variants, by key, in nanoseconds."""
    by_row, at_once, measured = step_ns["rows-0"], step_ns["batch-0"], step_ns["rows-large"]
    words = {"rows": f"{n_rows:,}", "larger": f"{n_larger:,}", "step": duration(by_row), "once": duration(at_once)}
    return {"words": words, "by_row_ms": by_row / 1e6, "at_once_ms": at_once / 1e6, "measured_ms": measured / 1e6} | {
        "times": n_larger / n_rows,
        "n_rows": n_rows,
    }


def judge_larger(answer: Any, case: Case) -> Judged:
    """Rows cost Python each, launches don't: only the first part grows with the batch."""
    by_row, at_once, times = case["by_row_ms"], case["at_once_ms"], case["times"]
    rows_ms = max(0.0, by_row - at_once)
    right = at_once + times * rows_ms
    slips: tuple[Slip, ...] = (
        (times * by_row, "That lets the whole step grow. Which part of it is the same for any number of rows?"),
        (by_row, "That is today's step. Who walks through the additional rows?"),
        (times * rows_ms, "That is the fetching alone. After it the batch still has to be trained on."),
        (at_once, "That is a step whose batch is fetched at once. Here each row is fetched by itself."),
    )
    each = duration(rows_ms * 1e6 / case["n_rows"])
    said = (
        f"A row costs {each} of Python, and the {duration(at_once * 1e6)} of the rest stay. "
        f"Your run did this too and took {duration(case['measured_ms'] * 1e6)} a step."
    )
    otherwise = "Split the step of today into what grows with the number of rows and what doesn't."
    return judge_number(
        str(answer), right, tolerance_share=TOLERANCE, said=said, slips=slips, otherwise=otherwise, hint=1
    )


LARGER = Exercise(
    "7.1",
    "A larger batch, row by row",
    "number",
    "Row by row, your step with {rows} rows took {step}. With the whole batch fetched at once it took {once}. Predict "
    "the step with {larger} rows, row by row and without workers, in milliseconds.",
    (
        "The two steps train on the same rows. What is the difference between them made of?",
        "The difference is the fetching, and it grows with the rows. The rest is launches, and their number stays.",
        "Fetching = first step − second step. Answer = second step + fetching × (more rows ÷ rows).",
    ),
    judge_larger,
    unit="ms",
)

# --- 7.2 -------------------------------------------------------------------------------------------------------------

FUNCTION = "batches"
HARNESS, DATA = "gpututor.exercises.on_card.ex07:run", "gpututor.exercises.on_card.ex07_data:on_card"
SIZES = (8, 32, 128)
TIMEOUT_S, MEMORY_MB = 20.0, 4096  # torch is imported in it
MOST_ON_CARD = 18  # there a call is several operators, such as copying the indices; fewer than a batch has rows
MOST_CALLS = 6  # a batch: one for each of two tensors, and room for a conversion or a copy
STARTER = f"""import torch

def {FUNCTION}(x, y, order, batch_size):
    # yields (rows of x, labels of y) for each batch, in the order of the list of indices
    rows, labels = [], []
    for i in order:
        rows.append(x[i])
        labels.append(y[i])
        if len(rows) == batch_size:
            yield torch.stack(rows), torch.stack(labels)
            rows, labels = [], []
"""


def judge_batches(answer: Any, case: Case) -> Judged:
    """The batches against the right ones, and how the number of calls on the table grows with a batch."""
    sizes, seed, width = tuple(case.get("sizes", SIZES)), case.get("seed", 0), case.get("width", 3)
    calls = [table_of(size, seed, width) for size in sizes]
    told = _on_card(str(answer), calls, seed, width) if case.get("on_card") else _in_memory(str(answer), calls)
    if isinstance(told, Judged):
        return told
    right = [_expected(*call) for call in calls]
    full = all(close_to(mine["batches"][: len(want) - 1], want[:-1]) for mine, want in zip(told, right, strict=True))
    last = all(close_to(mine["batches"], want) for mine, want in zip(told, right, strict=True))
    a_batch = [mine["n_calls"] / len(want) for mine, want in zip(told, right, strict=True)]
    most = MOST_ON_CARD if case.get("on_card") else MOST_CALLS
    few = full and 0 < a_batch[-1] <= min(most, a_batch[0] + 1)
    checks = (
        Check("the same rows in the same order", full, 0.4),
        Check("the last, shorter batch too", last, 0.1),
        Check("the number of calls doesn't grow with the batch", few, 0.5),
    )
    theirs: Points = tuple((float(size), n) for size, n in zip(sizes, a_batch, strict=True))
    ours: Points = tuple((float(size), 2.0) for size in sizes)
    return _said(checks, sizes, a_batch[-1], theirs, ours)


def _in_memory(code: str, calls: list[list[Any]]) -> Judged | list[Mapping[str, Any]]:
    """What came of the calls on a table in memory, counted next to the code; or what is to be said."""
    ran = run_learner(code, FUNCTION, calls, harness=HARNESS, timeout_s=TIMEOUT_S, memory_mb=MEMORY_MB)
    if ran.values is None:
        return Judged("wrong", ran.sentence or "Your code gave no answer.")
    for value in ran.values:
        if not isinstance(value, Mapping) or not isinstance(value.get("n_calls"), int):
            return Judged("wrong", "What your code handed back is no list of batches; run it again.")
        if value.get("batches") is None:
            return NOT_ANSWERED
    return list(ran.values)


def _on_card(code: str, calls: list[list[Any]], seed: int, width: int) -> Judged | list[Mapping[str, Any]]:
    """The same with the table on a card, where the card counts: nothing in the code's process can change that."""
    asked = [[DEFAULT_MACHINE, Laid(DATA, (size, seed, width)), order, size] for *_, order, size in calls]
    runs, why = on_card(code, FUNCTION, HARNESS + "_on_card", asked)
    if not runs:
        return Judged("wrong", why)
    return [
        {
            "batches": run.gave if isinstance(run.gave, list) else [],
            # a table that is read row by row, or all at once, is walked through in Python
            "n_calls": run.n_ops if run.downloaded_bytes <= SMALL_BYTES else len(order),
        }
        for run, (*_, order, _) in zip(runs, calls, strict=True)
    ]


def _said(checks: tuple[Check, ...], sizes: tuple[int, ...], n_calls: float, theirs: Points, ours: Points) -> Judged:
    full, last, few = (check.holds for check in checks)
    if full and last and few:
        text = f"A batch of {sizes[-1]} rows costs no more calls of torch than one of {sizes[0]}: {n_calls:.0f} in all."
        return Judged("right", text, checks, theirs, ours)
    if not full:
        text = "The batches hold other rows, or the same in another order, than the list of indices says."
        return Judged("wrong", text, checks, theirs, ours, 1)
    if not few:
        text = f"The rows are right, but a batch of {sizes[-1]} rows takes {n_calls:.0f} calls of torch."
        return Judged("partial", text, checks, theirs, ours, 2)
    return Judged("partial", "The rows at the end that fill no whole batch are missing.", checks, theirs, ours, 3)


def _expected(x: list[list[float]], y: list[float], order: list[int], batch_size: int) -> list[Any]:
    cuts = [order[k : k + batch_size] for k in range(0, len(order), batch_size)]
    return [[[x[i] for i in cut], [y[i] for i in cut]] for cut in cuts]


def _draw(rng: random.Random) -> Case:
    sizes = [rng.randint(6, 12), rng.randint(24, 48), rng.randint(100, 160)]
    return {"on_card": True, "seed": drawn.seed(rng), "sizes": sizes, "width": rng.randint(2, 5)}


BATCHES = Exercise(
    "7.2",
    "Batches without touching a row",
    "code",
    "This generator works, and asks torch once for every row. Rewrite it: the same batches in the same order, the last "
    "one shorter if need be, with a number of calls that doesn't grow with the batch. The circles are ours.",
    (
        "A tensor can be indexed with more than one number. What does `x[[3, 0, 7]]` give?",
        "Walk through the order in strides: `range(0, len(order), batch_size)`. Which indices belong to one stride?",
        "`piece = order[k : k + batch_size]`, then `yield x[piece], y[piece]`; a slice may be shorter at the end.",
    ),
    judge_batches,
    starter=STARTER,
    x_title="rows in a batch (upright: calls of torch for it)",
    needs_run=False,
    hidden=_draw,
)

RECALL = (
    (
        "Workers load, the card computes. How long is a step?",
        "As long as the slower of the two: loading divided by the workers, or the compute.",
    ),
    (
        "Why does a bigger card hardly speed up an LSTM?",
        "Each time step waits for the one before, so there is never enough work at once to fill the card.",
    ),
)
NOTES = (
    "**Ask first**: who has set num_workers without measuring? Then the guess, by hands. **Watch for**: people who "
    "take the lesson for “workers are bad”; let them read the rows of texts and files. **Discuss**: what would move "
    "the break-even (rows of a megabyte, a slow disk, spawn in place of fork)? **Exercise 7.1**: the usual slip is to "
    "let the whole step grow. **Exercise 7.2**: most forget the last, shorter batch. **Short of time**: guess, run, "
    "why."
)
