"""What is read at one tick, and where it comes from: real GPUs, simulated ones in other processes, and the CPU.

A value that can't be read is None, and `reasons` says why under the field's name. It is never 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gpututor.measure.nvml.clocks import ClockReason


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU; the name is None where the process isn't visible from here."""

    pid: int
    name: str | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU at one tick. `key` names it for as long as it is watched: "gpu0", or "sim0" for a simulated one.

    `kernel_time_share` is the share of the time since the last tick (or of the driver's own sample period) with at
    least one kernel running, as nvidia-smi's GPU-Util; `sm_busy_share` is the mean share of busy SMs in that time.
    `clock_reasons` says why the clocks are where they are; empty when nothing holds them.
    """

    key: str
    name: str
    simulated: bool = False
    doing: str = ""
    kernel_time_share: float | None = None
    sm_busy_share: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_hz: float | None = None
    sm_clock_max_hz: float | None = None
    temperature_c: float | None = None
    clock_reasons: tuple[ClockReason, ...] | None = None
    processes: tuple[GpuProcess, ...] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CpuProcess:
    """One of this user's processes, and how many cores it kept busy since the last look."""

    pid: int
    name: str
    busy_cores: float
    parent_pid: int | None = None


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor at one tick. Shares are of the time since the last one; `n_usable` are the cores we may use."""

    n_usable: int
    busy_share: float | None = None
    core_shares: tuple[float, ...] = ()
    busiest: tuple[CpuProcess, ...] = ()
    own_busy_cores: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything at one tick; `time_s` is Unix time. `no_gpu` says why there is no real GPU, where there is none."""

    time_s: float
    devices: tuple[Device, ...]
    cpu: Cpu
    no_gpu: str | None = None


class Gpus(Protocol):
    """A place where GPUs are found."""

    @property
    def why_none(self) -> str | None:
        """Why there is no GPU at all; None where there are some, or where that is no news."""

    def read(self) -> tuple[Device, ...]:
        """All GPUs now. Never raises."""

    def close(self) -> None:
        """Let go of what is held."""


class Processor(Protocol):
    """Where the CPU's readings come from."""

    def read(self) -> Cpu:
        """The CPU now. Never raises."""


class Sources:
    """All places together, read at one tick; `only` keeps the devices of these keys."""

    def __init__(
        self,
        real: Gpus,
        simulated: Gpus,
        cpu: Processor,
        *,
        only: Sequence[str] = (),
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._real, self._simulated, self._cpu = real, simulated, cpu
        self._only, self._clock_s = frozenset(only), clock_s

    def read(self) -> Reading:
        """One reading of everything."""
        found = (*self._real.read(), *self._simulated.read())
        devices = tuple(device for device in found if not self._only or device.key in self._only)
        return Reading(self._clock_s(), devices, _with_simulations(self._cpu.read(), found), self._real.why_none)

    def close(self) -> None:
        """Let go of the driver."""
        self._real.close()
        self._simulated.close()


def _with_simulations(cpu: Cpu, devices: Sequence[Device]) -> Cpu:
    """The CPU's readings with the names of simulated runs in the place of the interpreter's."""
    runs = {p.pid: p.name for device in devices if device.simulated for p in device.processes or ()}
    busiest = tuple(
        replace(p, name=f"{runs[p.pid] or 'a run'}, simulating") if p.pid in runs else p for p in cpu.busiest
    )
    return replace(cpu, busiest=busiest)
