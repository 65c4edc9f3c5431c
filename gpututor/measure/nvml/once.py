"""One look at the GPUs: their names, or the readings of one of them; no thread, and the library is closed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpututor.measure.nvml.devices import handle
from gpututor.measure.nvml.failures import NOT_FOUND, Refusal
from gpututor.measure.nvml.library import Library, gate, open_library, text, versions
from gpututor.measure.nvml.metrics import metric
from gpututor.measure.nvml.visible import whole


@dataclass(frozen=True, slots=True)
class Readings:
    """What the driver says at one moment; `reasons` explains each None by the field's name.

    `kernel_time_share` is nvidia-smi's GPU-Util over 1: the share of the last 1/6 to 1 s with a kernel
    running. Source: nvml.h, `nvmlUtilization_t`.
    """

    driver: str | None = None
    kernel_time_share: float | None = None
    power_w: float | None = None
    sm_clock_hz: float | None = None
    temperature_c: float | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpus:
    """Names of this machine's NVIDIA GPUs in NVML's order; `reason` says why there are none."""

    names: tuple[str, ...]
    reason: str | None = None


def find_gpus(nvml: Any = None) -> Gpus:
    """The GPUs that the driver shows and lets be opened, without importing torch. Never raises."""
    library = open_library(nvml)
    if isinstance(library, str):
        return Gpus((), library)
    try:
        count = library.asked("nvmlDeviceGetCount")
        if isinstance(count, Refusal):
            return Gpus((), f"the NVIDIA driver does not name its GPUs ({count.words})")
        named = [_name(library, k) for k in range(count)]
    finally:
        library.close()
    names = tuple(name for name in named if isinstance(name, str))
    if names:
        return Gpus(names)
    refused = next((name for name in named if isinstance(name, Refusal)), None)
    if refused is not None:
        return Gpus((), f"the NVIDIA driver does not name its GPUs ({refused.words})")
    return Gpus((), "the NVIDIA driver is here, and shows no GPU")


def _name(library: Library, k: int) -> str | Refusal:
    gpu = library.asked("nvmlDeviceGetHandleByIndex", k)
    name = gpu if isinstance(gpu, Refusal) else library.asked("nvmlDeviceGetName", gpu)
    return name if isinstance(name, Refusal) else text(name)


_QUESTIONS: Mapping[str, Callable[[Any, Any], float]] = {
    "kernel_time_share": lambda gpu, nvml: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "power_w": lambda gpu, nvml: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,  # NVML gives mW
    "sm_clock_hz": lambda gpu, nvml: nvml.nvmlDeviceGetClockInfo(gpu, 1) * 1e6,  # NVML_CLOCK_SM; NVML gives MHz
    "temperature_c": lambda gpu, nvml: float(nvml.nvmlDeviceGetTemperature(gpu, 0)),  # NVML_TEMPERATURE_GPU
}


def read(uuid: str, nvml: Any = None) -> Readings:
    """Readings of the GPU with this UUID (NVML counts GPUs in another order than CUDA, so an index won't do).

    Never raises: without driver or library every field is None.
    """
    library = open_library(nvml)
    if isinstance(library, str):
        return Readings(reasons=dict.fromkeys(("driver", *_QUESTIONS), library))
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    try:
        driver = versions(library).get("driver")
        if driver is None:
            reasons["driver"] = "the driver does not say its version"
        gpu = handle(library, whole(uuid))
        if isinstance(gpu, Refusal) and gpu.code == NOT_FOUND:  # torch names a GPU and a part of one alike
            gpu = handle(library, whole(uuid).replace("GPU-", "MIG-", 1))
        for name, question in _QUESTIONS.items():
            answer = gpu
            if not isinstance(gpu, Refusal):
                with gate():
                    answer = library.ask(partial(question, gpu))
            if isinstance(answer, Refusal):
                reasons[name] = answer.words
            elif not metric(name).lowest <= answer <= metric(name).highest:
                reasons[name] = f"the driver said {answer:g} {metric(name).unit}, which can't be"
            else:
                values[name] = answer
    finally:
        library.close()
    return Readings(driver, **values, reasons=reasons)
