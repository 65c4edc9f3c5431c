"""Lesson 6's figures beside its law: card and cores, pauses, losses, money, and public threads."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import running_mean
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.feeding import Feeding
from gpututor.page.lessons.feeding_tables import columns, starts_table, thread_rows
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.sweep import BUSY, STEP, cost_column, points_table
from gpututor.page.threads import threads_table
from gpututor.text import dollars, duration

N_IMAGENET = 1_281_167  # pictures to train on; Russakovsky et al. 2015, table 2


def side_by_side(fed: Feeding) -> mo.Html:
    """How busy card and cores are with each number of workers, and what an epoch costs."""
    shown = STEP, *columns(fed), BUSY, cost_column(N_IMAGENET, "An epoch of ImageNet")
    return figure(
        "Card and cores, side by side",
        fed.label,
        points_table(fed.sweep, *shown, marked=fed.enough.key),
        note="Cores busy: workers, training process, and our simulation in it. Where cores are busy and the card is "
        "not, it is the loader.",
        wide=True,
    )


def pauses(fed: Feeding) -> mo.Html:
    """What each way of starting workers makes an epoch wait."""
    return figure(
        "The pause before an epoch",
        fed.label,
        starts_table(fed),
        note="One worker. The first batch's own decoding is in it.",
    )


def threads(fed: Feeding) -> mo.Html:
    """Public threads beside this computer."""
    return figure(
        "What others ran into",
        "times as long, or as many · the same comparison on this computer",
        threads_table(thread_rows(fed)),
        wide=True,
    )


def same_learning(fed: Feeding, kept: Kept) -> object:
    """The loss of the small network that really learns."""
    return line_figure(
        "It learns the same",
        f"a small ResNet on the same files, no workers · torch {kept.data['torch']}, on this computer's CPU",
        {"loss": running_mean(kept.data["learned"][0]["losses"], 1)},
        x_title="step",
        y_title="loss",
        note=f"{fed.same_losses} Above, the card follows shapes only: your cores are busy decoding.",
    )


def money(fed: Feeding) -> mo.Html:
    """What an epoch costs without workers, and with the best number."""
    return spent(
        fed.played("workers-0"),
        fed.points["workers-0"].usd(N_IMAGENET),
        f"An epoch of ImageNet: {duration(fed.points['workers-0'].takes_ns(N_IMAGENET))} without workers, "
        f"{duration(fed.best.takes_ns(N_IMAGENET))} and {dollars(fed.best.usd(N_IMAGENET))} with {fed.best.label}, to "
        "the same loss, if its cores were these.",
    )
