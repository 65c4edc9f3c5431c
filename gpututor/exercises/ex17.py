"""Exercises of lesson 17: what is wrong with a machine, and the machine on which a job costs least."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.exercises import drawn, sick_machines
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.lab.learner_code import run_learner

__all__ = ["CHEAPEST", "NOTES", "RECALL", "WRONG_WITH_IT", "case_cheapest", "case_machine"]

RECALL = (
    (
        "Eight cards, each in a machine of its own, joined by a slow network: what fills the step?",
        "The exchange of gradients. The work is an eighth, and what must be said is as much as before.",
    ),
    (
        "Half of a batch is padding. What does the gauge of busy time show of it?",
        "Nothing: kernels run on padding as they do on words. Only useful arithmetic falls.",
    ),
)
NOTES = (
    "**Ask first**: who has ever trained on the processor without knowing? **Watch for**: people who take GPU-Util for "
    "proof that all is well; a hot card shows it full. **Discuss**: that the doctor can't see a model left on the "
    "processor, since the machine is in order; and whether a cheap hour is a cheap job. **Simulated**: faults change "
    "rates and links of the model, a neighbour takes turns of equal length, and a clock under a power limit follows a "
    "cube root that public readings bear out within some points; heat leaves memory its pace. Prices are lists' and "
    "move; storage, traffic and the wait for a machine aren't counted. **Short of time**: guess, run, two machines, "
    "the chart. **Exercise 17.1** has another machine for each learner; the usual slip is to name shared memory "
    "wherever a loader is slow. **17.2**: the usual slip is to sort by the hour."
)

# --- 17.1 ------------------------------------------------------------------------------------------------------------

WRONG_WITH_IT = sick_machines.WRONG_WITH_IT


def case_machine(learner: str) -> Case:
    """The machine that a learner is asked about; who sits side by side has different ones."""
    return sick_machines.case_of(sick_machines.seed_for(learner))


# --- 17.2 ------------------------------------------------------------------------------------------------------------

FUNCTION = "cheapest"
SEED = 17
Row = Sequence[Any]
"""Name, US dollars an hour, samples a second, GiB of memory."""
STARTER = f"""def {FUNCTION}(machines, n_samples, needs_gib, deadline_h):
    # machines: a list of (name, usd_per_hour, samples_per_s, memory_gib)
    # the name of the one that does n_samples for the least money,
    # holds needs_gib and is done within deadline_h hours; None without one
    ...
