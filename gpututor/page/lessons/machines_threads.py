"""Lesson 17's public threads, each beside the same ratio from a run."""

from __future__ import annotations

import marimo as mo

from gpututor.doctor.faults import Fault, clock_under
from gpututor.experiments.machine_itself import PHOTOS, POLICY
from gpututor.lookup import machine_named
from gpututor.page.figures import figure
from gpututor.page.lessons.machines import Jobs, at_clock, with_fault
from gpututor.page.threads import threads_table
from gpututor.references import Reference, reference


def threads(found: Jobs) -> list[tuple[Reference, float | None]]:
    """Each public reading with our ratio, None where it wasn't run."""
    rtx, v100 = machine_named("desktop-RTX-3090"), machine_named()
    per_step = int(found.told[POLICY]["n_samples"])
    tiny = found.step_ns(POLICY, v100) / (found.here_ns[POLICY] * per_step) if POLICY in found.here_ns else None

    def powered(share: float) -> float:
        return found.step_ns(PHOTOS, at_clock(rtx, clock_under(share))) / found.step_ns(PHOTOS, rtx)

    rows = {
        "GPU to processor, a tiny network": tiny,
        "two jobs on a card to one": found.step_ns(PHOTOS, with_fault(v100, Fault.NEIGHBOUR))
        / found.step_ns(PHOTOS, v100),
        "power, 280 of 350 W": powered(280 / 350),
        "power, 280 of 480 W, TF32": powered(280 / 480),
    }
    return [(reference(name), ratio) for name, ratio in rows.items()]


def elsewhere(found: Jobs) -> mo.Html:
    """Public threads beside this run."""
    return figure(
        "What others ran into", found.label("this run", machine_named()), threads_table(threads(found)), wide=True
    )
