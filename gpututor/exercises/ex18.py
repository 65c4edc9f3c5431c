"""Exercises of lesson 18: why some nights take longer, and a function that says which nights got slower."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpututor.exercises import drawn
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged
from gpututor.exercises.typed import judge_choice
from gpututor.experiments.nights import Cause, Episode, episodes
from gpututor.lab.learner_code import run_learner

__all__ = ["NOTES", "RECALL", "SLOWER", "WHY", "asked_episode", "case_why", "next_seed"]

RECALL = (
    (
        "`nvidia-smi` shows a card at half of its clocks. Is it broken?",
        "Not by that: heat, a power limit or a person can hold them. It says which, and whether anything waits for it.",
    ),
    (
        "A checkpoint every hundred steps is free, and one every step is not. What decides?",
        "Whether what happens between the steps is small beside the steps themselves.",
    ),
)
NOTES = (
    "**Ask first**: who of you would notice if last night's job took a tenth longer? Then the guess. **Watch for**: "
    "people who look for one cause of everything that changed in a night; the commit that comes with the heat is "
    "planted to mislead. Everybody has other nights: let neighbours compare. **Discuss**: the room that a rule gives. "
    "A rule that follows the last runs never sees what creeps; one that holds the first runs for ever cries at every "
    "meant change. What would you keep with a run so that it can be told from a repeat? **Simulated**: the nights are "
    "priced from a job that really trained; heat is low clocks, a driver is a slower launch call. Power isn't "
    "simulated. **TensorBoard** opens on the reader's own machine only. **Short of time**: guess, run, mark, show. "
    "**Exercise 18.1** has other nights for each learner. **18.2**: the usual slip is to compare steps, not samples."
)

# --- 18.1 ------------------------------------------------------------------------------------------------------------

OPTIONS: Mapping[Cause, str] = {
    Cause.LOADER: "The loader: batches come later than they did",
    Cause.HEAT: "The card: its clocks are held low, so kernels take longer",
    Cause.DRIVER: "The driver: each launch takes the host longer",
    Cause.READS: "The code: it reads values from the card that it didn't read before",
    Cause.BATCH: "The settings: a step has more samples",
    Cause.CHANCE: "Chance: the nights differ by no more than nights do",
}
MISSED: Mapping[Cause, str] = {
    Cause.LOADER: "Were it the loader, the wait for input would have grown and the rest stayed. Read that line again.",
    Cause.HEAT: "Were it the card, its clock would be lower and kernels longer. Compare both lines.",
    Cause.DRIVER: "A new driver would stand in its line, and launches would take the time. Do they, and does it?",
    Cause.READS: "Were it values that are read, the host would wait for the card more often. Has blocking sync grown?",
    Cause.BATCH: "Were it the batch, a step would have more samples than before. Does it?",
    Cause.CHANCE: "They differ by more than usual nights do, and all of them in the same direction.",
}
RIGHT: Mapping[Cause, str] = {
    Cause.LOADER: "So it was planted: only the wait for input grew, a little more every night.",
    Cause.HEAT: "So it was planted: the clock fell, and kernels took longer. The new commit came by chance.",
    Cause.DRIVER: "So it was planted: a new driver, and launches that take longer; the kernels are as they were.",
    Cause.READS: "So it was planted: the host stops for the card at each value, so it launches later.",
    Cause.BATCH: "So it was planted: twice the samples in a step. A sample takes less time than before.",
}


def next_seed(seed: int) -> int:
    """The seed of the forty nights after those of `seed`."""
    return seed + 100_000


def asked_episode(seed: int, longer: Sequence[Episode]) -> Episode | None:
    """Which of the episodes with longer steps is asked about; None without any."""
    return random.Random(f"asked {seed}").choice(list(longer)) if longer else None


def case_why(seed: int, one: Episode, machine: str, card: str, rows: Sequence[tuple[str, str, str]]) -> Case:
    """The case of 18.1: an episode of the nights of `seed`, told by `rows` of name, before and then.

    What was planted is no part of it: that follows from the seed.
    """
    options = list(OPTIONS.values())
    random.Random(f"options {seed}").shuffle(options)
    table = ["| | usual | then |", "|---|---|---|", *(f"| {name} | {before} | {then} |" for name, before, then in rows)]
    words = {"first": f"{one.first}", "last": f"{one.last}", "card": card, "table": "\n".join(table)}
    return {"seed": seed, "first": one.first, "machine": machine, "words": words, "options": options}


def _judge_why(answer: object, case: Case) -> Judged:
    seed, first = case.get("seed"), case.get("first")
    found = [each for each in episodes(seed) if each.first == first] if type(seed) is int else []
    cause = found[0].cause if found else None
    if cause is None:
        return Judged("wrong", "These nights are none of ours; run the lesson again.")
    why = {OPTIONS[each]: MISSED[each] for each in OPTIONS} | {OPTIONS[cause]: RIGHT[cause]}
    return judge_choice(str(answer), OPTIONS[cause], why)


WHY = Exercise(
    "18.1",
    "The next forty nights",
    "diagnosis",
    "The job went on for forty nights more, on a {card}. In nights {first} to {last} a step took longer. This was "
    "noted, as medians of the usual nights before and of these:\n\n{table}\n\nWhy did it take longer?",
    (
        "Which line grew by about as much as the step did?",
        "Waits belong to whoever is waited for: the loader, the host's launches, or a value from the card.",
        "If all lines of the card's work grew together, look at its clock and at the samples in a step.",
    ),
    _judge_why,
    options=tuple(OPTIONS.values()),
)

# --- 18.2 ------------------------------------------------------------------------------------------------------------

FUNCTION = "slower"
SEED, N_HISTORIES, N_FIRST = 18, 3, 8
LIMIT, SURE, SURELY_NOT = 0.05, 0.065, 0.035  # between the last two, noise decides: such nights may be named or not
NOISE = 0.004
STARTER = f"""from statistics import median

