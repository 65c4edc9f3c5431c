"""What a reading means, in a sentence, and the one rule that two gauges allow: who of CPU and GPU waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gpututor.text import NBSP, percent
from gpututor.watch.source import Cpu, Device


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on a gauge counts as busy or idle."""

    gpu_idle_share: float = 0.5  # our choice: it waits more than it works
    cpu_busy_share: float = 0.7  # our choice: room for one more core in three is no bottleneck of all cores
    one_core: float = 0.85  # our choice: a process that never waits reads 0.9 to 1.0 of a core in a look of 2 s


class Verdict(Enum):
    """Who waits for whom."""

    LOADER = "The CPU is busy while the GPU idles: that means the loader. Do less for each sample, or do it beforehand."
    ONE_CORE = (
        "One process keeps one core busy while the GPU idles: it reads data without workers, or starts kernels one by "
        "one. `gpututor run` tells which."
    )
    BOTH_IDLE = "CPU and GPU both idle: something waits for a disk, a network, a lock or a person."
    GPU_BUSY = "The GPU has work most of the time. Whether that work fills it, only the ledger tells (`gpututor run`)."
    UNKNOWN = "Who waits for whom can't be told from these readings."


def utilization_sentence(device: Device) -> str:
    """What the card's utilization says, and what it doesn't."""
    share = device.kernel_time_share
    if share is None:
        return f"Utilization is not known: {device.reasons.get('kernel_time_share', 'no reason given')}."
    if share == 0:
        return "No kernel ran."
    how_often = "all the time" if share == 1 else f"{percent(share)} of the time"
    if device.sm_busy_share is not None:
        return f"A kernel ran {how_often}; on average {percent(device.sm_busy_share)} of the SMs were busy."
    return f"A kernel ran {how_often}; that says nothing of how full the card was."


def clocks_sentence(device: Device) -> str:
    """How high the clocks are and why."""
    if device.sm_clock_hz is None:
        return f"Clocks are not known: {device.reasons.get('sm_clock_hz', 'no reason given')}."
    most = f" of at most {device.sm_clock_max_hz / 1e6:.0f}" if device.sm_clock_max_hz else ""
    text = f"The SMs run at {device.sm_clock_hz / 1e6:.0f}{most}{NBSP}MHz"
    if device.clock_reasons is None:
        return f"{text}; why is not known: {device.reasons.get('clock_reasons', 'no reason given')}."
    if not device.clock_reasons:
        return f"{text}, and nothing holds them."
    return f"{text}: {', and '.join(reason.words for reason in device.clock_reasons)}."


def verdict(device: Device, cpu: Cpu, thresholds: Thresholds = Thresholds()) -> Verdict:
    """Who of CPU and GPU waits; CPU busy while the GPU idles means the loader.

    The process in which a card is simulated isn't counted as loading, since it also computes in the card's place.
    """
    if device.kernel_time_share is None or cpu.busy_share is None:
        return Verdict.UNKNOWN
    if device.kernel_time_share >= thresholds.gpu_idle_share:
        return Verdict.GPU_BUSY
    simulating = {p.pid for p in device.processes or ()} if device.simulated else set()
    spoilt = sum(p.busy_cores for p in cpu.busiest if p.pid in simulating)
    n_cores = len(cpu.core_shares) or cpu.n_usable
    busy_cores = max(cpu.busy_share * n_cores, cpu.own_busy_cores or 0.0) - spoilt
    # a loader's workers are children of the training process; several of them at work are a loader on any machine
    workers = [p for p in cpu.busiest if p.pid not in simulating and _is_worker(p.parent_pid, cpu)]
    if busy_cores >= thresholds.cpu_busy_share * cpu.n_usable and (cpu.n_usable > 1 or workers):
        return Verdict.LOADER
    if sum(p.busy_cores >= thresholds.one_core for p in workers) > 1:
        return Verdict.LOADER
    if any(p.busy_cores >= thresholds.one_core for p in cpu.busiest):
        return Verdict.ONE_CORE
    return Verdict.BOTH_IDLE


def _is_worker(parent_pid: int | None, cpu: Cpu) -> bool:
    return parent_pid is not None and any(p.pid == parent_pid for p in cpu.busiest)
