"""What a paced run on the simulated GPU tells those who watch it: a small file, replaced several times a second.

A reader sees a whole file or none. A file that nobody replaces any more is not believed after `STALE_AFTER_S`, so a
run that was killed disappears by itself.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpututor.paths import home

FORMAT, VERSION = "gpututor-live", 1
STALE_AFTER_S = 3.0
"""Our choice: fifteen replacements missed. A process that is stopped or out of memory for longer shows nothing new."""

FORGOTTEN_AFTER_S = 600.0
"""Our choice: whatever is this old belongs to a process that ended without taking it away, and is deleted."""


@dataclass(frozen=True, slots=True)
class LiveCard:
    """One simulated card: kernel time since the run began, and its memory as CUDA would report it."""

    name: str
    busy_ns: int
    memory_used_bytes: int
    memory_total_bytes: int


@dataclass(frozen=True, slots=True)
class LiveRun:
    """One paced run at one moment.

    `clock_ns` is the run's own clock, to which `busy_ns` of its cards belongs; it stands still while this computer
    computes in the card's place. `written_at_s` is Unix time.
    """

    pid: int
    what: str
    machine: str
    clock_ns: int
    n_steps: int
    written_at_s: float
    cards: tuple[LiveCard, ...]


def folder() -> Path:
    """Where the files lie, whether or not there are any."""
    return home() / "runs" / "live"


def publish(run: LiveRun) -> None:
    """Put this in the place of what the run said before.

    Raises:
        OSError: the disk is full, read-only, or not ours.
    """
    path = folder() / f"{run.pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")  # one writer a process, so no other has this name
    temporary.write_text(json.dumps({"format": FORMAT, "version": VERSION, **asdict(run)}), encoding="utf-8")
    temporary.replace(path)  # without fsync: after a crash of the computer nobody watches


def withdraw(pid: int | None = None) -> None:
    """Take away what this process (or another) published; nothing happens where there is nothing."""
    for suffix in (".json", ".new"):
        try:
            (folder() / f"{pid or os.getpid()}{suffix}").unlink(missing_ok=True)
        except OSError:
            continue


def running(now_s: float | None = None) -> tuple[LiveRun, ...]:
    """The runs that go on now, oldest process first; damaged and stale files are passed over. `now_s` is Unix time."""
    now_s = time.time() if now_s is None else now_s
    found = []
    try:
        paths = sorted(folder().glob("*.json"))
    except OSError:
        return ()
    for path in paths:
        run = _read(path)
        if run is not None and abs(now_s - run.written_at_s) <= STALE_AFTER_S:
            found.append(run)
        elif _age_s(path, now_s) > FORGOTTEN_AFTER_S:
            _delete(path)
    return tuple(sorted(found, key=lambda run: run.pid))


def _delete(path: Path) -> None:
    """Delete one file; one that isn't ours stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _age_s(path: Path, now_s: float) -> float:
    try:
        return now_s - path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> LiveRun | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return _run(told) if (told["format"], told["version"]) == (FORMAT, VERSION) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _run(told: Mapping[str, Any]) -> LiveRun:
    return LiveRun(
        pid=int(told["pid"]),
        what=str(told["what"]),
        machine=str(told["machine"]),
        clock_ns=int(told["clock_ns"]),
        n_steps=int(told["n_steps"]),
        written_at_s=float(told["written_at_s"]),
        cards=tuple(
            LiveCard(
                str(card["name"]),
                int(card["busy_ns"]),
                int(card["memory_used_bytes"]),
                int(card["memory_total_bytes"]),
            )
            for card in told["cards"]
        ),
    )
