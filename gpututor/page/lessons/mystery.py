"""What lesson 2 shows of its run: one step with a slower or faster host, and what others saw of the same job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import marimo as mo

from gpututor.cards import Machine
from gpututor.expect import Band, Difference, compare
from gpututor.expect.accuracy import step_band, util_band
from gpututor.jobs.tutorial import TUTORIAL_STEPS
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.money import spent
from gpututor.references import reference
from gpututor.replay import Played, play_file
from gpututor.text import duration, percent

FORMULA = "k / max(h, k)"
SLOWER = [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0]  # times as slow a host


def kernels_us(tape: Path, on: Machine, step: int) -> list[float]:
    """Length of each kernel of one step, in microseconds.

    Raises:
        TimelineError: the tape is gone or damaged, or has fewer steps.
    """
    return play_file(tape, on, (step, step + 1)).kernels_us


def host_figure(
    tape: Path, on: Machine, played: Played, priced: Sequence[tuple[float, float]], control: object
) -> mo.Html:
    """Busy share against the host's time for a launch: the formula as a line, `priced` runs as circles.

    The reader's point is the typical step of the run as it was `played`, `on` a machine.

    Raises:
        TimelineError: the tape is gone or damaged.
    """
    from gpututor.charts import curve  # here, because it loads altair

    step = played.typical_step
    here = play_file(tape, on, (step, step + 1))
    kernel_us, host_us = here.kernel_ns / 1e3, here.host_ns_per_launch / 1e3
    busy_share = here.ledger.gpu_util_share
    line = [(h / 2, kernel_us / max(h / 2, kernel_us)) for h in range(1, 161)]
    return figure(
        "The formula as a line, priced runs as circles",
        played.ledger.label,
        control,
        curve(
            {FORMULA: line},
            x_title="host time per launch, h (µs)",
            here=(host_us, busy_share),
            here_text=percent(busy_share),
            dots=priced,
        ),
        note=f"Your point: the host needs {host_us:.1f} µs a launch, one step takes {duration(here.step_ns)}.",
    )


def whose_said(played: Played) -> str:
    """Whether a better card shortens most of the step."""
    if played.ledger.busy_share < 0.5:
        return "Most of the step is not the card's doing, so a better card can't win it back."
    return "Most of the step is the card's own work, so a better card shortens it."


def launches_said(played: Played) -> dict[str, str]:
    """The cause of launch overhead, in this run's numbers."""
    kernels = f"{played.ledger.n_kernels / played.ledger.n_steps:.0f} kernels a step. Each runs"
    host = duration(played.host_ns_per_launch)
    return {"launch_overhead": f"{kernels} {duration(played.kernel_ns)}; the host needs {host} to launch the next."}


def money(kept: Kept, played: Played) -> mo.Html:
    """What all the tutorial's sentences cost, at the mean of every sentence of the run, kept on the tape or not."""
    steps = kept.data["steps"]
    run_ns = TUTORIAL_STEPS * sum(row[0] for row in steps) / len(steps)
    usd = run_ns / 3600e9 * (played.machine.usd_per_hour or 0.0)
    return spent(played, usd, f"The tutorial's {TUTORIAL_STEPS:,} sentences take {duration(run_ns)}.")


def beside_figure(played: Played, busy_share: float) -> mo.Html:
    """What others saw of the same job, as a figure."""
    return figure(
        "What others saw",
        played.ledger.label,
        expected_table(beside_table(played, busy_share)),
        note=f"{reference('seq2seq step').note} Nothing in the simulated machine was set to these numbers.",
    )


def beside_table(played: Played, busy_share: float) -> list[tuple[str, Difference]]:
    """Our step among those that others report, theirs in our band, and the busy share that somebody saw in ours."""
    steps = reference("seq2seq step")
    theirs = Band(min(steps.values), steps.value, max(steps.values), steps.unit, steps.source)
    return [
        ("Our step among theirs", compare(theirs, played.step_ns)),
        ("Their step in our band", compare(step_band(played.timeline, played.ledger), steps.value)),
        ("His busy share in our band", compare(util_band(played.timeline, played.ledger), busy_share)),
    ]
