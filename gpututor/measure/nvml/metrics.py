"""What is sampled: every metric with its unit, its words, and the range that a card can mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from gpututor.errors import MetricNotKnown


class Thinned(Enum):
    """What two neighbouring values become where there is no room for both."""

    MEAN = "their mean"
    HIGHER = "the higher one"
    LATER = "the later one"
    EITHER_BIT = "the bits of both"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity of one GPU; values outside of `lowest` and `highest` are no readings but mistakes of a driver."""

    name: str
    unit: str
    words: str
    lowest: float
    highest: float
    thinned: Thinned = Thinned.MEAN


ANY = 1e18
_ROUNDED_UP = 1.02
"""Shares above 1 by what two clocks may differ are kept as they are. Our choice: a second off by 2 %."""

# Ranges are ours: wide enough for every card sold, and without values that stand for "no reading" (0 W, 2^32 - 1 mW).
_ALL = (
    Metric("kernel_time_share", "share", "time with a kernel running, as nvidia-smi's GPU-Util says it", 0.0, 1.0),
    Metric("kernel_time_samples_share", "share", "the same, every sample that the driver kept, once", 0.0, 1.0),
    Metric("memory_time_share", "share", "time in which the card's memory was read or written", 0.0, 1.0),
    Metric("memory_used_bytes", "B", "memory in use on the card, by all programs", 0.0, 2.0**50, Thinned.HIGHER),
    Metric("power_w", "W", "power; the mean of the last second on Ampere and later", 0.001, 20_000.0),
    Metric("power_now_w", "W", "power at this moment", 0.001, 20_000.0),
    Metric("energy_j", "J", "energy since the driver was loaded", 0.0, ANY, Thinned.LATER),
    Metric("temperature_c", "°C", "temperature of the chip", -50.0, 150.0, Thinned.HIGHER),
    Metric("sm_clock_hz", "Hz", "clock of the SMs", 1e6, 1e10),
    Metric("memory_clock_hz", "Hz", "clock of the memory", 1e6, 1e11),
    Metric("clock_reasons", "bits", "why the clocks are where they are", 0.0, 2.0**53, Thinned.EITHER_BIT),
    Metric("pcie_gen", "generation", "PCIe generation just now; lower while the card rests", 1.0, 10.0, Thinned.HIGHER),
    Metric("pcie_lanes", "lanes", "PCIe lanes in use", 1.0, 64.0, Thinned.HIGHER),
    Metric("held_by_power_s", "s", "time so far that the power limit held the clocks", 0.0, ANY, Thinned.LATER),
    Metric("held_by_sw_heat_s", "s", "time so far that the driver held the clocks for heat", 0.0, ANY, Thinned.LATER),
    Metric("held_by_hw_heat_s", "s", "time so far that the card held its clocks for heat", 0.0, ANY, Thinned.LATER),
    Metric("held_by_brake_s", "s", "time so far that a power brake held the clocks", 0.0, ANY, Thinned.LATER),
    Metric("sm_share", "share", "SMs that had work, mean over SMs and the time between two samples", 0.0, _ROUNDED_UP),
    Metric("occupancy_share", "share", "warps resident, of those that fit", 0.0, _ROUNDED_UP),
    Metric("tensor_share", "share", "time that the tensor cores worked", 0.0, _ROUNDED_UP),
    Metric("dram_share", "share", "bandwidth of the card's memory in use", 0.0, _ROUNDED_UP),
    Metric("pcie_tx_bytes_per_s", "B/s", "bytes sent over PCIe", 0.0, 1e13),
    Metric("pcie_rx_bytes_per_s", "B/s", "bytes received over PCIe", 0.0, 1e13),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}


def metric(name: str) -> Metric:
    """The metric of this name.

    Raises:
        MetricNotKnown: there is none.
    """
    try:
        return METRICS[name]
    except KeyError:
        raise MetricNotKnown("metric", name, METRICS) from None
