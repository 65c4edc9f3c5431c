"""Exercises of lesson 12: how long an update may take, and many small tensors updated with few launches."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises.coded import Launched, close_to, on_card
from gpututor.exercises.form import NOT_ANSWERED, Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex12_data import MOMENTUM, N_TENSORS, N_UPDATES, RATE, numbers, sizes
from gpututor.exercises.typed import judge_number
from gpututor.text import NBSP, duration, percent

__all__ = ["ALLOWED", "FEW", "NOTES", "RECALL", "case_allowed", "case_few"]

TOLERANCE = 0.05
RECALL = (
    (
        "A step of many small kernels is made of half as many bits. Why may it get slower?",
        "The host sets its pace, and each cast is one more launch. Bits only help a card that is busy.",
    ),
    (
        "The loss is read after every step. What does that cost?",
        "The lead of the host: the card waits until the next launches arrive.",
    ),
)
NOTES = (
    "**Ask first**: who has ever looked at the time of `optimizer.step()`? **Watch for**: people who take the number "
    "of parameters for the cost; it is the number of tensors until the card is full. People who switch to SGD to save "
    "time: fused, the rules cost nearly the same. **Discuss**: bytes. Adam's state is twice the model, and foreach "
    "wants one more model for a moment. **Simulated**: torch's counting of steps on the host is left out; the fused "
    "kernel runs at the card's usual bandwidth, where pull request 117872 measured less on an H100. "
    "**Short of time**: guess, run, the curve, the losses. **Exercise 12.1**: the usual slip is to hand out the whole "
    "step and forget the rest of it. **12.2**: the usual slip is one call a tensor in a comprehension, or a step "
    "before the mean has moved."
)


# --- 12.1 ------------------------------------------------------------------------------------------------------------


def case_allowed(rest_ns: float, needs: Mapping[str, tuple[int, float]]) -> dict[str, Any] | None:
    """The case of 12.1: a step without its update, and by rule the steps to one loss and a whole step's nanoseconds.

    Asked is how long the update of the rule with the fewest steps may take, beside the one with the most. None where
    there are fewer than two rules.
    """
    if len(needs) < 2:
        return None
    order = sorted(needs, key=lambda name: needs[name][0])
    few, many = order[0], order[-1]
    (n_few, _), (n_many, step_ns) = needs[few], needs[many]
    words = {
        "few": few,
        "many": many,
        "n_few": f"{n_few}",
        "n_many": f"{n_many}",
        "step": f"{step_ns / 1e6:.3f}{NBSP}ms",  # a difference is asked for, which needs the digits
        "rest": f"{rest_ns / 1e6:.3f}{NBSP}ms",
        "tolerance": percent(TOLERANCE),
    }
    numbers_of = {"n_few": n_few, "n_many": n_many, "step_ms": step_ns / 1e6, "rest_ms": rest_ns / 1e6}
    return {**numbers_of, "words": words}


def judge_allowed(answer: Any, case: Case) -> Judged:
    """The verdict on a typed time."""
    n_few, n_many, step, rest = (case[name] for name in ("n_few", "n_many", "step_ms", "rest_ms"))
    whole = n_many * step / n_few
    right = whole - rest
    slips = (
        (whole, "That is what a whole step may take. Forward and backward need their part of it."),
        (step - rest, "That is the other rule's update. This one needs fewer steps, so it has more time for each."),
        (n_few * step / n_many - rest, "That divides the wrong way round: fewer steps leave more time, not less."),
        (right * 1e3, "That looks like microseconds taken for milliseconds."),
        (right / 1e3, "That looks like seconds taken for milliseconds."),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"{n_many} steps of {duration(step * 1e6)} are {duration(n_many * step * 1e6)}. Over {n_few} steps that "
        f"is {duration(whole * 1e6)} each, of which {duration(right * 1e6)} are left for the update.",
        slips=slips,
        otherwise="Not that long.",
        hint=2,
    )


ALLOWED = Exercise(
    "12.1",
    "How long may it think?",
    "number",
    "On this machine {many} reaches the loss after {n_many} steps of {step}. {few} needs {n_few} steps, and each takes "
    "{rest} before the update begins. How long may {few}'s update take, so that both are there at the same moment? "
    "Within {tolerance} counts as right.",
    (
        "How long does the slower learner need in all?",
        "Share that time out over the steps of the other one. What is a whole step of it, then?",
        "A step is forward, backward and update. Take away what is no update.",
    ),
    judge_allowed,
    unit="ms",
)

# --- 12.2 ------------------------------------------------------------------------------------------------------------

HARNESS = "gpututor.exercises.on_card.ex12:run"
FUNCTION = "update"
MOST_SHARE = 0.2  # of a tensor's launch, for each tensor and update; a loop needs three
STARTER = f"""import torch

def {FUNCTION}(parameters, gradients, means, rate, momentum):
    # three lists of small tensors on the card; nothing is returned
    # a mean becomes momentum * mean + gradient;
    # then the parameter goes down by rate * mean
    for p, g, m in zip(parameters, gradients, means):
        m.mul_(momentum).add_(g)
        p.sub_(m, alpha=rate)
