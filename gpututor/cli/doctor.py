"""`gpututor doctor`: is it even running on the GPU, and is the machine healthy?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpututor.doctor import Examination, Finding

FORMAT, VERSION = "gpututor-doctor", 1


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with every finding.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The folder that holds your training data; without it the current folder is looked at.",
)
@click.option("--verbose", is_flag=True, help="Also show what was read for each check that passed, ids and sources.")
def doctor_command(as_json: bool, data: Path, verbose: bool) -> int:
    """Check GPU, driver, torch, CPUs, memory, data folder and debug switches of this machine.

    Each finding says what was read, where, and what to do. Nothing is changed. The status is 0 where nothing
    failed, 1 where something did, 2 where the command was not understood.
    """
    from gpututor.doctor import Examination, State
    from gpututor.doctor.surroundings import this_machine

    examination = Examination(this_machine(data.resolve()))
    found = _collected(examination) if as_json else _shown(examination, verbose)
    return 1 if any(finding.state is State.FAIL for finding in found) else 0


def _collected(examination: Examination) -> list[Finding]:
    from gpututor.doctor.examination import in_order

    found = in_order(examination.findings())
    click.echo(json.dumps(document(examination, found), indent=2))
    return found


def document(examination: Examination, found: list[Finding]) -> dict[str, object]:
    """The report as plain data."""
    from gpututor.doctor.examination import counts, headline

    facts = examination.facts
    return {
        "format": FORMAT,
        "version": VERSION,
        "headline": headline(facts, found),
        "counts": {state.value: n for state, n in counts(found).items()},
        "torch": facts.torch.version,
        "cuda": facts.torch.cuda,
        "driver": facts.driver.version,
        "gpus": [gpu.name for gpu in facts.driver.gpus],
        "findings": [finding.as_fields() for finding in found],
        "does_not_apply": list(examination.left_out),
    }


def _shown(examination: Examination, verbose: bool) -> list[Finding]:
    """Print findings as they come."""
    from rich.console import Console

    from gpututor.doctor.display import WIDTH_WITHOUT_TERMINAL, show

    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    return show(examination, console, verbose=verbose)
