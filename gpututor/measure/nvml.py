"""A few readings of one NVIDIA GPU through NVML; what can't be read is None, with the reason beside it.

Each value is asked for on its own, so that one that a card lacks doesn't take the others with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """The GPUs that the driver shows, without importing torch. Never raises."""
    try:
        nvml = nvml or _library()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001  # most machines that read a page have no driver
        return Gpus((), f"the NVIDIA driver does not answer ({str(error) or type(error).__name__})")
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(k) for k in range(nvml.nvmlDeviceGetCount())]
        names = tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in handles)
    except Exception as error:  # noqa: BLE001  # as above
        return Gpus((), f"the NVIDIA driver does not name its GPUs ({str(error) or type(error).__name__})")
    finally:
        nvml.nvmlShutdown()
    return Gpus(names, None if names else "the NVIDIA driver is here, and shows no GPU")


def read(uuid: str, nvml: Any = None) -> Readings:
    """Readings of the GPU with this UUID (NVML counts GPUs in another order than CUDA, so an index won't do).

    Never raises: without driver or library every field is None.
    """
    try:
        nvml = nvml or _library()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001  # whatever is missing here, the recording goes on without it
        return Readings(reasons=dict.fromkeys(_QUESTIONS, _sentence(error)))
    try:
        return _asked(nvml, uuid)
    finally:
        nvml.nvmlShutdown()


def _library() -> Any:
    import pynvml

    return pynvml


_QUESTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "driver": lambda nvml, _: _text(nvml.nvmlSystemGetDriverVersion()),
    "kernel_time_share": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100,
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,  # NVML gives mW
    "sm_clock_hz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM) * 1e6,  # NVML gives MHz
    "temperature_c": lambda nvml, gpu: float(nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
}


def _asked(nvml: Any, uuid: str) -> Readings:
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    try:
        gpu = nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")
    except Exception as error:  # noqa: BLE001  # as above
        return Readings(reasons=dict.fromkeys(_QUESTIONS, _sentence(error)))
    for name, question in _QUESTIONS.items():
        try:
            values[name] = question(nvml, gpu)
        except Exception as error:  # noqa: BLE001  # as above
            reasons[name] = _sentence(error)
    return Readings(**values, reasons=reasons)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
