"""Lesson 9's figures beside its curve: the step line by line, habits, a detector, losses and money."""

from __future__ import annotations

from collections.abc import Mapping

import marimo as mo

from gpututor.experiments.answers import LENGTH
from gpututor.ledger import Account, Ledger
from gpututor.page.close_up import ledger_figure
from gpututor.page.figures import figure
from gpututor.page.lessons.answer_tables import WAYS, answers_elsewhere, habits_table, lines_table, matchings_table
from gpututor.page.lessons.answers import Answers
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.replay import Played
from gpututor.text import duration, percent

MANY_STEPS = 1_000_000


def line_by_line(found: Answers, on: object) -> mo.Html:
    """Where the stopwatch puts the step; `on` is the control that chooses the machine."""
    return figure(
        "One step, line by line",
        found.label(f"{LENGTH} characters a line"),
        on,
        lines_table(found),
        note=f"Read a step later, the loss is waited for as well; that makes the step "
        f"{percent(max(0.0, found.longer_share('later')))} longer.",
        wide=True,
    )


def habits(found: Answers) -> mo.Html:
    """The same training, watched in different ways."""
    same = found.same_loss(WAYS)
    return figure(
        "The same training, watched in different ways",
        found.label(f"{LENGTH} characters a line"),
        habits_table(found),
        note="The loss is the same at every step, to the last digit." if same else "The losses differ.",
        wide=True,
    )


def learning(found: Answers) -> object:
    """The loss, read at every step and never."""
    return line_figure(
        "It really trains",
        f"loss of {len(found.losses['silent'])} steps, computed on this computer's processor",
        {"never read": list(enumerate(found.losses["silent"], 1))},
        dots=list(enumerate(found.losses["item"], 1)),
        x_title="step",
        y_title="loss",
        note="The line was read after the run, the circles at every step.",
    )


def money(found: Answers, played: Mapping[str, Played]) -> mo.Html:
    """What a million steps cost, read and unread."""
    return spent(
        played["both"],
        found.usd("both", MANY_STEPS),
        f"{MANY_STEPS:,} steps with bar and log take {duration(MANY_STEPS * found.step_ns('both'))}; unread they take "
        f"{duration(MANY_STEPS * found.step_ns('silent'))}{found.for_usd('silent', MANY_STEPS)}.",
    )


def ledger(both: Ledger, silent: Ledger) -> mo.Html:
    """The ledger of the loop that reads twice, with what its waits cost, beside the loop that never reads."""
    why = {
        "blocking_sync": "Only from the card's last kernel until the host goes on. While the card worked, nothing was "
        "lost.",
        "launch_overhead": f"{percent(silent.share(Account.LAUNCH_OVERHEAD))} in the loop that never reads. Any more "
        "here are launches that a waiting host could not do ahead.",
    }
    return ledger_figure(both, why)


def matchings(found: Answers) -> mo.Html:
    """A detector's step, by how its tables of costs come over."""
    return figure("A detector's loss", found.label("a small detector"), matchings_table(found), wide=True)


def elsewhere(found: Answers) -> mo.Html:
    """Public threads beside this run."""
    return figure("What others saw", found.label("this run"), answers_elsewhere(found), wide=True)
