"""Machines that the doctor looks at on a page: made-up ones and the reader's own, as `gpututor doctor` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import marimo as mo

from gpututor.doctor import Finding
from gpututor.doctor.display import printed
from gpututor.doctor.faults import Fault, planted
from gpututor.doctor.finding import State
from gpututor.doctor.planted import examination
from gpututor.experiments.machine_itself import WIDTHS
from gpututor.page.figures import figure
from gpututor.page.lessons.machines import SEED
from gpututor.page.parts import escape
from gpututor.page.terminal import terminal
from gpututor.results import StoredResult

MADE_UP = '<span class="gt-tag gt-simulated">Made up</span> what <code>gpututor doctor</code> prints there'
OWN_TASK = "in use; unless that is your own training"

Paper = Mapping[str, Sequence[str]]
"""What the doctor printed, by number of columns: what passes, and all that follows."""


def letters() -> dict[str, str]:
    """Each planted machine's name on the page, and its fault's name."""
    return {f"machine {'ABCDEFGHIJKLM'[k]}": fault.name for k, fault in enumerate(Fault)}


@lru_cache(maxsize=32)
def looked_at(fault: Fault) -> tuple[tuple[Finding, ...], Paper]:
    """What the doctor finds on the page's machine with this fault, and what it prints."""
    look = examination(planted(fault, SEED).facts)
    found = tuple(look.findings())
    return found, {str(width): printed(look, found, width) for width in WIDTHS}


def paper(printouts: Paper) -> str:
    """The printout as HTML: what passes is folded, all else stands there; one copy for a page, one for a phone."""
    (passes, rest), (narrow_passes, narrow_rest) = (printouts[str(width)] for width in WIDTHS)
    folded = f"<details><summary>What passes</summary>{terminal(passes, narrow_passes)}</details>"
    return folded + terminal(rest, narrow_rest)


def patient(fault: Fault, choose: object) -> mo.Html:
    """One planted machine: what its owner sees, and the doctor's printout; `choose` is the control that chose it."""
    _, printouts = looked_at(fault)
    return figure(
        "A look at a machine",
        MADE_UP,
        choose,
        f'<p class="gt-question">“{escape(fault.owner)}”</p>',
        paper(printouts),
        note=f"Planted: {fault.title}. {told_by(fault)}",
        wide=True,
    )


def told_by(fault: Fault) -> str:
    """Which finding tells the fault, or why none does."""
    found, _ = looked_at(fault)
    if fault is Fault.WRONG_DEVICE:
        return (
            "The machine is in order, so nothing fails: the doctor doesn't read your script. A card at rest while the "
            "training runs is the sign; print(next(model.parameters()).device) is the proof."
        )
    if fault is Fault.GAUGE:
        return (
            "Nothing is wrong. Task Manager's first graph is of the 3D engine, which training doesn't use; put its "
            "graph to Cuda or Compute_0, or ask nvidia-smi."
        )
    finding = next(each for each in found if each.id == fault.check)
    return f"“{finding.title}” tells it."


def n_bad(fault: Fault) -> int:
    """How many of the doctor's findings on this machine are to be looked at or repaired."""
    return sum(each.state in (State.FAIL, State.WARN) for each in looked_at(fault)[0])


def own_paper(measured: StoredResult | None) -> mo.Html | None:
    """What the doctor printed of the reader's computer; nothing before it has looked."""
    data: dict[str, Any] = measured.data if measured is not None and isinstance(measured.data, dict) else {}
    if "doctor" not in data:
        return None
    return figure(
        "The doctor on this computer",
        '<span class="gt-tag gt-measured">Measured</span> what <code>gpututor doctor</code> prints here',
        paper(data["doctor"]),
        note="The checks of a data folder are left out: gpututor doctor --data FOLDER has them.",
        wide=True,
    )
