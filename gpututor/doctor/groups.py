"""Limits of the control group that this process runs in, of both versions.

Source: the kernel's documentation, admin-guide/cgroup-v2 (cpu.max, memory.max), cgroup-v1/memory and sched-bwc.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from gpututor.doctor.readers import Files

_ROOT = "/sys/fs/cgroup"
_NO_LIMIT_BYTES = 2**60
"""Version 1 writes "no limit" as the largest number of whole pages, near 2**63."""


def folders(files: Files, controller: str) -> Iterator[str]:
    """Folders of this process's group for "cpu" or "memory", from the innermost to the root; limits of all hold."""
    for line in (files.read("/proc/self/cgroup") or "0::/").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            top = _ROOT
        elif controller in controllers.split(","):
            top = f"{_ROOT}/{controller}"
        else:
            continue
        inner = PurePosixPath(path.lstrip("/") or ".")
        for part in (inner, *inner.parents):
            yield top if str(part) == "." else f"{top}/{part}"


def cpu_quota(files: Files) -> tuple[float, str] | None:
    """CPUs' worth of time that is granted, and the file that says so; None without a limit."""
    found: list[tuple[float, str]] = []
    for folder in folders(files, "cpu"):
        quota, _, period = (files.read(f"{folder}/cpu.max") or "").partition(" ")
        if quota.isdigit() and period.isdigit() and int(period):
            found.append((int(quota) / int(period), f"{folder}/cpu.max"))
        quota_us, period_us = (files.number(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota_us and quota_us > 0 and period_us:
            found.append((quota_us / period_us, f"{folder}/cpu.cfs_quota_us"))
    return min(found, default=None)


def memory_limit(files: Files) -> tuple[int, int | None, str] | None:
    """The tightest limit on memory in bytes, how much of it is in use, and the file; None without a limit.

    Pages of files count as used, so `used` leaves out those that the kernel drops first (inactive_file).
    """
    found: list[tuple[int, int | None, str]] = []
    for folder in folders(files, "memory"):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = files.number(f"{folder}/{limit_name}")
            if limit is None or limit >= _NO_LIMIT_BYTES:
                continue
            used, stat = files.number(f"{folder}/{used_name}"), files.read(f"{folder}/memory.stat") or ""
            if used is not None:
                used -= min(used, _droppable(stat))
            found.append((limit, used, f"{folder}/{limit_name}"))
    return min(found, key=lambda one: one[0], default=None)


def _droppable(stat: str) -> int:
    for line in stat.splitlines():
        name, _, value = line.partition(" ")
        if name in {"inactive_file", "total_inactive_file"} and value.isdigit():
            return int(value)
    return 0
