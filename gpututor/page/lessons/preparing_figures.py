"""Lesson 8's figures beside its law: who prepares, ways to copy, losses, money, and public threads."""

from __future__ import annotations

import marimo as mo

from gpututor.experiments.preparing import COPIES, WHO
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.preparing import EXPOSED, Found, thread_rows
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.sweep import BUSY, LOSS, STEP, cost_column, points_table
from gpututor.page.threads import threads_table
from gpututor.references import reference
from gpututor.text import duration, percent

SEEN = reference("SimCLR gpu-util")
N_PAID = 1_000_000  # pictures, about as many as ImageNet has
PAID = "A million pictures"


def who_prepares(found: Found) -> mo.Html:
    """Steps, cost and losses by who prepares the pictures."""
    columns = STEP, BUSY, cost_column(N_PAID, PAID), LOSS, found.held_out_column()
    return figure(
        "Who prepares",
        found.played("card").ledger.label,
        points_table(found.group(WHO), *columns, first="Prepared by", marked="card"),
        note="Prices are the chosen machine's, as if its processor were this one. Workers would divide the host's part "
        "among them (lesson 6); the arithmetic stays.",
        wide=True,
    )


def learning(found: Found, kept: Kept) -> object:
    """The loss in training with augmentation and without."""
    return line_figure(
        "It really trains",
        f"mean of the last five steps · torch {kept.data['torch']}, on this computer's processor",
        found.learned_lines(),
        x_title="step",
        y_title="loss in training",
        named=True,
        note=found.learned_said,
    )


def trip(copied: Found, on: object) -> mo.Html:
    """The step by how its batch is copied; `on` is the control that chooses the machine."""
    return figure(
        "Ways to copy a batch",
        copied.played("copy").ledger.label,
        on,
        points_table(copied.group(COPIES), STEP, BUSY, EXPOSED, first="Copied as", marked="bytes ahead"),
        note="Pageable unless pinned. Pinning itself is left out: a loader's own thread does it ahead of time.",
        wide=True,
    )


def money(found: Found) -> mo.Html:
    """What a million pictures cost, prepared by the host and by the card."""
    slow, fast = found.points["one by one"], found.points["card"]
    return spent(
        slow.played,
        slow.usd(N_PAID),
        f"A million pictures: {duration(slow.takes_ns(N_PAID))} prepared by the host, "
        f"{duration(fast.takes_ns(N_PAID))} by the card, to the same loss.",
    )


def threads(found: Found) -> mo.Html:
    """Public threads beside this run."""
    return figure(
        "What others ran into",
        "times as long, or as fast · theirs beside this run",
        threads_table(thread_rows(found)),
        note=f"{SEEN.source}: at most {percent(SEEN.value)} busy; picture by picture, here, "
        f"{percent(found.busy_share('one by one'))}. {found.others_said}",
        wide=True,
    )
