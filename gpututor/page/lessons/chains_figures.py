"""Lesson 4's figures beside its curve: seven layers, losses, money, and what others saw."""

from __future__ import annotations

import marimo as mo

from gpututor.experiments.one_after_another import LENGTH
from gpututor.lookup import machine_named
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.chains import Chains, chains_of, seen_beside
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.sweep import BUSY, FILL, LOSS, STEP, cost_column, points_table
from gpututor.references import reference
from gpututor.text import duration

RENTED = machine_named()
MANY_WORDS = 100_000_000  # about an epoch of WikiText-103 (Merity and others 2016: 103 million)


def layers(found: Chains, on: object) -> mo.Html:
    """Each kind of layer in the same place; `on` is the control that chooses the machine."""
    columns = STEP, BUSY, FILL, LOSS, found.until, cost_column(MANY_WORDS, "100 million words")
    return figure(
        "Seven layers in the middle of one model",
        found.source,
        on,
        points_table(found.trained, *columns, first="Layer", marked="lstm"),
        note=f"{found.trained[0].n_samples:,} words a step, {LENGTH} in a row. The same loss is {found.target:.2f}; "
        "all reach it.",
        wide=True,
    )


def elsewhere(kept: Kept) -> mo.Html:
    """What others measured of loops, beside this run."""
    return figure(
        "What others saw",
        chains_of(kept, RENTED).source,
        expected_table(seen_beside(kept, RENTED)),
        note="The last one's small card had a processor beside it that took "
        f"{duration(reference('one state in a loop, processor').value)}. Two launches an update cost more than the "
        "work in them, whatever the card.",
    )


def learning(found: Chains) -> object:
    """The losses of the loop and of the call."""
    return line_figure(
        "The loop and the call learn the same",
        f"loss of {len(found.points['loop'].losses)} steps, computed on this computer's processor",
        {"Python's loop": list(enumerate(found.points["loop"].losses, 1))},
        dots=list(enumerate(found.points["lstm"].losses, 1)),
        x_title="step",
        y_title="loss",
        note="The line is the loop in Python, the circles are cuDNN's call.",
    )


def money(found: Chains, kind: str) -> mo.Html:
    """What many words cost with a kind of layer."""
    chosen = found.points[kind]
    words = f"{MANY_WORDS:,} words with {chosen.label}."
    return spent(chosen.played, chosen.usd(MANY_WORDS), f"{words} {found.until_said(chosen)}")
