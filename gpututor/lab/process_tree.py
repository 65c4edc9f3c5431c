"""What all processes of a sandbox use together, read from outside in Linux's /proc, however they are related now."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its number and its parent's, its memory, its processor time, and that of children it waited for."""

    pid: int
    parent: int
    resident_bytes: int
    own_cpu_s: float
    childrens_cpu_s: float


def below(root: int) -> list[Process]:
    """`root` and all its descendants, `root` first; empty when it is gone."""
    everybody = {process.pid: process for process in _all()}
    if root not in everybody:
        return []
    children: dict[int, list[int]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process.pid)
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return [everybody[pid] for pid in found]


def _all() -> list[Process]:
    found = []
    for name in os.listdir(PROC):  # noqa: PTH208 - twice as quick, and it runs 20 times a second
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                found.append(_read(int(name)))
    return found


def _read(pid: int) -> Process:
    """Source of the fields: proc(5), /proc/pid/stat; a name in brackets may hold anything, so count from its end."""
    fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    own, childrens = (sum(map(int, fields[k : k + 2])) / TICKS_PER_S for k in (11, 13))
    return Process(pid, int(fields[1]), int(fields[21]) * PAGE_BYTES, own, childrens)


def held_bytes(process: Process) -> int:
    """Memory of a process where pages shared with others count in parts; its resident set where that can't be read."""
    with suppress(OSError, ValueError, IndexError):
        for line in (PROC / str(process.pid) / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return process.resident_bytes
