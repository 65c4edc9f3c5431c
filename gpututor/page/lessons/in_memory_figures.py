"""Lesson 7's figures: steps by worker and by batch, the same habit elsewhere, losses, money, public threads."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import running_mean
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.in_memory import Found, thread_rows
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.step_bars import step_bars
from gpututor.page.threads import threads_table
from gpututor.text import dollars, duration, percent

N_PAID = 200_000_000  # rows: ten million, twenty times


def by_batch(found: Found) -> mo.Html:
    """Steps whose batches are asked for at once."""
    return figure(
        "Drop the work instead of moving it",
        found.label,
        step_bars(
            found.group("by batch"),
            lambda p: f"busy {percent(p.busy_share)}, {dollars(p.usd(N_PAID))} for {N_PAID / 1e6:,.0f} million rows",
        ),
        note=f"The same batches in the same order: {found.same_losses('by batch')}.",
        wide=True,
    )


def elsewhere(found: Found) -> mo.Html:
    """The same habit in samplers, arrays, texts and files."""
    return figure(
        "The same habit in other places",
        found.label,
        *found.elsewhere_bars(),
        note="The files were just written, so they come from memory; a disk or a network would be slower still.",
        wide=True,
    )


def learning(found: Found, kept: Kept) -> object:
    """The loss of the training that stands behind all of it."""
    return line_figure(
        "It really trains",
        f"row by row, with two workers, and a batch at once · torch {kept.data['torch']}",
        {"loss": running_mean([loss for loss in found.points["rows-0"].losses if loss is not None], 5)},
        x_title="step",
        y_title="loss",
        note=f"All of them: {found.same_losses('workers')}. Faster here costs nothing in what is learned.",
    )


def money(found: Found) -> mo.Html:
    """What the rows cost, asked for one by one and at once."""
    slow, fast = found.points["rows-0"], found.points["batch-0"]
    return spent(
        slow.played,
        slow.usd(N_PAID),
        f"Ten million rows, twenty times: {duration(slow.takes_ns(N_PAID))} row by row and "
        f"{duration(fast.takes_ns(N_PAID))} a batch at once, to the same loss, if its host were this one.",
    )


def threads(found: Found) -> mo.Html:
    """Public threads beside this computer."""
    return figure(
        "What others ran into",
        "times as long, or as fast · the scripts of these threads or their like, on this computer",
        threads_table(thread_rows(found)),
        wide=True,
    )
