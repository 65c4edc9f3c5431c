"""Exercises of lesson 14: what sorting and cutting leaves of the padding, and batches within a budget of tokens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpututor.exercises import drawn
from gpututor.exercises.form import Case, Check, Exercise, Judged, Points
from gpututor.exercises.typed import judge_number
from gpututor.jobs.lengths import MOST, padding_share
from gpututor.jobs.lengths import drawn as lengths_of
from gpututor.lab.learner_code import run_learner
from gpututor.text import percent

__all__ = ["BUDGET", "LEFT", "NOTES", "RECALL", "case_left"]

TOLERANCE = 0.03
RECALL = (
    (
        "A network has a tenth of another's FLOP and is hardly faster. What else can set its pace?",
        "Bytes and launches: its kernels do little with each number that they fetch.",
    ),
    (
        "When do fewer bits not make a step faster?",
        "When the host sets the pace, or the card has no faster units for that format.",
    ),
)
NOTES = (
    "**Ask first**: who knows the lengths in their own data? Let them print the longest and the mean of one batch; "
    "that is the whole lesson. **Watch for**: people who take packing for the cure. It is one for arithmetic, and an "
    "LSTM waits for steps. **Discuss**: a loss over padding looks better and is worse; two programs can only be "
    "compared by the loss of a real word. Sorting also changes what lies in a batch together: shuffle the batches, and "
    "look at the loss. **Simulated**: cuDNN's search brings nothing here, since the model takes the quickest way "
    "anyway; in public reports (speechbrain pull request 294) it makes some networks a third faster once their shapes "
    "repeat. **Short of time**: guess, run, the table, the losses. **Exercise 14.1**: the usual slip is to cut before "
    "sorting. **14.2**: the usual slip is a budget of words where the batch holds padding too."
)

# --- 14.1 ------------------------------------------------------------------------------------------------------------


def case_left(lengths: Sequence[int]) -> dict[str, Any] | None:
    """The case of 14.1: an even number of texts, to be sorted and cut in two batches; None without any."""
    if len(lengths) < 4 or len(lengths) % 2:
        return None
    words = {
        "n": f"{len(lengths)}",
        "half": f"{len(lengths) // 2}",
        "lengths": ", ".join(map(str, lengths)),
        "tolerance": percent(TOLERANCE),
    }
    return {"lengths": list(lengths), "words": words}


def _in_two(lengths: Sequence[int]) -> float:
    half = len(lengths) // 2
    return padding_share([lengths[:half], lengths[half:]])


def judge_left(answer: Any, case: Case) -> Judged:
    """The verdict on a typed share, in percent."""
    lengths = case["lengths"]
    right = _in_two(sorted(lengths))
    words, half = sum(lengths), len(lengths) // 2
    slips = (
        (100 * _in_two(lengths), "That is what is left if they are cut as they come. Sort them first."),
        (
            100 * padding_share([lengths]),
            "That is one large batch. Cut in two, each half has a longest of its own.",
        ),
        (100 * (1 - right), "That is the part that is words. The question is the other one."),
        (
            100 * right / (1 - right),
            "That is padding over words. The card reads both, so the share is of all positions.",
        ),
    )
    low, high = sorted(lengths)[half - 1], max(lengths)
    said = (
        f"Filled up to {low} and to {high}, {half * (low + high):,} positions hold {words:,} words. As they came, "
        f"{percent(_in_two(lengths))} was padding."
    )
    return judge_number(
        str(answer),
        100 * right,
        tolerance_share=TOLERANCE,
        said=said,
        slips=slips,
        otherwise="Not that much.",
        hint=2,
    )


LEFT = Exercise(
    "14.1",
    "Sort, then cut",
    "number",
    "The first {n} texts of your run have {lengths} tokens. Sort them by length and cut them into two batches of "
    "{half}, each filled up to its own longest. Which part of all positions is padding then, in percent? Within "
    "{tolerance} of it counts as right.",
    (
        "What are the two batches, and how long is the longest text of each?",
        "Positions are texts times the longest, batch by batch. Words are the sum of the lengths, whatever you do.",
        "One minus words over positions, times a hundred.",
    ),
    judge_left,
    unit="%",
)

# --- 14.2 ------------------------------------------------------------------------------------------------------------

FUNCTION = "make_batches"
SIZES, SEED, ROOM = (20, 60, 200), 14, 2048
MORE_PADDING, MORE_BATCHES = 0.02, 1  # than the worse of two good ways has: a share of all positions, and a batch
STARTER = f"""def {FUNCTION}(lengths, budget):
    # lengths[i] is how many tokens text i has; none has more than budget
    # gives a list of batches, each a list of texts' numbers
    return [list(range(k, min(k + 8, len(lengths)))) for k in range(0, len(lengths), 8)]
