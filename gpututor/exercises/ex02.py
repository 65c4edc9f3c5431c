"""Exercise of lesson 2: write the launch queue, and predict how busy the card is at any speed of the host."""

from __future__ import annotations

from collections.abc import Sequence

from gpututor.exercises.graded import NOT_ANSWERED, Graded, is_number
from gpututor.lab.learner_code import run_learner
from gpututor.text import percent

__all__ = ["HINTS", "HOST_TIMES", "NOTES", "NOT_ANSWERED", "STARTER", "TASK", "grade"]

FUNCTION = "busy_share"
HOST_TIMES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)  # host speeds at which the run is priced for the picture
TOLERANCE = 0.005  # half a point: a right queue agrees with the counted cases to the last digit
STARTER = f"""def {FUNCTION}(host_us, kernels_us):
    # the host needs host_us for each launch, one after the other
    # the card runs the kernels in order; kernel i takes kernels_us[i]
    ...
"""
TASK = (
    f"Write `{FUNCTION}(host_us, kernels_us)`: the share of time, between 0 and 1, in which a kernel runs. The clock "
    "begins with the first launch and ends with the last kernel. A kernel starts when its launch is done **and** the "
    "kernel before it has ended. The circles are the step above, priced for faster and slower hosts; your function is "
    "drawn through them."
)
_TWO_CLOCKS = (
    "Two clocks run side by side: the host's, which says when a launch is done, and the card's, which says when it is "
    "free. Which of them does kernel number five wait for?"
)
_WALK = (
    "Walk through the kernels once. Each time, the host's clock moves on by `host_us`; the kernel starts at the later "
    "of the two clocks."
)
_NEARLY = "`start = max(launched, free)`, then `free = start + k`. At the end, busy is `sum(kernels_us) / free`."
HINTS = (_TWO_CLOCKS, _WALK, _NEARLY)
NOTES = (
    "**Ask first**: hands up for each option of the guess, then run. **Watch for**: people who read 25 % busy as "
    "25 % used; show SM fill and MFU beside it. **Short of time**: guess, run, ledger, takeaway. "
    "**Exercise 2.1**: the usual slip is adding host and kernel times, as if nothing overlapped; it fails on the case "
    "with a long kernel in the middle."
)

# host_us, kernels_us, and the busy share counted by hand on squared paper
CASES: tuple[tuple[float, tuple[float, ...], float], ...] = (
    (10.0, (4.0, 4.0, 4.0, 4.0, 4.0), 20 / 54),  # launches end at 10 … 50, the last kernel at 54
    (1.0, (10.0, 10.0, 10.0), 30 / 31),  # the card never waits after the first launch
    (10.0, (2.0, 30.0, 2.0, 2.0), 36 / 54),  # 10–12, 20–50, then two that waited for the card: 52, 54
)


def grade(code: str, kernels_us: Sequence[float], priced: Sequence[tuple[float, float]]) -> Graded:
    """The verdict on a reader's code.

    `kernels_us` are the kernels of the step on the page, and `priced` its host time per launch in microseconds
    with the busy share that it then had: the circles. Right or wrong is decided by the counted cases alone.
    """
    if code.rstrip().endswith("..."):
        return NOT_ANSWERED
    sizes = [round(k, 3) for k in kernels_us]
    calls = [[host, list(kernels)] for host, kernels, _ in CASES] + [[round(h, 3), sizes] for h, _ in priced]
    ran = run_learner(code, FUNCTION, calls)
    if ran.values is None:
        return Graded("wrong", ran.sentence or "Your code gave no answer.")
    if all(value is None for value in ran.values):
        return NOT_ANSWERED
    odd = next((k for k, value in enumerate(ran.values) if not is_number(value)), None)
    if odd is not None:
        return Graded("wrong", f"For a host of {calls[odd][0]:g} µs you returned {ran.values[odd]!r}, not a number.")
    answers = [float(value) for value in ran.values]
    theirs = tuple((h, y) for (h, _), y in zip(priced, answers[len(CASES) :], strict=True))
    ours = tuple((h, y) for h, y in priced)
    for (host, kernels, counted), answer in zip(CASES, answers, strict=False):
        if abs(answer - counted) > TOLERANCE:
            listed = ", ".join(f"{k:g}" for k in kernels)
            return Graded(
                "wrong",
                f"With {host:g} µs a launch and kernels of {listed} µs you give {answer:.3g}; "
                f"counted on paper it is {counted:.3g}.",
                theirs,
                ours,
            )
    worst = max((abs(a - b) for (_, a), (_, b) in zip(theirs, ours, strict=True)), default=0.0)
    return Graded(
        "right",
        f"It agrees with all {len(CASES)} counted cases, and comes within {percent(worst)} of each circle: what is "
        "left are copies, waits and the gap between two kernels, which the priced runs have and your queue hasn't.",
        theirs,
        ours,
    )
