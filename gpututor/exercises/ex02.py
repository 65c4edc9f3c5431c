"""Exercises of lesson 2: what fewer and longer kernels would change, and the launch queue in code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from gpututor.exercises.coded import numbers_only
from gpututor.exercises.form import Case, Exercise, Judged
from gpututor.exercises.typed import judge_number
from gpututor.lab.learner_code import run_learner
from gpututor.text import NBSP, duration, percent

__all__ = ["FEWER", "HOST_TIMES", "NOTES", "QUEUE", "RECALL", "fewer_case", "queue_case"]

FUNCTION = "busy_share"
HOST_TIMES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)  # host speeds at which the run is priced for the picture
TOLERANCE = 0.005  # half a point: a right queue agrees with the counted cases to the last digit
N_GLUED = 3
RECALL = (
    (
        "What does 100 % in nvidia-smi say about the SMs?",
        "Only that some kernel was running. One block on one SM is enough.",
    ),
    (
        "Which gauge would you show to whoever pays?",
        "MFU: useful arithmetic, against what the card could have done.",
    ),
)
NOTES = (
    "**Ask first**: hands up for each option of the guess, then run. **Watch for**: people who read 25 % busy as "
    "25 % used; show SM fill and MFU beside it. **Short of time**: guess, run, ledger, takeaway. "
    "**Exercise 2.1**: the usual slip is that the same work keeps the card equally busy; ask what the step's length "
    "is then. **2.2**: the usual slip is adding host and kernel times, as if nothing overlapped; it fails on the case "
    "with a long kernel in the middle."
)


def fewer_case(host_ns: float, kernel_ns: float) -> dict[str, Any]:
    """The run's host time for a launch and its mean kernel, in nanoseconds: what 2.1 needs."""
    words = {"host": duration(host_ns), "kernel": duration(kernel_ns), "n": "three", "tolerance": percent(0.05)}
    return {"host_ns": host_ns, "kernel_ns": kernel_ns, "words": words}


def _judge_fewer(typed: Any, case: Case) -> Judged:
    host, kernel = case["host_ns"], N_GLUED * case["kernel_ns"]
    before = 100 * case["kernel_ns"] / max(host, case["kernel_ns"])
    right = 100 * kernel / max(host, kernel)
    slips = (
        (before, "That is as busy as before. The card's work is the same, but how long does the step take now?"),
        (
            100 * kernel / (host + kernel),
            "That adds the two times. They overlap: a launch runs beside a kernel.",
        ),
        (right / 100, "That is a share. Asked is percent."),
        (100 - right, "That is the time in which it waits."),
    )
    said = (
        f"A third of the launches, a third of the step, the same work in it. From {before:.0f} to {right:.0f}{NBSP}%: "
        "that is what fusing kernels is for."
    )
    return judge_number(str(typed), right, tolerance_share=0.05, said=said, slips=slips, otherwise="Not that busy.")


FEWER = Exercise(
    "2.1",
    "Fewer and longer",
    "number",
    "The host needs {host} for a launch, and a kernel takes {kernel}. Somebody glues every {n} kernels into one that "
    "takes as long as they did together. How busy is the card then, in percent? Within {tolerance} counts as right.",
    (
        "Which of the two sets the pace before the change, and which after it?",
        "Busy is the kernel's time over the longer one of the two times.",
        "The launch takes as long as before. The kernel takes three times as long.",
    ),
    _judge_fewer,
    unit="%",
)

STARTER = f"""def {FUNCTION}(host_us, kernels_us):
    # the host needs host_us for each launch, one after the other
    # the card runs the kernels in order; kernel i takes kernels_us[i]
    ...
"""

# host_us, kernels_us, and the busy share counted by hand on squared paper
CASES: tuple[tuple[float, tuple[float, ...], float], ...] = (
    (10.0, (4.0, 4.0, 4.0, 4.0, 4.0), 20 / 54),  # launches end at 10 … 50, the last kernel at 54
    (1.0, (10.0, 10.0, 10.0), 30 / 31),  # the card never waits after the first launch
    (10.0, (2.0, 30.0, 2.0, 2.0), 36 / 54),  # 10–12, 20–50, then two that waited for the card: 52, 54
)