"""
CHECKS = ("each text once", "no batch above the budget", "little padding", "few batches")
SHARES = (0.2, 0.3, 0.25, 0.25)


@dataclass(frozen=True, slots=True)
class Seen:
    """What batches of some texts come to."""

    once: bool
    within: bool
    padding: float
    n_batches: int


def seen_in(batches: Any, lengths: Sequence[int], budget: int) -> Seen | None:
    """Batches looked at; None where they are no lists of whole numbers."""
    if not isinstance(batches, list) or not all(isinstance(batch, list) for batch in batches):
        return None
    named = [i for batch in batches for i in batch]
    if not all(type(i) is int for i in named):
        return None
    if sorted(named) != list(range(len(lengths))):
        return Seen(False, False, 1.0, len(batches))
    each = [[lengths[i] for i in batch] for batch in batches if batch]
    within = all(len(batch) * max(batch) <= budget for batch in each)
    return Seen(True, within, padding_share(each), len(each))


def ours(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """From the longest text down, each batch as many as its first one's length leaves room for.

    >>> ours([5, 1, 2, 5], 10), upwards([5, 1, 2, 5], 10)
    ([[0, 3], [2, 1]], [[1, 2], [0, 3]])
    """
    left = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches = []
    while left:
        n = budget // lengths[left[0]]
        batches.append(left[:n])
        left = left[n:]
    return batches


def upwards(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """The same from the shortest up, which leaves other padding."""
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(i)
    return batches


def judge_budget(answer: Any, case: Case) -> Judged:
    """The verdict on batches within a budget."""
    seed, budget = case.get("seed", SEED), case.get("budget", ROOM)
    calls = [[lengths_of(n, seed + k), budget] for k, n in enumerate(case.get("sizes", SIZES))]
    ran = run_learner(str(answer), FUNCTION, calls)
    if ran.values is None:
        return Judged("wrong", ran.sentence or "Your code gave no answer.")
    found = [seen_in(value, *call) for value, call in zip(ran.values, calls, strict=True)]
    looked = [each for each in found if each is not None]
    if len(looked) < len(found):
        return Judged("wrong", "Give a list of batches, each a list of the texts' numbers.", hint=1)
    best = [seen_in(ours(*call), *call) or each for call, each in zip(calls, looked, strict=True)]
    other = [seen_in(upwards(*call), *call) or each for call, each in zip(calls, looked, strict=True)]
    once = all(each.once for each in looked)
    within = once and all(each.within for each in looked)
    beside = list(zip(looked, best, other, strict=True))
    little = within and all(each.padding <= max(a.padding, b.padding) + MORE_PADDING for each, a, b in beside)
    few = within and all(each.n_batches <= max(a.n_batches, b.n_batches) + MORE_BATCHES for each, a, b in beside)
    checks = tuple(map(Check, CHECKS, (once, within, little, few), SHARES))
    theirs, circles = (
        tuple((float(len(call[0])), each.padding) for call, each in zip(calls, side, strict=True))
        for side in (looked, best)
    )
    return _said(checks, looked[-1], best[-1], theirs, circles)


def _said(checks: tuple[Check, ...], last: Seen, best: Seen, theirs: Points, circles: Points) -> Judged:
    once, within, little, few = (check.holds for check in checks)
    if little and few:
        text = (
            f"{last.n_batches} batches, {percent(last.padding)} of them padding, and none larger than it may be. "
            "Shuffle the batches before you train on them."
        )
        return Judged("right", text, checks, theirs, circles)
    if not once:
        text = "Some text is in no batch, or in two. Each has to be read once."
        return Judged("wrong", text, checks, theirs, circles, 3)
    if not within:
        text = "A batch is filled up to its longest text: texts times that length is above the budget somewhere."
        return Judged("partial", text, checks, theirs, circles, 2)
    if not little:
        text = f"All fits, but {percent(last.padding)} of the positions are padding; {percent(best.padding)} will do."
        return Judged("partial", text, checks, theirs, circles, 1)
    text = f"All fits with little padding, in {last.n_batches} batches where {best.n_batches} will do."
    return Judged("partial", text, checks, theirs, circles, 2)


def _hidden(rng: random.Random) -> Case:
    sizes = [rng.randint(12, 30), rng.randint(40, 90), rng.randint(120, 240)]
    return {"seed": drawn.seed(rng), "sizes": sizes, "budget": rng.randrange(MOST, 4 * MOST, 128)}


BUDGET = Exercise(
    "14.2",
    "A budget of tokens",
    "code",
    f"`{FUNCTION}` puts eight texts into each batch, however long. Rewrite it: a batch, filled up to its longest text, "
    "may hold `budget` positions and no more. Each text is in one batch. Keep padding and the number of batches small. "
    "The circles are the padding of ours.",
    (
        "Which texts cost each other little padding when they lie in one batch?",
        "In sorted order the next text is the longest so far. How many positions does the batch have with it?",
        "Sort the numbers by length, add one after the other, begin anew when it no longer fits. And the last batch?",
    ),
    judge_budget,
    starter=STARTER,
    x_title="texts (upright: padding)",
    picture="share",
    needs_run=False,
    hidden=_hidden,
)
