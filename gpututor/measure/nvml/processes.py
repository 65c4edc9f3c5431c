"""Which processes use a GPU, and how much of its memory. Asked once, since the call is slow on some drivers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpututor.measure.nvml.devices import Device, handle
from gpututor.measure.nvml.failures import Refusal
from gpututor.measure.nvml.library import Library, gate, versions

HIGHEST_PID = 4_194_304
"""2^22. Source: Linux, include/linux/threads.h, PID_MAX_LIMIT on 64 bits. Other systems count lower in practice."""

MISREAD_DRIVERS = ((535, 43), (535, 86))
"""These drivers and those between fill another structure than they say (gpustat issue 161, nvitop issue 88)."""

HOST_NAMESPACE = "pid:[4026531836]"
"""The namespace of all processes. Source: Linux, include/linux/proc_ns.h, PROC_PID_INIT_INO."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU. The driver counts as the host does, also in a container, so `name` is None there."""

    host_pid: int
    used_bytes: int | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes on one GPU; None with a reason where the driver doesn't tell. In a container the list may be empty."""

    found: tuple[GpuProcess, ...] | None
    reason: str | None = None


def processes(library: Library, device: Device) -> Processes:
    """The processes that compute on this GPU now. Raises nothing that a driver may raise."""
    driver = versions(library).get("driver", "")
    if _misread(driver):
        return Processes(None, f"driver {driver} gives wrong process numbers; a newer one of its line is right")
    gpu = handle(library, device.uuid)
    if isinstance(gpu, Refusal):
        return Processes(None, f"the GPU can't be opened ({gpu.words})")
    with gate():
        listed = library.ask(lambda nvml: nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
    if isinstance(listed, Refusal):
        return Processes(() if listed.code == 0 else None, None if listed.code == 0 else listed.words)
    return _believed(listed, device.facts.get("memory_total_bytes"))


def _misread(driver: str) -> bool:
    numbers = [int(part) for part in driver.split(".")[:2] if part.isdigit()]
    least, most = MISREAD_DRIVERS
    return len(numbers) == 2 and least <= (numbers[0], numbers[1]) <= most


def _believed(listed: Sequence[Any], total_bytes: float | None) -> Processes:
    """Entries that can be; None where some can't, since then the structure was misread."""
    host = _sees_host()
    found = []
    for one in listed:
        pid, used = int(one.pid), one.usedGpuMemory
        if not 0 < pid <= HIGHEST_PID:
            return Processes(None, f"the driver names a process {pid}, which can't be; its list is not believed")
        if used is not None and total_bytes is not None and used > total_bytes:
            used = None
        found.append(GpuProcess(pid, used, _name(pid) if host else None))
    return Processes(tuple(found))


def _sees_host() -> bool:
    """Whether process numbers here are the host's."""
    if sys.platform != "linux":
        return True
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == HOST_NAMESPACE
    except OSError:
        return False


def _name(pid: int) -> str | None:
    import psutil  # type: ignore[import-untyped]

    try:
        return str(psutil.Process(pid).name())
    except (psutil.Error, OSError):
        return None