Queue = tuple[float, Sequence[float]]
"""Host time for a launch and the kernels' times, in microseconds."""


def counted_share(host_us: float, kernels_us: Sequence[float]) -> float:
    """The busy share by another way than walking: what ends last is some launch with all kernels from it on.

    >>> counted_share(10.0, (2.0, 30.0, 2.0, 2.0)) == 36 / 54
    True
    """
    return sum(kernels_us) / max((i + 1) * host_us + sum(kernels_us[i:]) for i in range(len(kernels_us)))


def judge_queue(
    code: str, kernels_us: Sequence[float], priced: Sequence[tuple[float, float]], queues: Sequence[Queue] = ()
) -> Judged:
    """The verdict on a reader's code.

    `kernels_us` are the kernels of the step on the page, and `priced` its host time per launch in microseconds
    with the busy share that it then had: the circles. Right or wrong is decided by the counted cases alone, and by
    further `queues` where there are some.
    """
    cases = CASES + tuple((host, tuple(kernels), counted_share(host, kernels)) for host, kernels in queues)
    sizes = [round(k, 3) for k in kernels_us]
    calls = [[host, list(kernels)] for host, kernels, _ in cases] + [[round(h, 3), sizes] for h, _ in priced]
    answers, trouble = numbers_only(run_learner(code, FUNCTION, calls))
    if trouble is not None:
        return trouble
    theirs = tuple((h, y) for (h, _), y in zip(priced, answers[len(cases) :], strict=True))
    ours = tuple((h, y) for h, y in priced)
    for (host, kernels, counted), answer in zip(cases, answers, strict=False):
        if abs(answer - counted) > TOLERANCE:
            listed = ", ".join(f"{k:g}" for k in kernels)
            return Judged(
                "wrong",
                f"With {host:g} µs a launch and kernels of {listed} µs you give {answer:.3g}; "
                f"counted on paper it is {counted:.3g}.",
                (),
                theirs,
                ours,
                1,
            )
    worst = max((abs(a - b) for (_, a), (_, b) in zip(theirs, ours, strict=True)), default=0.0)
    return Judged(
        "right",
        f"It agrees with all {len(cases)} counted cases, and comes within {percent(worst)} of each circle: what is "
        "left are copies, waits and the gap between two kernels, which the priced runs have and your queue hasn't.",
        (),
        theirs,
        ours,
    )


def queue_case(kernels_us: Sequence[float], priced: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """What 2.2 needs: the step's kernels, and the run priced at several speeds of the host."""
    return {"kernels_us": list(kernels_us), "priced": [list(point) for point in priced]}


def _judge_code(code: Any, case: Case) -> Judged:
    priced = [(h, y) for h, y in case["priced"]]
    return judge_queue(str(code), case["kernels_us"], priced, case.get("queues", ()))


def _draw(rng: random.Random) -> Case:
    """Short and long kernels in the order that chance gives."""
    queues = [
        [
            round(rng.uniform(3, 15), 1),
            [round(rng.choice((rng.uniform(1, 6), rng.uniform(15, 60))), 1) for _ in range(rng.randint(4, 9))],
        ]
        for _ in range(4)
    ]
    return {"kernels_us": [1.0], "priced": [], "queues": queues}


QUEUE = Exercise(
    "2.2",
    "The launch queue",
    "code",
    f"Write `{FUNCTION}(host_us, kernels_us)`: the share of time, between 0 and 1, in which a kernel runs. The clock "
    "begins with the first launch and ends with the last kernel. A kernel starts when its launch is done **and** the "
    "kernel before it has ended. The circles are the step above, priced for faster and slower hosts; your function is "
    "drawn through them.",
    (
        (
            "Two clocks run side by side: the host's says when a launch is done, the card's when it is free. "
            "Which of them does kernel number five wait for?"
        ),
        (
            "Walk through the kernels once. Each time, the host's clock moves on by `host_us`; the kernel starts at "
            "the later of the two clocks."
        ),
        "`start = max(launched, free)`, then `free = start + k`. At the end, busy is `sum(kernels_us) / free`.",
    ),
    _judge_code,
    starter=STARTER,
    x_title="host time per launch (µs)",
    picture="share",
    hidden=_draw,
)
