"""Lesson 10's figures beside its curve: the host's time, what is paid once, sizes, crowds, losses and money."""

from __future__ import annotations

import marimo as mo

from gpututor.experiments.tiny_kernels import CROWDS
from gpututor.experiments.ways import Way
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.tiny import Tiny
from gpututor.page.lessons.tiny_tables import crowds_table, learned_table, once_table, sizes_table, split_table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.threads import threads_table
from gpututor.replay import play_file

N_IMAGENET = 1_281_167  # pictures of the training set, ILSVRC 2012


def host_split(found: Tiny, on: object) -> mo.Html:
    """Who takes the host's time for a kernel; `on` is the control that chooses the machine."""
    return figure(
        "ResNet-50, one picture a step: the host's time for a kernel",
        found.label("ResNet-50"),
        on,
        split_table(found, 1),
        note=f"{found.machine.name}. The host's time does not depend on the batch.",
        wide=True,
    )


def paid_once(found: Tiny) -> mo.Html:
    """What each way takes before the first steps are through, and when that has paid."""
    return figure(
        "One picture a step: what each way takes once, and when that has paid",
        found.label("ResNet-50"),
        once_table(found, 1, N_IMAGENET),
        note="Compiling is simulated as a base and an amount for each op, right to an order of magnitude. What "
        "TorchScript compiles is not counted.",
        wide=True,
    )


def sizes(found: Tiny) -> mo.Html | None:
    """What changing sizes cost where code is compiled; nothing where that was not run."""
    if not found.has("ragged-fixed", "ragged-padded"):
        return None
    return figure(
        "When sizes change, it is compiled anew",
        found.label("a network on molecules"),
        sizes_table(found),
        note=f"{found.compiled_anew_said} In pytorch issue 174704 eight shapes took half an hour, after an upgrade "
        "hours. A graph has one size for good.",
        wide=True,
    )


def learning(found: Tiny) -> object:
    """The losses of the network on molecules, in each way."""
    return line_figure(
        "The same losses, sooner",
        found.label("a network on molecules"),
        found.learned_lines(),
        learned_table(found),
        x_title="seconds of training on this card, compiling left out",
        y_title="loss",
        note="Means of some losses, computed on this computer's processor; the seconds are the simulated card's. "
        f"{found.small_said}",
        wide=True,
    )


def crowds(found: Tiny) -> mo.Html | None:
    """More molecules in one step; nothing where that was not run."""
    if not found.has(*(f"crowd-{n}" for n in CROWDS)):
        return None
    return figure(
        "The oldest way: more in one step",
        found.label("a network on molecules, as it is"),
        crowds_table(found),
        note=f"{found.crowd_said} One at a time a processor may be faster (LexiconAugmentedNER issue 26): "
        "measure yours below.",
        wide=True,
    )


def money(found: Tiny, kept: Kept) -> mo.Html:
    """What an epoch costs as it is, and as a graph."""
    return spent(
        play_file(kept.tapes[f"{Way.EAGER.key}-1"], found.machine),
        found.usd(Way.EAGER, 1, N_IMAGENET),
        f"An epoch of ImageNet, one picture a step, as it is; as a graph it takes {found.graph_said(N_IMAGENET)}.",
    )


def elsewhere(rented: Tiny) -> mo.Html | None:
    """Public threads beside this run, on the question's own machine; nothing where that was not run."""
    if not rented.has("crowd-200"):
        return None
    return figure("What others saw", rented.label("this run"), threads_table(rented.threads()), wide=True)
