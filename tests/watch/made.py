"""Readings, a processor and a clock made by hand for tests of the watch."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpututor.watch.source import Cpu, CpuProcess, Device, GpuProcess, Reading

GIB = 2**30
IDLE_CPU = Cpu(n_usable=8, busy_share=0.05, core_shares=(0.05,) * 8, own_busy_cores=0.2)
BUSY_CPU = Cpu(n_usable=8, busy_share=0.95, core_shares=(0.95,) * 8, own_busy_cores=7.5)


def gpu(share=0.25, key="gpu0", **fields):
    """A GPU with everything known, unless said otherwise."""
    known = {
        "memory_used_bytes": 4 * GIB,
        "memory_total_bytes": 16 * GIB,
        "power_w": 120.0,
        "power_limit_w": 300.0,
        "sm_clock_hz": 1.5e9,
        "sm_clock_max_hz": 2e9,
        "temperature_c": 50.0,
        "clock_reasons": (),
        "processes": (),
    }
    return Device(key, "Card", kernel_time_share=share, **(known | fields))


def simulated(share=0.25, pid=7):
    """A simulated card, about which less is known."""
    return Device(
        "sim0", "V100", simulated=True, doing="train.py", kernel_time_share=share,
        processes=(GpuProcess(pid, "train.py", GIB),), reasons={"power_w": "power is not simulated"},
    )  # fmt: skip


def cpu_of(*cores, n_usable=8, pids=None, parents=None):
    """A processor whose only work is that of these processes, each with its busy cores."""
    pids = pids or range(100, 100 + len(cores))
    parents = parents or [1] * len(cores)
    busiest = tuple(CpuProcess(p, f"python {p}", c, up) for p, c, up in zip(pids, cores, parents, strict=True))
    share = sum(cores) / n_usable
    return Cpu(n_usable, share, (share,) * n_usable, busiest, float(sum(cores)))


def reading(*devices, time_s=1000.0, cpu=IDLE_CPU, no_gpu=None):
    return Reading(time_s, devices, cpu, no_gpu)


@dataclass
class Clock:
    """A clock that only moves when somebody waits, and writes down for how long."""

    now_s: float = 0.0
    waits: list[float] = field(default_factory=list)

    def __call__(self):
        return self.now_s

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now_s += seconds


@dataclass
class Source:
    """Gives these readings one after another, then the last one for ever; each takes `takes_s` of the clock."""

    readings: list[Reading]
    clock: Clock | None = None
    takes_s: float = 0.0
    n_read: int = 0

    def read(self):
        if self.clock is not None:
            self.clock.now_s += self.takes_s
        found = self.readings[min(self.n_read, len(self.readings) - 1)]
        self.n_read += 1
        return found
