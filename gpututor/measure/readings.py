"""Readings beside a measured loop: what the sampler saw, memory, energy, and what the measuring itself took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from gpututor.measure.devices import Device
from gpututor.text import duration, percent, quantity

if TYPE_CHECKING:
    from gpututor.measure.nvml import GpuSummary, Sampled, Summary


class Samples(Protocol):
    """What is asked of a sampler after the loop; `gpututor.measure.nvml.Sampler` answers."""

    def summary(self) -> Summary:
        """The run in figures."""

    def sampled(self) -> Sampled:
        """The same with everything that is kept over time."""


class Sampling(Samples, AbstractContextManager["Sampling"], Protocol):
    """A sampler: at work from the begin of a block to its end."""


# Words for a reading, by its name. The rest of what is known is kept and not printed.
WORDS: Mapping[str, Callable[[float], str]] = {
    "memory_peak_bytes": lambda value: f"memory peak {value / 2**30:.2f} GiB",
    "kernel_time_share": lambda value: f"GPU-Util {percent(value)}",
    "energy_j": lambda value: f"energy {quantity(value, 'J')}",
    "power_w": lambda value: f"power {quantity(value, 'W')}",
    "sm_clock_hz": lambda value: f"SM clock {quantity(value, 'Hz')}",
    "temperature_c": lambda value: f"{value:.0f} °C",
    "clocks_held_share": lambda value: f"clocks held down {percent(value)} of the time",
    "sampler_core_share": lambda value: f"the sampler took {percent(value)} of a core",
    "marking_ns": lambda value: f"marking took {duration(value)} a step",
}
NOT_MEANS = frozenset(
    {"energy_j", "clock_reasons", "held_by_power_s", "held_by_sw_heat_s", "held_by_hw_heat_s", "held_by_brake_s"}
)
"""Counters and bits, of which a mean says nothing."""
WORTH_SAYING = ("energy_j", "kernel_time_share", "power_w", "sm_clock_hz")
"""Metrics whose reason is told where they are missing; cards lack some of the others for good."""


def in_words(name: str, value: float) -> str | None:
    """A reading as a few words, or None for one that isn't printed."""
    return WORDS[name](value) if name in WORDS else None


def sampler_for(device: Device) -> tuple[Sampling | None, str | None]:
    """The driver's sampler of this device, or None and why there is none."""
    if device.no_sampler is not None:
        return None, device.no_sampler
    try:
        from gpututor.measure.nvml import Sampler

        return Sampler(devices=[device.uuid] if device.uuid else None), None
    except Exception as error:  # noqa: BLE001  no sampler is a reading less, never an end of the loop
        return None, f"the NVML sampler doesn't start ({str(error) or type(error).__name__})"


def plain(summary: Summary) -> tuple[dict[str, float], dict[str, str]]:
    """Means over the loop by metric, energy in joules, the sampler's own cost; and why what matters is missing."""
    known: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if summary.cost.cpu_share is not None:
        known["sampler_core_share"] = summary.cost.cpu_share
    else:
        reasons["sampler_core_share"] = "the loop ended before the sampler's second round"
    if not summary.gpus:
        return {}, {"driver's samples": summary.reason or "the driver shows no GPU"}
    gpu = summary.gpus[0]
    known |= {name: figure.mean for name, figure in gpu.figures.items() if name not in NOT_MEANS}
    reasons |= {name: why for name, why in gpu.reasons.items() if name in WORTH_SAYING}
    return _whole(gpu, known, reasons)


def _whole(
    gpu: GpuSummary, known: dict[str, float], reasons: dict[str, str]
) -> tuple[dict[str, float], dict[str, str]]:
    if gpu.kernel_time_share is not None:
        known["kernel_time_share"] = gpu.kernel_time_share
        reasons.pop("kernel_time_share", None)
    if gpu.energy is not None:
        known["energy_j"] = gpu.energy.energy_j
        reasons.pop("energy_j", None)
    elif gpu.energy_reason:
        reasons["energy_j"] = gpu.energy_reason
    if "clock_reasons" in gpu.figures:
        known["clocks_held_share"] = max((held.share for held in gpu.held if held.slows), default=0.0)
    if gpu.lost:
        reasons["the GPU"] = gpu.lost
    return known, reasons


Over = Mapping[str, tuple[tuple[int, ...], tuple[float, ...]]]


def over_time(sampled: Sampled) -> Over:
    """Times (nanoseconds since sampling began) and values of each metric of the first GPU."""
    gpus = sampled.summary.gpus
    first = gpus[0].device.uuid if gpus else None
    return {one.metric: (one.times_ns, one.values) for one in sampled.series if one.uuid == first}
