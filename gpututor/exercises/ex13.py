"""Exercises of lesson 13: what a faster kernel for one kind of layer brings, and channels really taken out."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from gpututor.cards import DEFAULT_MACHINE
from gpututor.exercises import drawn
from gpututor.exercises.coded import Laid, Launched, close_to, is_number, on_card
from gpututor.exercises.form import Case, Check, Exercise, Judged
from gpututor.exercises.on_card.ex13_data import FILTER, N_IN, N_INSIDE, N_KEPT, N_OUT, SEED, SIDE, Numbers, arrays
from gpututor.exercises.typed import judge_number
from gpututor.lookup import machine_named
from gpututor.model.kernels import Conv
from gpututor.text import duration, percent

__all__ = ["FASTER", "NOTES", "RECALL", "SMALLER", "case_faster", "case_smaller"]

TOLERANCE = 0.03
TIMES = 4  # as fast a kernel for depthwise convolutions as the exercise supposes
RECALL = (
    (
        "Adam in a loop takes dozens of times as long over small tensors as over one. Why?",
        "The host launches every sum for every tensor, and the card idles between them.",
    ),
    (
        "Two pictures a step take no longer than one. What does the card wait for?",
        "For the host. Until the card's work outlasts the launches, a larger batch is free.",
    ),
)
NOTES = (
    "**Ask first**: who chose a network by its FLOP, and who timed it? **Watch for**: people who conclude that such "
    "networks are bad. On a phone's or a server's processor they keep the promise; on a card the bytes decide. "
    "**Discuss**: why a norm costs the same whatever the convolution before it saved, and what a compiler that joins "
    "them would change. **Simulated**: the rates of depthwise kernels in the model come from one card, an RTX 3090; "
    "on others they are an assumption. Sparse tensor cores are not simulated: the page gives a bound. Int8 is torch's "
    "own product of bytes with the rounding written around it, as torchao does; torchao, no dependency here, can also "
    "join a scale with the product. torch.ao's int8 convolutions run on processors only: measuring on one's own times "
    "them. In fp32 the model has no slower kernels for channels last, which pytorch issue 44943 saw on a V100. "
    "**The digits** are real, but easy: large networks on hard pictures lose more, and so does int8 with outliers. "
    "**Short of time**: guess, run, the kinds of kernel, the table of ways. **Exercise 13.1**: the usual slips are to "
    "hand the whole step the kernel's gain, and to use the share of FLOP. **13.2**: the usual slip is to set channels "
    "to zero, which computes the same and saves nothing."
)

# --- 13.1 ------------------------------------------------------------------------------------------------------------


def case_faster(card_ns: float, depthwise_ns: float, flop_share: float) -> dict[str, Any] | None:
    """The case of 13.1: the card's work in a step, the part that depthwise convolutions are, and their share of FLOP.

    None where there are none.
    """
    if not 0 < depthwise_ns < card_ns:
        return None
    words = {
        "card": f"{card_ns / 1e6:.3g} ms",
        "depthwise": f"{depthwise_ns / 1e6:.3g} ms",
        "flop": percent(flop_share),
        "times": f"{TIMES}",
        "tolerance": percent(TOLERANCE),
    }
    return {
        "card_ms": card_ns / 1e6,
        "depthwise_ms": depthwise_ns / 1e6,
        "flop_share": flop_share,
        "words": words,
    }


def faster(share: float, times: float = TIMES) -> float:
    """How many times as fast the whole is when a share of it is so many times as fast.

    >>> faster(0.5, 2)
    1.3333333333333333
    """
    return 1 / (1 - share + share / times)


def judge_faster(answer: Any, case: Case) -> Judged:
    """The verdict on a typed ratio."""
    card, depthwise = case["card_ms"], case["depthwise_ms"]
    share = depthwise / card
    right, left = faster(share), card - depthwise + depthwise / TIMES
    slips = (
        (float(TIMES), "So much faster is one kind of kernel. The rest of the step takes as long as before."),
        (1 / (1 - share), "That lets those kernels take no time at all. They still take a part of theirs."),
        (faster(case["flop_share"]), "That goes by their share of the FLOP. What counts is their share of the time."),
        (1 / right, "That is the share of the time that is left. Turn it round: how many times as fast?"),
        (left, "That is the time that is left. How many times does it fit into the old one?"),
    )
    return judge_number(
        str(answer),
        right,
        tolerance_share=TOLERANCE,
        said=f"Of {duration(card * 1e6)}, {duration(left * 1e6)} are left. "
        f"{percent(case['flop_share'])} of the FLOP, {percent(share)} of the time: the time's share says what there is "
        "to gain.",
        slips=slips,
        otherwise="Not so much.",
        hint=2,
    )


FASTER = Exercise(
    "13.1",
    "A better kernel for the small part",
    "number",
    "In a training step of EfficientNet-B0 on this machine the card works for {card}. Depthwise convolutions are "
    "{depthwise} of that, though they hold only {flop} of the FLOP. Somebody makes them {times} times as fast, and "
    "nothing else. How many times as fast is the card's work then? Within {tolerance} counts as right.",
    (
        "Which part of the time changes, and which stays?",
        "Write the new time as the part that stays, plus what becomes of the other.",
        "Take the depthwise part away, add a fraction of it again, and divide the old time by what you have.",
    ),
    judge_faster,
    unit="times as fast",
)

# --- 13.2 ------------------------------------------------------------------------------------------------------------

HARNESS, DATA = "gpututor.exercises.on_card.ex13:run", "gpututor.exercises.on_card.ex13_data:on_card"
FUNCTION = "smaller"
MOST = 1.02  # times the arithmetic that the kept channels need
STARTER = f"""import torch

