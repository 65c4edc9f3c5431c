"""The causes found in a run that was kept, remembered by file: a page that opens again doesn't look for them anew."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from gpututor.cards import Machine
from gpututor.causes import find_causes
from gpututor.causes.finding import Finding
from gpututor.replay import SameMachine, play_file


@lru_cache(maxsize=64)
def _causes(path: Path, changed_ns: int, machine: SameMachine) -> tuple[Finding, ...]:
    played = play_file(path, machine.machine)
    return find_causes(played.timeline, played.ledger)


def causes_in_file(path: Path, machine: Machine) -> tuple[Finding, ...]:
    """`find_causes` of the run in this file, played on `machine`.

    Raises:
        TimelineError: the file is gone or damaged.
    """
    play_file(path, machine)  # says in words what is wrong with the file
    return _causes(path, path.stat().st_mtime_ns, SameMachine(machine))
