"""What the CPU does: all cores, each core, and this user's busiest processes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpututor.watch.source import Cpu, CpuProcess

LOOK_AT_PROCESSES_EVERY_S = 2.0
"""Our choice: a walk over all processes takes some ms, and who is busiest changes slowly."""

N_BUSIEST = 4
LEAST_CORES = 0.05
"""Our choice: a process below a twentieth of a core explains nothing."""

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""A container's limit: microseconds of CPU it may have, and in how many. Source: Linux, cgroup-v2, cpu.max."""


def usable_cores(limit: Path = CPU_MAX) -> int:
    """Cores that this process may keep busy: its affinity, and no more than a container's limit."""
    n = len(own_cores()) or os.cpu_count() or 1
    try:
        quota, period = limit.read_text(encoding="ascii").split()
        return max(1, min(n, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return n


def own_cores() -> tuple[int, ...]:
    """Numbers of the cores that the system lets us run on; empty where it doesn't say, which means all."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


class Psutil:
    """The CPU through psutil. The first reading, without a stretch of time behind it, has no shares."""

    def __init__(self, psutil: Any = None, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        if psutil is None:
            import psutil as ps  # type: ignore[import-untyped]
        else:
            ps = psutil
        self._ps, self._clock_s = ps, clock_s
        self._n_usable, self._cores = usable_cores(), own_cores()
        self._times: list[Any] | None = None
        self._looked_s = -math.inf
        self._processes: dict[int, tuple[str, float, int | None]] = {}  # at the last look
        self._busiest: tuple[CpuProcess, ...] = ()
        self._own: float | None = None

    def read(self) -> Cpu:
        """The CPU since the last call."""
        reasons: dict[str, str] = {}
        shares = self._core_shares(reasons)
        self._look_at_processes(reasons)
        try:
            memory = self._ps.virtual_memory()
            used, total = memory.total - memory.available, memory.total
        except Exception as error:  # noqa: BLE001  # a system that doesn't tell
            used = total = None
            reasons["memory_used_bytes"] = str(error) or type(error).__name__
        return Cpu(
            self._n_usable,
            sum(shares) / len(shares) if shares else None,
            shares,
            self._busiest,
            self._own,
            used,
            total,
            reasons,
        )

    def _core_shares(self, reasons: dict[str, str]) -> tuple[float, ...]:
        try:
            now = self._ps.cpu_times(percpu=True)
        except Exception as error:  # noqa: BLE001  # as above
            reasons["busy_share"] = str(error) or type(error).__name__
            return ()
        if self._cores and self._cores[-1] < len(now):
            now = [now[k] for k in self._cores]
        before, self._times = self._times, now
        if before is None or len(before) != len(now):
            reasons["busy_share"] = "the first look; a share needs two"
            return ()
        shares = tuple(_busy_share(a, b) for a, b in zip(before, now, strict=True))
        known = tuple(share for share in shares if share is not None)
        if not known:
            reasons["busy_share"] = "the system's counters stood still between two looks"
        return known

    def _look_at_processes(self, reasons: dict[str, str]) -> None:
        now_s = self._clock_s()
        long_s = now_s - self._looked_s
        if long_s < LOOK_AT_PROCESSES_EVERY_S and self._own is not None:
            return
        try:
            found = self._own_processes()
        except Exception as error:  # noqa: BLE001  # as above
            reasons["busiest"] = str(error) or type(error).__name__
            return
        before, self._processes, self._looked_s = self._processes, found, now_s
        if math.isinf(long_s) or long_s <= 0:
            reasons["busiest"] = "the first look; a share needs two"
            return
        cores = {pid: max(0.0, now[1] - before[pid][1]) / long_s for pid, now in found.items() if pid in before}
        first = sorted((pid for pid in cores if cores[pid] >= LEAST_CORES), key=lambda pid: -cores[pid])[:N_BUSIEST]
        self._busiest = tuple(
            CpuProcess(pid, self._title(pid, found[pid][0]), cores[pid], found[pid][2]) for pid in first
        )
        self._own = sum(cores.values())

    def _own_processes(self) -> dict[int, tuple[str, float, int | None]]:
        """Name, CPU seconds and parent of this user's processes, without this one."""
        user, me = self._ps.Process().username(), os.getpid()
        found = {}
        for process in self._ps.process_iter(["username", "name", "cpu_times", "ppid"]):
            told = process.info
            if told["username"] == user and told["cpu_times"] is not None and process.pid != me:
                seconds = told["cpu_times"].user + told["cpu_times"].system
                found[process.pid] = told["name"] or "?", seconds, told["ppid"]
        return found

    def _title(self, pid: int, name: str) -> str:
        """The process's name; of an interpreter also the script that it runs."""
        try:
            words = self._ps.Process(pid).cmdline()[1:]
        except Exception:  # noqa: BLE001  # it ended, or isn't ours to ask
            return name
        module = words[words.index("-m") + 1 : words.index("-m") + 2] if "-m" in words else []
        script = module or [Path(word).name for word in words if word.endswith(".py")]
        return f"{name} {script[0]}" if script and name.startswith("python") else name


def _busy_share(before: Any, after: Any) -> float | None:
    """The share of one core's time between two looks in which it worked; None if no time passed."""
    changes = {name: getattr(after, name) - getattr(before, name) for name in after._fields}
    for counted_twice in ("guest", "guest_nice"):  # Linux counts them in user and nice as well
        changes.pop(counted_twice, None)
    total = float(sum(changes.values()))
    if total <= 0:
        return None
    idle = float(changes.get("idle", 0.0) + changes.get("iowait", 0.0))
    return min(1.0, max(0.0, 1 - idle / total))
