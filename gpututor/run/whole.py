"""One run from request to outcome: start it, show it, read what it left."""

from __future__ import annotations

from pathlib import Path

from gpututor.lookup import machine_named
from gpututor.run import outcome, parent
from gpututor.run.display import Display
from gpututor.run.outcome import Outcome
from gpututor.run.request import Request


def run_whole(request: Request, folder: Path, *, json: bool = False) -> Outcome:
    """Run the script in a process of its own and account what it did; `folder` is made for it."""
    folder.mkdir(parents=True)
    card = "GPU here" if request.here else machine_named(request.machine or None).card.name
    with Display(request, card, json=json) as display:
        ended = parent.run(request, folder, display)
    if request.here:
        from gpututor.run.here import measured

        return measured(request, ended, folder)
    return outcome.simulated(request, ended, folder)
