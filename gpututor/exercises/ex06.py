"""Exercises of lesson 6: how many workers another card would need, and a loader to repair."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.exercises.coded import is_number
from gpututor.exercises.form import Case, Check, Exercise, Judged, State
from gpututor.exercises.typed import judge_number
from gpututor.lab.learner_code import run_learner
from gpututor.text import duration

__all__ = ["ENOUGH", "LOADER", "NOTES", "RECALL", "case_enough"]

RECALL = (
    (
        "What grows when you double the batch beyond the knee?",
        "The step's time, as fast as the batch: the card is full, so samples a second stay the same.",
    ),
    (
        "Twice as deep: why does the card look no busier?",
        "More layers are more kernels of the same size, one after another; each fills the card as little as before.",
    ),
)
NOTES = (
    "**Ask first**: who sets num_workers by habit? To what, and why? **Watch for**: people who take more workers for "
    "more speed; let them read cores busy beside each line. The rule to take home: CPU busy while the GPU idles means "
    "the loader. **Discuss**: what would you do when the law asks for more cores than you have (smaller files, a "
    "cheaper decoder, decoding on the GPU, another instance)? Why is “no effect” the right answer for persistent "
    "workers on Linux? **Exercise 6.1**: the usual slip is to round down. **Exercise 6.2**: most find the workers and "
    "miss that a large batch leaves some without work. **Short of time**: guess, run, the line with the dots."
)

# --- 6.1 -------------------------------------------------------------------------------------------------------------

TIMES_AS_FAST = 4  # our choice: far enough that the answer of the lesson is no answer here


def case_enough(load_ns: float, compute_ns: float, n_cores: int) -> dict[str, Any]:
    """The case of exercise 6.1 from what the learner's run measured without workers."""
    faster_ns = compute_ns / TIMES_AS_FAST
    words = {"load": duration(load_ns), "compute": duration(compute_ns), "faster": duration(faster_ns)}
    return {
        "load_ns": load_ns,
        "compute_ns": compute_ns,
        "faster_ns": faster_ns,
        "n_cores": n_cores,
        "words": words | {"times": f"{TIMES_AS_FAST}"},
    }


def judge_enough(typed: Any, case: Case) -> Judged:
    """The next whole number from load over compute: fewer and the card waits, more and workers do."""
    load_ns, faster_ns = case["load_ns"], case["faster_ns"]
    exact = load_ns / faster_ns
    right = max(1, math.ceil(exact))
    slips = (
        (exact, "Workers come whole. Which of the two neighbours never lets the card wait?"),
        (math.floor(exact), "That many are a little too slow together: the card waits in every step. Round up."),
        (math.ceil(load_ns / case["compute_ns"]), "That was enough for the card you have; the new one eats faster."),
        (math.ceil((load_ns + faster_ns) / faster_ns), "Don't add the two: while workers load, the card computes."),
        (case["n_cores"], "That is how many cores are here. The question is how many it would take."),
    )
    said = (
        f"{duration(load_ns)} ÷ {duration(faster_ns)} is {exact:.1f}, so {right} workers keep up, each on a core. You "
        f"have {case['n_cores']}: a faster card alone would change "
        + ("little." if right > case["n_cores"] else "something here.")
    )
    otherwise = "Not that many. How long may a batch take at most, if the card is never to wait?"
    return judge_number(str(typed), right, tolerance_share=0.01, said=said, slips=slips, otherwise=otherwise, hint=2)


ENOUGH = Exercise(
    "6.1",
    "A faster card",
    "number",
    "Decoding a batch keeps one core busy for {load}, and your card needs {compute} for it. You get a card {times} "
    "times as fast: {faster} a batch. With cores to spare, how many workers does it take so that it never waits?",
    (
        "One worker delivers a batch every so often. How often do two of them, at work side by side?",
        "The card asks for a batch each time it is done with one. Divide the two times.",
        "Load ÷ compute, rounded up: a worker too few and the card waits in every step.",
    ),
    judge_enough,
    unit="workers",
)

# --- 6.2 -------------------------------------------------------------------------------------------------------------

BATCH = 8
CASES = ((48, 2), (72, 3))  # pictures and cores: batches enough for every worker to get some
HARNESS = "gpututor.exercises.on_card.ex06:run"
TIMEOUT_S, MEMORY_MB = 40.0, 4096  # torch is imported in it, and workers are started
STARTER = f"""from torch import set_num_threads
from torch.utils.data import DataLoader


def prepare(worker):
    set_num_threads(8)


def loader(pictures, n_cores):
    # batches of {BATCH}; many short epochs, each in another order
    return DataLoader(
        pictures,
        batch_size=len(pictures) // 2,
        num_workers=1,
        worker_init_fn=prepare,
    )
"""


