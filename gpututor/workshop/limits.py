"""How large a class one machine takes, from what was measured with 30 readers."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from gpututor.lab.processes import machine_memory_bytes

MIB = 2**20
SERVER_MIB = 330  # tools/workshop_load.py, marimo 0.25.2, Python 3.11: the server with every lesson's libraries loaded
READER_MIB = 20  # the same: what each further reader with three finished lessons open adds
WORKER_MIB = 550  # the same: a worker with torch after an experiment of lessons 1 to 3
CHECK_MIB = 450  # the same: a process that checks code on a simulated card
MEMORY_SHARE = 0.75  # of the machine: the system and its file cache need the rest
MOST_A_WORKER_MIB = 4096  # our choice: the largest experiment of the course takes a quarter of it
IDLE_S = 120.0  # our choice: importing torch again costs a reader some three seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server for a class takes and how many readers fit. `n_readers` have three lessons open each."""

    n_cores: int
    n_runners: int
    memory_bytes: int
    run_bytes: int
    n_readers: int

    def as_json(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What an instructor should know before the class begins."""
        plural = "" if self.n_runners == 1 else "s"
        runs = (
            f"{self.n_runners} runner{plural} on {self.n_cores} cores: so many experiments and checks go on at once, "
            "the others wait in line; what measures real time runs alone."
        )
        memory = (
            f"Memory: about {SERVER_MIB} MiB for the server, {READER_MIB} a reader with three lessons open, and "
            f"{WORKER_MIB + CHECK_MIB} a runner at most in the course's own experiments; a run that takes more than "
            f"{self.run_bytes / MIB:,.0f} MiB is ended. Of this machine's {self.memory_bytes / MIB:,.0f} MiB that "
            f"leaves room for {self.n_readers:,} readers."
        )
        return runs, memory


def default_runners() -> int:
    """One core stays with the server: cores − 1, at least 1."""
    return max(1, n_cores() - 1)


def n_cores() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def limits(n_runners: int, memory_bytes: int | None = None) -> Limits:
    """The limits of this machine, or of one with so much memory, with so many runners."""
    memory_bytes = machine_memory_bytes() if memory_bytes is None else memory_bytes
    room_mib = MEMORY_SHARE * memory_bytes / MIB - SERVER_MIB
    run_mib = max(1024.0, min(MOST_A_WORKER_MIB, room_mib / 2 / n_runners))
    n_readers = max(0, int((room_mib - n_runners * (WORKER_MIB + CHECK_MIB)) / READER_MIB))
    return Limits(n_cores(), n_runners, memory_bytes, int(run_mib * MIB), n_readers)