def {FUNCTION}(nights):
    # nights: a list of dicts with "number", "step_ms" and "n_samples"
    # gives the numbers of the nights that got slower
    found = []
    for k in range(5, len(nights)):
        usual = median(night["step_ms"] for night in nights[k - 5 : k])
        if nights[k]["step_ms"] > 1.05 * usual:
            found.append(nights[k]["number"])
    return found
"""
CHECKS = (
    "nights after a sudden change",
    "nights of a change that creeps",
    "half a batch that takes more than half the time, and no larger batch",
    "no odd night that stands alone",
)


@dataclass(frozen=True, slots=True)
class Planted:
    """A history, and the numbers of its nights by what was planted; "quiet" ones have nothing at all."""

    nights: tuple[Mapping[str, float], ...]
    numbers: Mapping[str, frozenset[int]]


def history_of(seed: object) -> Planted:
    """The history that a seed draws."""
    dice = random.Random(f"history {seed}")
    kinds = ["sudden", "creep", "half", "double"]
    dice.shuffle(kinds)
    shares, odd_in = [("quiet", 0.0)] * N_FIRST, dice.sample(range(3), 2)
    for k, kind in enumerate(kinds):
        shares += _grown(kind, dice)
        shares += [("quiet", 0.0), ("odd" if k in odd_in else "quiet", 0.0), ("quiet", 0.0)]
    base_ms, batch = dice.uniform(3, 30), dice.choice((32, 64, 128))
    nights, numbers = [], dict.fromkeys(("quiet", "odd", "maybe", *kinds), frozenset[int]())
    for number, (kind, share) in enumerate(shares, 1):
        times = {"half": 0.5, "double": 2.0}.get(kind, 1.0)
        longer = dice.uniform(0.12, 0.3) if kind == "odd" else share
        step_ms = base_ms * times * (1 + longer) * dice.lognormvariate(0, NOISE)
        nights.append({"number": number, "step_ms": round(step_ms, 4), "n_samples": round(batch * times)})
        where = kind if kind != "creep" or share >= SURE else "maybe" if share > SURELY_NOT else "quiet"
        numbers[where] |= {number}
    return Planted(tuple(nights), numbers)


def _grown(kind: str, dice: random.Random) -> list[tuple[str, float]]:
    """By how much a sample takes longer in each night of one change."""
    match kind:
        case "creep":
            each = dice.uniform(0.009, 0.012)
            return [(kind, each * k) for k in range(1, dice.randint(11, 14))]
        case "sudden":
            return [(kind, dice.uniform(0.15, 0.3))] * dice.randint(4, 6)
        case "half":
            return [(kind, dice.uniform(0.2, 0.5))] * dice.randint(3, 5)
        case _:
            return [(kind, -dice.uniform(0.1, 0.3))] * dice.randint(3, 5)


def _judge_slower(code: Any, case: Case) -> Judged:
    seed = case.get("seed", SEED)
    drawn_now = [history_of(f"{seed} {k}") for k in range(N_HISTORIES)]
    ran = run_learner(str(code), FUNCTION, [[[dict(night) for night in each.nights]] for each in drawn_now])
    if ran.values is None:
        return Judged("wrong", ran.sentence or "Your code gave no answer.")
    if all(value is None for value in ran.values):
        return NOT_ANSWERED
    named = [frozenset(value) if _is_numbers(value) else None for value in ran.values]
    if None in named:
        return Judged("wrong", "Your function is asked for a list of numbers of nights.")
    looked = [_look(each, got or frozenset()) for each, got in zip(drawn_now, named, strict=True)]
    calm = all(one[0] == 0 for one in looked)
    holds = [calm and all(one[1][k] for one in looked) for k in range(len(CHECKS))]
    holds[3] = holds[3] and holds[0]  # who names nothing names no odd night either
    checks = tuple(Check(words, each, 1 / len(CHECKS)) for words, each in zip(CHECKS, holds, strict=True))
    if not calm:
        n = max(one[0] for one in looked)
        return Judged("wrong", f"In one history you name {n} nights in which nothing had changed.", checks, hint=1)
    return _said(holds, checks)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int for n in value)


def _look(planted: Planted, named: frozenset[int]) -> tuple[int, tuple[bool, ...]]:
    """How many quiet nights were named, and whether each of `CHECKS` holds in this history."""
    of = planted.numbers
    return len(named & of["quiet"]), (
        of["sudden"] <= named,
        of["creep"] <= named,
        of["half"] <= named and not of["double"] & named,
        not of["odd"] & named,
    )


def _said(holds: Sequence[bool], checks: tuple[Check, ...]) -> Judged:
    if all(holds):
        text = "Sudden or creeping, by the sample, and no odd night: all histories are as they were planted."
        return Judged("right", text, checks)
    sentences = (
        ("After a sudden change your rule stops calling: what it compares with has moved along.", 1),
        ("What creeps is found late or never: it takes what you compare with along, or your limit is too wide.", 1),
        ("A step with more samples may take longer. Who waits for steps, and who for samples?", 2),
        ("A night that stands alone outside is named; that may be chance.", 3),
    )
    text, hint = next(told for told, holding in zip(sentences, holds, strict=True) if not holding)
    return Judged("partial" if any(holds) else "wrong", text, checks, hint=hint)


SLOWER = Exercise(
    "18.2",
    "A rule that follows nothing",
    "code",
    f"This rule compares each night with the five before. Write a better one. Nothing happens in the first {N_FIRST} "
    "nights; a night is slower where a sample takes a twentieth longer than their median sample, and so it does in the "
    "night before or after it. Your function goes through histories in which changes were planted.",
    (
        f"Compare with nights that can't move: what is the median of the first {N_FIRST}?",
        "What takes `step_ms` for `n_samples` takes how long for one?",
        "First mark each night alone; then keep those of which a neighbour is marked as well.",
    ),
    _judge_slower,
    starter=STARTER,
    needs_run=False,
    hidden=lambda dice: {"seed": drawn.seed(dice)},
)
