"""What all processes of a sandbox use together, read from outside in Linux's /proc, however they are related now."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
PROC = Path("/proc")
MOST = 1000


@dataclass(frozen=True, slots=True)
class Process:
    """One process: its number and its parent's, its memory, its processor time, and that of children it waited for."""

    pid: int
    parent: int
    resident_bytes: int
    own_cpu_s: float
    childrens_cpu_s: float


def below(root: int) -> list[Process]:
    """`root` and its descendants, `root` first, and of a fork bomb's the first thousand; empty when it is gone."""
    children = _children_of if (PROC / "thread-self" / "children").exists() else _by_parent()
    found, waiting = [], [root]
    for pid in waiting:
        with suppress(OSError, ValueError, IndexError):
            found.append(_read(pid))
            waiting += children(pid)
        if len(found) > MOST:
            break
    return found


def _children_of(pid: int) -> list[int]:
    """As the system lists them for each thread."""
    task = PROC / str(pid) / "task"
    texts = [(task / name / "children").read_text(encoding="ascii") for name in os.listdir(task)]  # noqa: PTH208
    return [int(child) for text in texts for child in text.split()]


def _by_parent() -> Callable[[int], list[int]]:
    """The same where the system keeps no such list: every process of the machine is read."""
    children: dict[int, list[int]] = {}
    for name in os.listdir(PROC):  # noqa: PTH208
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                process = _read(int(name))
                children.setdefault(process.parent, []).append(process.pid)
    return lambda pid: children.get(pid, [])


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