"""
CHECKS = (
    "the job's price decides, not the hour's",
    "it is done before the deadline",
    "its memory holds the job",
    "None where no machine can",
)
SHARES = (0.4, 0.2, 0.2, 0.2)
MILLION = 1_000_000
ANY_H, NO_GIB = 10_000.0, 0.0


def expected(machines: Sequence[Row], n_samples: float, needs_gib: float, deadline_h: float) -> str | None:
    """The right name, found by crossing out: sorted by what the job costs, the first that nothing speaks against.

    >>> rows = [("slow", 1.0, 10, 16), ("quick", 3.0, 100, 16)]
    >>> expected(rows, 36_000, 0, 10), expected(rows, 36_000, 0, 0.01), expected(rows, 36_000, 24, 10)
    ('quick', None, None)
    """
    by_price = sorted(machines, key=lambda row: row[1] / row[2])
    fitting = [row for row in by_price if row[3] >= needs_gib and n_samples / row[2] <= 3600 * deadline_h]
    return str(fitting[0][0]) if fitting else None


def calls_of(seed: int) -> list[tuple[list[list[Any]], int, float, float]]:
    """A call for each check, in which nothing else can go wrong; the machines are drawn.

    The job's price, and not the hour's, decides in the first. In the second one machine alone is quick enough, in the
    third one alone is large enough, and neither is the cheapest. In the last each is too slow and too small.
    """
    rng = random.Random(seed)
    names = [f"{rng.choice('bcdfgklm')}{rng.choice('aeiou')}{rng.randint(2, 9)}.{k}x" for k in range(4)]
    cheap = rng.uniform(0.4, 0.8)
    rates = [rng.randint(80, 120), rng.randint(500, 700), rng.randint(800, 950), rng.randint(2000, 2600)]
    hours = [cheap, 3 * cheap, 7 * cheap, 40 * cheap]  # so that the second is the cheapest for a job
    rows = [[name, round(usd, 3), rate, 16] for name, usd, rate in zip(names, hours, rates, strict=True)]
    large = [*rows[:3], [names[3], round(hours[3], 3), rates[3], 80]]
    quickest_h = 5 * MILLION / rates[3] / 3600
    shuffled = [[*part] for part in (rows, rows, large, rows)]
    for part in shuffled:
        rng.shuffle(part)
    return [
        (shuffled[0], MILLION, NO_GIB, ANY_H),
        (shuffled[1], 5 * MILLION, NO_GIB, round(1.5 * quickest_h, 3)),
        (shuffled[2], MILLION, 40.0, ANY_H),
        (shuffled[3], 5 * MILLION, 40.0, round(0.5 * quickest_h, 3)),
    ]


def case_cheapest(rows: Sequence[Row], n_samples: int, needs_gib: float) -> Case:
    """The case of 17.2: the machines of the page as rows, for so many samples; empty with fewer than two."""
    if len(rows) < 2:
        return {}
    return {"seed": SEED, "rows": [list(row) for row in rows], "n_samples": n_samples, "needs_gib": needs_gib}


def judge_cheapest(code: Any, case: Case) -> Judged:
    """The verdict on a reader's code: four calls that each try one thing, then the page's own machines."""
    calls: list[tuple[Any, ...]] = list(calls_of(case.get("seed", SEED)))
    if case.get("rows"):
        calls.append((case["rows"], case["n_samples"], case["needs_gib"], ANY_H))
    ran = run_learner(str(code), FUNCTION, calls)
    if ran.values is None:
        return Judged("wrong", ran.sentence or "Your code gave no answer.")
    right = [value == expected(*call) for value, call in zip(ran.values, calls, strict=True)]
    named = [value in [row[0] for row in call[0]] for value, call in zip(ran.values[:3], calls, strict=False)]
    holds = [right[0] and all(right[4:]), right[1], right[2], right[3] and any(named)]
    checks = tuple(map(Check, CHECKS, holds, SHARES))
    if all(holds):
        return Judged("right", _said(calls), checks)
    state = "partial" if any(holds) else "wrong"
    return Judged(state, *_miss(ran.values, calls, holds, checks))  # type: ignore[arg-type]


def _said(calls: Sequence[tuple[Any, ...]]) -> str:
    if len(calls) > 4:
        return f"Right on all drawn machines, and of those on the page it is {expected(*calls[4])}."
    return "Right on all drawn machines: a job is paid by dollars an hour over samples a second."


def _miss(
    values: Sequence[Any], calls: Sequence[tuple[Any, ...]], holds: Sequence[bool], checks: tuple[Check, ...]
) -> tuple[Any, ...]:
    """The sentence on the first thing that fails; checks, no picture, and the hint that would help."""
    rows: Sequence[Row] = calls[0][0]
    hourly = min(rows, key=lambda row: row[1])[0]
    quick = max(rows, key=lambda row: row[2])[0]
    if not holds[0] and values[0] == hourly:
        return f"You take {hourly}, whose hour is the cheapest. It needs many of them.", checks, (), (), 2
    if not holds[0] and values[0] == quick:
        return f"You take {quick}, the fastest. Its hours are few, and dear.", checks, (), (), 2
    texts: Mapping[int, tuple[str, int]] = {
        0: (f"With neither deadline nor need of memory you give {values[0]!r}; it is {expected(*calls[0])}.", 1),
        1: (f"You give {values[1]!r}, which isn't done within {calls[1][3]:g} hours.", 3),
        2: (f"You give {values[2]!r}; the job needs {calls[2][2]:g} GiB, and one machine alone has them.", 3),
        3: (f"No machine is quick and large enough, and you give {values[3]!r}.", 3),
    }
    text, hint = texts[list(holds).index(False)]
    return text, checks, (), (), hint


CHEAPEST = Exercise(
    "17.2",
    "Where does it cost least?",
    "code",
    f"Write `{FUNCTION}`: of all machines, the one that does the job for the least money. It must hold the job in its "
    "memory and be done before the deadline. It is tried on drawn machines, and on those of the page.",
    (
        "What do you pay for: an hour, or the job? How many hours does the job take on each machine?",
        "Hours are `n_samples / samples_per_s / 3600`, and the job's price is hours times `usd_per_hour`.",
        "First leave out who is too small or too late. If anybody is left, take the `min` by the job's price.",
    ),
    judge_cheapest,
    starter=STARTER,
    needs_run=False,
    hidden=lambda rng: {"seed": drawn.seed(rng)},
)
