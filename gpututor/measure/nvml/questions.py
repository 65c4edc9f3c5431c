"""The calls that are made again and again: which metrics each gives, how often, and under which older names.

None of them changes a setting of the card, and none is known to be slow. Left out on purpose: lists of processes (4.5
ms a call on an RTX 4090 laptop, MangoHud issue 2104), fan and ECC counts, and the PCIe byte counter, which blocks for
20 ms (nvml.h, nvmlDeviceGetPcieThroughput).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from gpututor.measure.nvml.failures import Meaning, Refusal, refusal_of

OFTEN_S = 0.0
"""Every time that the sampler wakes."""

SELDOM_S = 1.0
"""For what changes slowly, or says as much in one call as in five."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Several values that the driver kept for us: times in nanoseconds since sampling began, and values."""

    times_ns: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(slots=True)
class Contact:
    """One GPU as a call needs it; `now_ns` counts from when sampling began, at `zero_ns` of the system's clock.

    A MIG instance has its parent's handle and its own number there besides.
    """

    nvml: Any
    handle: Any
    now_ns: int = 0
    zero_ns: int = 0
    parent: Any = None
    gpu_instance: int | None = None


Answer: TypeAlias = "float | Entries | Refusal"
Ask: TypeAlias = "Callable[[Contact], Sequence[Answer] | Refusal]"


@dataclass(frozen=True, slots=True)
class Question:
    """One call and what it gives; where a way of asking is not known here, the next one is tried.

    `soon` asks again at once where there was nothing new. `unknown_is_never` takes code 999 at the first try for "not
    supported", as drivers of some laptops mean it.
    """

    metrics: tuple[str, ...]
    ways: tuple[Ask, ...]
    every_s: float = OFTEN_S
    soon: bool = False
    unknown_is_never: bool = False


def _one(name: str, *ways: Callable[[Contact], float], every_s: float = OFTEN_S) -> Question:
    return Question((name,), tuple(_alone(way) for way in ways), every_s)


def _alone(way: Callable[[Contact], float]) -> Ask:
    return lambda gpu: (way(gpu),)


def _rates(gpu: Contact) -> Sequence[Answer]:
    rates = gpu.nvml.nvmlDeviceGetUtilizationRates(gpu.handle)
    return rates.gpu / 100, rates.memory / 100


def _memory_apart(gpu: Contact) -> float:
    """Without what the driver itself keeps; the older call counts that as used from R510 on (gpustat issue 141)."""
    used: float = gpu.nvml.nvmlDeviceGetMemoryInfo(gpu.handle, version=gpu.nvml.nvmlMemory_v2).used
    return used


def _power(gpu: Contact) -> float:
    return float(gpu.nvml.nvmlDeviceGetPowerUsage(gpu.handle)) / 1e3  # NVML gives mW


def _energy(gpu: Contact) -> float:
    return float(gpu.nvml.nvmlDeviceGetTotalEnergyConsumption(gpu.handle)) / 1e3  # NVML gives mJ


def _clock(which: int) -> Callable[[Contact], float]:
    return lambda gpu: float(gpu.nvml.nvmlDeviceGetClockInfo(gpu.handle, which)) * 1e6  # NVML gives MHz


_SM, _MEMORY = 1, 2
"""NVML_CLOCK_SM and NVML_CLOCK_MEM. Source: nvml.h, nvmlClockType_t."""

_CHIP = 0
"""NVML_TEMPERATURE_GPU. Source: nvml.h, nvmlTemperatureSensors_t."""


class DriversSamples:
    """Utilization as the driver kept it, each sample once. Source: nvml.h, nvmlDeviceGetSamples."""

    KIND = 1  # NVML_GPU_UTILIZATION_SAMPLES of nvmlSamplingType_t

    def __init__(self, not_before_ns: int) -> None:
        self.not_before_ns = not_before_ns
        self.seen_us = 0

    def __call__(self, gpu: Contact) -> Sequence[Answer]:
        """The samples since the last call; those from before sampling began are left out."""
        oldest_us = (gpu.zero_ns + self.not_before_ns) // 1000
        kind, samples = gpu.nvml.nvmlDeviceGetSamples(gpu.handle, self.KIND, max(self.seen_us, oldest_us))
        stamped = [(s.timeStamp, number(kind, s.sampleValue) / 100) for s in samples if s.timeStamp > oldest_us]
        if not stamped:
            return (Refusal(None, "the driver has no sample yet", Meaning.NOTHING_NEW),)
        self.seen_us = max(us for us, _ in stamped)
        times = tuple(us * 1000 - gpu.zero_ns for us, _ in stamped)
        return (Entries(times, tuple(value for _, value in stamped)),)


# Source: nvml.h, NVML_FI_DEV_POWER_INSTANT (mW), and NVML_FI_DEV_CLOCKS_EVENT_REASON_* (ns): SW_POWER_CAP,
# SW_THERM_SLOWDOWN, HW_THERM_SLOWDOWN, HW_POWER_BRAKE_SLOWDOWN.
_FIELDS = {
    "power_now_w": (186, 1e3),
    "held_by_power_s": (74, 1e9),
    "held_by_sw_heat_s": (269, 1e9),
    "held_by_hw_heat_s": (270, 1e9),
    "held_by_brake_s": (271, 1e9),
}


def _fields(gpu: Contact) -> Sequence[Answer]:
    found = gpu.nvml.nvmlDeviceGetFieldValues(gpu.handle, [number for number, _ in _FIELDS.values()])
    return [_field(gpu.nvml, one, size) for one, (_, size) in zip(found, _FIELDS.values(), strict=True)]


def _field(nvml: Any, one: Any, size: float) -> Answer:
    if one.nvmlReturn:
        return refusal_of(nvml.NVMLError(one.nvmlReturn))
    return number(one.valueType, one.value) / size


_PARTS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Parts of nvmlValue_t by nvmlValueType_t. Source: nvml.h."""


def number(kind: int, value: Any) -> float:
    """The part of NVML's union that holds the value."""
    return float(getattr(value, _PARTS[kind]))


def questions(held_back_ns: int = 0) -> list[Question]:
    """All questions for one GPU, but for those of its performance monitor; utilization is believed after so long."""
    return [
        Question(("kernel_time_share", "memory_time_share"), (_rates,), unknown_is_never=True),
        _one("memory_used_bytes", _memory_apart, lambda gpu: gpu.nvml.nvmlDeviceGetMemoryInfo(gpu.handle).used),
        _one("power_w", _power),
        _one("sm_clock_hz", _clock(_SM)),
        _one(
            "clock_reasons",
            lambda gpu: gpu.nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu.handle),
            lambda gpu: gpu.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu.handle),  # drivers before R535
        ),
        Question(("kernel_time_samples_share",), (DriversSamples(held_back_ns),), SELDOM_S),
        _one("energy_j", _energy, every_s=SELDOM_S),
        _one("temperature_c", lambda gpu: gpu.nvml.nvmlDeviceGetTemperature(gpu.handle, _CHIP), every_s=SELDOM_S),
        _one("memory_clock_hz", _clock(_MEMORY), every_s=SELDOM_S),
        _one("pcie_gen", lambda gpu: gpu.nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu.handle), every_s=SELDOM_S),
        _one("pcie_lanes", lambda gpu: gpu.nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu.handle), every_s=SELDOM_S),
        Question(tuple(_FIELDS), (_fields,), SELDOM_S),
    ]
