"""A measured loop as an entry of the history, and what the history expects of the next one."""

from __future__ import annotations

import sys
from pathlib import Path

from gpututor.history import Entry
from gpututor.history.commit import commit_of
from gpututor.history.entry import accounts_a_step
from gpututor.measure.measurement import Measurement

NOTEBOOK = "notebook"
EVENTS = "marks around forward, backward and optimizer, so at most this"


def _program() -> Path | None:
    """The file of the program that runs, or None in a notebook or at a prompt."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file) if file else None


def name_of_program() -> str:
    """What a loop is called that has no name."""
    program = _program()
    return program.name if program else NOTEBOOK


def entry_of(found: Measurement, script: Path | None = None) -> Entry:
    """The measurement as the history keeps it: the median step, and the accounts of the best ledger there is.

    The busy share is the driver's own where it was sampled, else the ledger's.
    """
    ledger, label = found.best_ledger, found.label
    gauge = found.readings.get("kernel_time_share")
    basis = "the driver's gauge" if gauge is not None else EVENTS if found.window is None else "the profiler's window"
    reasons = dict(found.reasons)
    if found.usd_per_hour is None:
        reasons["usd_per_1000_steps"] = "no price was given (usd_per_hour)"
    return Entry(
        kind="measure",
        name=label.what,
        origin=label.origin.value,
        machine=label.host,
        card=label.card,
        configuration={"n_samples": found.n_samples, "window": found.window is not None, **found.configuration},
        versions=dict(label.versions),
        commit=commit_of(script or _program() or Path.cwd()),
        n_steps=len(found.steps),
        step_ns=found.step_ns,
        busy_share=ledger.busy_share if gauge is None else gauge,
        busy_basis=basis,
        accounts_ns=accounts_a_step(ledger),
        usd_per_hour=found.usd_per_hour,
        usd_per_1000_steps=found.usd_per_1000_steps,
        reasons=reasons,
    )
