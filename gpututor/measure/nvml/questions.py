"""The calls that are made again and again: which metrics each gives, how often, and under which older names.

None of them changes a setting of the card, and none is known to be slow. Left out on purpose: lists of processes (4.5
ms a call on an RTX 4090 laptop, MangoHud issue 2104), fan and ECC counts, and the PCIe byte counter, which blocks for
20 ms (nvml.h, nvmlDeviceGetPcieThroughput).
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure, Union, c_double, c_int, c_longlong, c_uint, c_ulong, c_ulonglong, c_ushort
from dataclasses import dataclass
from typing import Any

from gpututor.measure.nvml.contact import Answer, Ask, Contact, Direct, Entries
from gpututor.measure.nvml.failures import Meaning, Refusal, refusal_of

OFTEN_S = 0.0
"""Every time that the sampler wakes."""

SELDOM_S = 1.0
"""For what changes slowly, or says as much in one call as in five."""


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


def _one(name: str, *ways: Ask, every_s: float = OFTEN_S) -> Question:
    return Question((name,), ways, every_s)


def _number(function: str, *given: int, kind: Any = c_uint, times: float = 1.0, over: float = 1.0) -> Ask:
    """The one number of this function in a unit of ours; the binding's function has the same name."""

    def through_binding(gpu: Contact) -> Sequence[Answer]:
        return (getattr(gpu.nvml, function)(gpu.handle, *given) * times / over,)

    return Direct(
        function, (kind * 1)(), lambda room, _: (room[0] * times / over,), through_binding, *map(c_int, given)
    ).ask


def _rates() -> Ask:
    """Both shares of nvmlUtilization_t, which is two numbers: of kernels and of memory, in percent."""

    def through_binding(gpu: Contact) -> Sequence[Answer]:
        rates = gpu.nvml.nvmlDeviceGetUtilizationRates(gpu.handle)
        return rates.gpu / 100, rates.memory / 100

    function = "nvmlDeviceGetUtilizationRates"
    return Direct(function, (c_uint * 2)(), lambda room, _: (room[0] / 100, room[1] / 100), through_binding).ask


_MEMORY_V2 = 0x2000000 | 40
"""The version that nvmlMemory_v2_t wants: 2, with its 40 bytes. Source: nvml.h, nvmlMemory_v2."""


def _memory_apart() -> Ask:
    """Without what the driver itself keeps; the older call counts that as used from R510 on (gpustat issue 141).

    nvmlMemory_v2_t is a version, and four numbers of 8 bytes of which the last is what is used.
    """

    def through_binding(gpu: Contact) -> Sequence[Answer]:
        return (float(gpu.nvml.nvmlDeviceGetMemoryInfo(gpu.handle, version=gpu.nvml.nvmlMemory_v2).used),)

    room = (c_ulonglong * 5)(_MEMORY_V2)
    used = 4
    return Direct(
        "nvmlDeviceGetMemoryInfo_v2", room, lambda room, _: (float(room[used]),), through_binding, needs="nvmlMemory_v2"
    ).ask


def _memory(gpu: Contact) -> Sequence[Answer]:
    return (float(gpu.nvml.nvmlDeviceGetMemoryInfo(gpu.handle).used),)


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


class _Value(Union):
    """nvmlValue_t. Source: nvml.h."""

    _fields_ = (
        ("dVal", c_double), ("uiVal", c_uint), ("ulVal", c_ulong), ("ullVal", c_ulonglong), ("sllVal", c_longlong),
        ("siVal", c_int), ("usVal", c_ushort),
    )  # fmt: skip


# Source: nvml.h, NVML_FI_DEV_POWER_INSTANT (mW), and NVML_FI_DEV_CLOCKS_EVENT_REASON_* (ns): SW_POWER_CAP,
# SW_THERM_SLOWDOWN, HW_THERM_SLOWDOWN, HW_POWER_BRAKE_SLOWDOWN.
_FIELDS = {
    "power_now_w": (186, 1e3),
    "held_by_power_s": (74, 1e9),
    "held_by_sw_heat_s": (269, 1e9),
    "held_by_hw_heat_s": (270, 1e9),
    "held_by_brake_s": (271, 1e9),
}


class _Field(Structure):
    """nvmlFieldValue_t without the methods of the binding's; the value is a union, of which `number` reads a part."""

    _fields_ = (
        ("fieldId", c_uint), ("scopeId", c_uint), ("timestamp", c_longlong), ("latencyUsec", c_longlong),
        ("valueType", c_int), ("nvmlReturn", c_int), ("value", _Value),
    )  # fmt: skip


def _fields() -> Ask:
    """All fields in one call; each has a code of its own."""
    numbers = [number for number, _ in _FIELDS.values()]

    def meant(found: Any, gpu: Contact) -> Sequence[Answer]:
        return [_field(gpu.nvml, one, size) for one, (_, size) in zip(found, _FIELDS.values(), strict=True)]

    def through_binding(gpu: Contact) -> Sequence[Answer]:
        return meant(gpu.nvml.nvmlDeviceGetFieldValues(gpu.handle, numbers), gpu)

    room = (_Field * len(numbers))(*map(_Field, numbers))
    return Direct("nvmlDeviceGetFieldValues", room, meant, through_binding, c_int(len(numbers))).ask


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
    reasons = "nvmlDeviceGetCurrentClocks{}Reasons"  # "Throttle" for drivers before R535
    return [
        Question(("kernel_time_share", "memory_time_share"), (_rates(),), unknown_is_never=True),
        _one("memory_used_bytes", _memory_apart(), _memory),
        _one("power_w", _number("nvmlDeviceGetPowerUsage", over=1e3)),  # NVML gives mW
        _one("sm_clock_hz", _number("nvmlDeviceGetClockInfo", _SM, times=1e6)),  # NVML gives MHz
        _one("clock_reasons", *(_number(reasons.format(w), kind=c_ulonglong) for w in ("Event", "Throttle"))),
        Question(("kernel_time_samples_share",), (DriversSamples(held_back_ns),), SELDOM_S),
        _one("energy_j", _number("nvmlDeviceGetTotalEnergyConsumption", kind=c_ulonglong, over=1e3), every_s=SELDOM_S),
        _one("temperature_c", _number("nvmlDeviceGetTemperature", _CHIP), every_s=SELDOM_S),
        _one("memory_clock_hz", _number("nvmlDeviceGetClockInfo", _MEMORY, times=1e6), every_s=SELDOM_S),
        _one("pcie_gen", _number("nvmlDeviceGetCurrPcieLinkGeneration"), every_s=SELDOM_S),
        _one("pcie_lanes", _number("nvmlDeviceGetCurrPcieLinkWidth"), every_s=SELDOM_S),
        Question(tuple(_FIELDS), (_fields(),), SELDOM_S),
    ]