"""
CHECKS = ("parameters and means are right", "few launches, nothing on the host")
SHARES = (0.5, 0.5)


def expected(
    n_tensors: int = N_TENSORS, seed: int = 12, *, late: bool = False, kept: float = 1.0
) -> tuple[list[float], list[float]]:
    """Parameters and moving means after all updates, in closed form.

    The mean after update k is the sum of gradients times momentum to the power of their age; the parameters have gone
    down by the rate times all means so far. With `late` they go down by the mean before each update; `kept` is the part
    of a gradient that enters the mean.
    """
    start, gradients = numbers(n_tensors, seed)
    ages = np.arange(N_UPDATES)
    powers = np.where(ages[:, None] >= ages, MOMENTUM ** np.maximum(0, ages[:, None] - ages), 0.0)
    means = kept * powers @ gradients
    used = means[: N_UPDATES - 1] if late else means
    return [float(x) for x in start - RATE * used.sum(0)], [float(x) for x in means[-1]]


def joined(told: Any, n_tensors: int) -> list[float] | None:
    """A list of tensors' values as one list; None where they are not so many tensors of the right sizes."""
    if not isinstance(told, list) or len(told) != n_tensors:
        return None
    parts = [part if isinstance(part, list) else None for part in told]
    if any(part is None or len(part) != n for part, n in zip(parts, sizes(n_tensors), strict=True)):
        return None
    return [value for part in parts for value in part or ()]


def n_launches(launched: Launched) -> int:
    """Kernels that the updates launched."""
    return sum(len(getattr(entry, "kernels", ())) for entry in launched.tape.entries)


def judge_few(answer: Any, case: Case) -> Judged:
    """The verdict on an update of many tensors."""
    n_tensors, seed = case.get("n_tensors", N_TENSORS), case.get("seed", 12)
    calls = ((case.get("machine", DEFAULT_MACHINE), n_tensors, seed),)
    launched, sentence = on_card(str(answer), FUNCTION, HARNESS, calls)
    if not launched:
        return Judged("wrong", sentence)
    gave = launched[0].gave if isinstance(launched[0].gave, Mapping) else {}
    got = [joined(gave.get(name), n_tensors) for name in ("parameters", "means")]
    untouched = numbers(n_tensors, seed)[0]
    if got[0] is not None and close_to(got[0], [float(x) for x in untouched]):
        return (
            NOT_ANSWERED if not n_launches(launched[0]) else Judged("wrong", "The parameters have not moved.", hint=1)
        )
    right = all(close_to(a, b, 1e-3, 1e-4) for a, b in zip(got, expected(n_tensors, seed), strict=True))
    count, on_host = n_launches(launched[0]), launched[0].n_copies > 0 or launched[0].uploaded_bytes > 0
    few = 0 < count <= MOST_SHARE * n_tensors * N_UPDATES and not on_host
    checks = tuple(map(Check, CHECKS, (right, few), SHARES))
    if right and few:
        return Judged("right", _praise(count, n_tensors), checks)
    if not right:
        return Judged("partial" if few else "wrong", *_miss(got, n_tensors, seed, checks))
    if on_host:
        text = "The numbers are right, but they went by way of the host: each copy waits, and the card idles."
        return Judged("partial", text, checks, hint=2)
    text = f"The numbers are right, with {count:,} launches for {N_UPDATES} updates of {n_tensors} tensors."
    return Judged("partial", text, checks, hint=2)


def _praise(count: int, n_tensors: int) -> str:
    loop = 3 * n_tensors * N_UPDATES
    return (
        f"{count} launches where a loop needs {loop:,}. Torch packs dozens of tensors into one launch; "
        "its optimizers do so by themselves on a GPU."
    )


def _miss(got: list[list[float] | None], n_tensors: int, seed: int, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on wrong values, by what they amount to; the checks, no picture, and the hint that would help."""

    def like(**slip: Any) -> bool:
        return all(close_to(a, b, 1e-3, 1e-4) for a, b in zip(got, expected(n_tensors, seed, **slip), strict=True))

    if like(late=True):
        return (
            "Each parameter goes down by the mean as it was: the new gradient comes too late.",
            checks,
            (),
            (),
            1,
        )
    if like(kept=1 - MOMENTUM):
        return "The gradients enter at a tenth: here they are added whole.", checks, (), (), 1
    if got[1] is not None and close_to(got[1], [0.0] * len(got[1])):
        return "The means are still zero: each update must leave them for the next.", checks, (), (), 1
    return "Parameters and means are not those of the rule in the comment.", checks, (), (), 1


def case_few(machine: str) -> dict[str, Any]:
    """The case of 12.2: the machine on which the launches are priced."""
    return {"machine": machine}


def _hidden(rng: random.Random) -> Case:
    machine = rng.choice(("p3.2xlarge", "A100-SXM4-80GB", "T4"))
    return {"machine": machine, "n_tensors": rng.randrange(150, 400, 10), "seed": rng.randrange(1, 10**6)}


FEW = Exercise(
    "12.2",
    "Many tensors, few launches",
    "code",
    f"Momentum for {N_TENSORS} small tensors, three calls for each. Write `{FUNCTION}` so that it launches a fifth "
    "of a kernel a tensor at most, with the same numbers in `parameters` and `means` afterwards. Nothing goes "
    "by way of the host.",
    (
        "First the mean, then the parameter, both in place. What is to change is only the number of calls.",
        "One call may take a list: look for `torch._foreach_mul_` and its like. Or join the tensors and split again.",
        "`torch._foreach_mul_(means, momentum)`, then add the gradients to the means. What is the third call?",
    ),
    judge_few,
    starter=STARTER,
    needs_run=False,
    hidden=_hidden,
)