def judge_loader(code: Any, case: Case) -> Judged:
    """The code really loads two epochs in its own process; what the pictures noted is looked at here."""
    cases = [(n_pictures, n_cores) for n_pictures, n_cores in case.get("cases", CASES)]
    calls = [list(each) for each in cases]
    ran = run_learner(str(code), "loader", calls, harness=HARNESS, timeout_s=TIMEOUT_S, memory_mb=MEMORY_MB)
    if ran.values is None:
        return Judged("wrong", ran.sentence or "Your code gave no answer.")
    return judge_noted(ran.values, cases)


def judge_noted(values: Sequence[Any], cases: Sequence[tuple[int, int]] = CASES) -> Judged:
    """The verdict on what came back for `cases`; anything that isn't such a record is told so."""
    try:
        looked = [_look(told, n_pictures, n_cores) for told, (n_pictures, n_cores) in zip(values, cases, strict=True)]
    except (TypeError, KeyError, ValueError, IndexError):
        return Judged("wrong", "What the loader handed out is not batches of the pictures it was given.")
    checks = tuple(
        Check(words, all(holds), share)
        for (words, share, _, _), holds in zip(FACTS, zip(*looked, strict=True), strict=True)
    )
    missed = next((fact for fact, check in zip(FACTS, checks, strict=True) if not check.holds), None)
    if missed is None:
        return Judged("right", "Every core has a worker, every worker has work, and nobody starts twice.", checks)
    state: State = "partial" if any(check.holds for check in checks) else "wrong"
    return Judged(state, missed[2], checks, hint=missed[3])


FACTS = (
    (
        f"every picture once an epoch, {BATCH} to a batch",
        0.2,
        f"The batches don't hold {BATCH} pictures each, every picture once. Remember who makes a batch.",
        1,
    ),
    ("another order in the second epoch", 0.1, "Both epochs come in the same order.", 1),
    (
        "as many workers at work as there are cores",
        0.3,
        "The number of processes that read pictures is not the number of cores. Which of the arguments says it?",
        2,
    ),
    ("the same workers in the second epoch", 0.2, "The second epoch was read by other processes than the first.", 3),
    ("one thread in each", 0.2, "The processes use more threads than one, and get into each other's way.", 3),
)
"""What is looked at, its share of the marks, the sentence where it fails, and the hint that would help."""


def _look(told: Mapping[str, Any], n_pictures: int, n_cores: int) -> tuple[bool, ...]:
    """Whether each of `FACTS` holds, by what the pictures noted."""
    epochs = [[[tuple(map(int, row)) for row in batch] for batch in epoch] for epoch in told["epochs"]]
    first, second = ([row for batch in epoch for row in batch] for epoch in epochs)
    if not all(len(row) == 3 and all(map(is_number, row)) for row in (*first, *second)):
        raise ValueError(told)
    whole = all(sorted(row[0] for row in rows) == list(range(n_pictures)) for rows in (first, second))
    small = all(len(batch) == BATCH for epoch in epochs for batch in epoch)
    workers = [{row[1] for row in rows} - {told["own"]} for rows in (first, second)]
    return (
        whole and small,
        [row[0] for row in first] != [row[0] for row in second],
        all(len(each) == n_cores for each in workers),
        bool(workers[0]) and workers[0] == workers[1],
        all(row[2] == 1 for row in (*first, *second)),
    )


def _draw(rng: random.Random) -> Case:
    """Batches enough for every worker to get three at least."""
    n_cores = rng.sample((2, 3, 4), 2)
    return {"cases": [[BATCH * (3 * n + rng.randint(0, 2)), n] for n in n_cores]}


LOADER = Exercise(
    "6.2",
    "A loader to repair",
    "code",
    f"This loader has five faults. Repair it: batches of {BATCH}, every picture once an epoch in an order of its own, "
    "as many workers as `n_cores`, the same ones in every epoch, one thread in each. It really runs, once "
    "for 2 cores and once for 3, and the pictures note who read them.",
    (
        "Who makes a batch, one worker or all of them together? And what puts the pictures into another order?",
        "`num_workers` says how many; it need not be a fixed number.",
        "`persistent_workers=True` keeps them. `worker_init_fn` is the first thing each of them does; read it.",
    ),
    judge_loader,
    starter=STARTER,
    needs_run=False,
    hidden=_draw,
)