def {FUNCTION}(first, second, n_kept):
    # first: (channels inside, channels in, 3, 3)
    # second: (channels out, channels inside, 3, 3)
    # a channel's size: the sum of what first holds for it
    size = first.abs().flatten(1).sum(1)
    kept = size.topk(n_kept).indices
    mask = torch.zeros_like(size)
    mask[kept] = 1
    return first * mask.view(-1, 1, 1, 1), second
"""
CHECKS = ("the picture is the one without the smaller channels", "and the convolutions compute only what is kept")
SHARES = (0.5, 0.5)


def convolved(x: Numbers, weights: Numbers) -> Numbers:
    """A 3x3 convolution padded with zeros, as a sum over windows."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (FILTER, FILTER), axis=(2, 3))
    out: Numbers = np.einsum("bcyxij,ocij->boyx", windows, weights, optimize=True)
    return out


def expected(
    seed: int = SEED, n_inside: int = N_INSIDE, n_kept: int = N_KEPT, *, which: str = "largest", mixed: bool = False
) -> list[float]:
    """What both convolutions give with the kept channels alone.

    A slip keeps others ("smallest", "first", "all"), or pairs a channel with another one's weights (`mixed`).
    """
    pictures, first, second = arrays(seed, n_inside)
    by_size = np.argsort(-np.abs(first).sum((1, 2, 3)))
    kept = {
        "largest": by_size[:n_kept],
        "smallest": by_size[-n_kept:],
        "first": np.arange(n_kept),
        "all": np.arange(n_inside),
    }[which]
    paired = np.sort(kept) if mixed else kept
    between = np.maximum(convolved(pictures, first[kept]), 0)
    return [float(value) for value in convolved(between, second[:, paired]).ravel()]


def conv_flop(launched: Launched) -> int:
    """What the convolutions that were launched compute, zeros included."""
    kernels = [kernel for entry in launched.tape.entries for kernel in getattr(entry, "kernels", ())]
    return sum(kernel.flop for kernel in kernels if isinstance(kernel, Conv))


def judge_smaller(answer: Any, case: Case) -> Judged:
    """The verdict on two convolutions with fewer channels between them."""
    on = machine_named(case.get("machine") or DEFAULT_MACHINE)
    data = case.get("seed", SEED), case.get("n_inside", N_INSIDE)
    n_kept = case.get("n_kept", N_KEPT)
    runs, why = on_card(str(answer), FUNCTION, HARNESS, [[on.name, Laid(DATA, data), n_kept]])
    if not runs:
        return Judged("wrong", why)
    gave = runs[0].gave
    least = 2 * len(arrays(*data)[0]) * SIDE**2 * FILTER**2 * n_kept * (N_IN + N_OUT)
    same, done = same_as(gave, expected(*data, n_kept)), conv_flop(runs[0])
    little = same and least <= done <= MOST * least
    checks = tuple(map(Check, CHECKS, (same, little), SHARES))
    if not same:
        return Judged("wrong", *_miss(gave, data, n_kept, checks))
    if not little:
        text = (
            f"The picture is right, but the convolutions compute {done / least:.1f} times what is kept: a channel of "
            "zeros is multiplied like any other."
        )
        return Judged("partial", text, checks, hint=2)
    text = (
        f"{percent(1 - n_kept / data[1])} of the channels are gone, and as much of the FLOP: in kernels, not on paper."
    )
    return Judged("right", text, checks)


def same_as(theirs: Any, ours: list[float]) -> bool:
    """Whether two pictures agree; sums of some hundred products of ones."""
    return close_to(theirs, ours, 1e-3, 1e-3)


def _miss(gave: Any, data: tuple[int, int], n_kept: int, checks: tuple[Check, ...]) -> tuple[Any, ...]:
    """The sentence on a wrong picture, by what it amounts to; the checks, no picture, and the hint that would help."""
    if not isinstance(gave, list) or not all(map(is_number, gave)):
        return "What came out of the second convolution is no picture of numbers.", checks, (), (), 1
    slips: tuple[tuple[dict[str, Any], str, int], ...] = (
        ({"which": "all"}, "Nothing is left out yet: that is the picture with all channels.", 1),
        ({"which": "smallest"}, "The smallest channels were kept. The largest ones should be.", 1),
        ({"which": "first"}, "The first channels were kept, whatever their size.", 1),
        (
            {"mixed": True},
            "The two convolutions have the channels in different orders: each meets another's weights.",
            3,
        ),
    )
    for slip, sentence, hint in slips:
        if same_as(gave, expected(*data, n_kept, **slip)):
            return sentence, checks, (), (), hint
    return "That is not the picture without the smaller channels.", checks, (), (), 1


def case_smaller(machine: str) -> dict[str, Any]:
    """The case of 13.2: the machine on which the launches are priced."""
    return {"machine": machine}


def _draw(rng: random.Random) -> Case:
    n_inside = rng.choice((24, 40, 48, 56))
    return {
        "machine": drawn.machine_name(rng),
        "seed": drawn.seed(rng),
        "n_inside": n_inside,
        "n_kept": n_inside // 4 * rng.choice((1, 2)),
    }


SMALLER = Exercise(
    "13.2",
    "Taken out, not set to zero",
    "code",
    f"Two convolutions follow each other. Only `n_kept` of the channels between them are to stay, the largest. The "
    f"code below sets the others to zero, which saves nothing. Write `{FUNCTION}` so that both convolutions **compute "
    "only what is kept**, and the picture stays as it is with zeros.",
    (
        "Where does a channel between the two convolutions stand in the weights of each?",
        "It is a row of `first` and a column of `second`: both have to go. Index with `kept`.",
        "`first[kept]` and `second[:, kept]`, with the same `kept` in the same order.",
    ),
    judge_smaller,
    starter=STARTER,
    needs_run=False,
    hidden=_draw,
)
