"""Asks the NVIDIA driver through NVML, in a child process: a lost GPU can hang or crash the one who asks.

Each value is asked for on its own; one that a card lacks doesn't take the others with it. Nothing is set, ever.
Source: nvml.h of NVML API 13; XuehaiPan/nvitop#139 (a crash on a lost GPU).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

N_CLOCK_READINGS = 5
"""Our choice: hardware slowdown may flash for a moment when the card changes its state (nvml.h), so one won't do."""
CLOCK_READINGS_APART_S = 0.08

Question = Callable[[Any, Any], Any]
"""Takes the library and a card's handle; raises what the library raises."""


def ask_driver(
    tell: Callable[[dict[str, Any]], None], nvml: Any = None, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Tell what NVML says as plain fields of `facts.Driver`, card by card, in case one of them hangs. Never raises."""
    try:
        nvml = nvml or _library()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001  # no driver, no library, an old binding: each is a finding
        tell({"code": _code(error), "error": _sentence(error)})
        return
    try:
        _tell_all(tell, nvml, sleep)
    except Exception as error:  # noqa: BLE001  # as above
        tell({"code": _code(error), "error": _sentence(error)})
    finally:
        _quietly(nvml.nvmlShutdown)


def _library() -> Any:
    import pynvml

    return pynvml


def _tell_all(tell: Callable[[dict[str, Any]], None], nvml: Any, sleep: Callable[[float], None]) -> None:
    version = _quietly(lambda: _text(nvml.nvmlSystemGetDriverVersion()))
    tell({"version": version, "cuda": _quietly(lambda: _cuda(nvml.nvmlSystemGetCudaDriverVersion()))})
    gpus: list[dict[str, Any]] = []
    unreachable: list[dict[str, Any]] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceGetName(handle)  # a lost GPU may still give a handle
        except Exception as error:  # noqa: BLE001  # the other GPUs are asked all the same
            unreachable.append({"index": index, "code": _code(error), "words": _sentence(error)})
        else:
            gpus.append(_gpu(nvml, index, handle, sleep))
        tell({"gpus": gpus, "unreachable": unreachable})


def _gpu(nvml: Any, index: int, handle: Any, sleep: Callable[[float], None]) -> dict[str, Any]:
    fields: dict[str, Any] = {"index": index}
    reasons: dict[str, str] = {}
    questions: dict[str, Question] = {**_QUESTIONS, "clock_reasons": partial(_clock_reasons, sleep)}
    for name, question in questions.items():
        try:
            fields[name] = question(nvml, handle)
        except Exception as error:  # noqa: BLE001  # this card or driver lacks this value
            reasons[name] = _sentence(error)
    return fields | {"reasons": reasons}


def _memory_used(nvml: Any, handle: Any) -> int:
    """Bytes in use without the driver's own part, which the second version tells apart (since driver 510)."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)
    except Exception:  # noqa: BLE001  # an older driver or binding; the first version counts the driver's part too
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)


def _n_slices(nvml: Any, handle: Any) -> int:
    """How many MIG slices there are; the driver answers "not found" for a place without one."""
    n_places = nvml.nvmlDeviceGetMaxMigDeviceCount(handle)
    slice_at = nvml.nvmlDeviceGetMigDeviceHandleByIndex
    found = [_quietly(partial(slice_at, handle, k)) for k in range(n_places)]
    return sum(one is not None for one in found)


def _clock_reasons(sleep: Callable[[float], None], nvml: Any, handle: Any) -> list[int]:
    """Several readings of why the clocks are what they are; drivers before 535 know the function by its older name."""
    masks = []
    for k in range(N_CLOCK_READINGS):
        if k:
            sleep(CLOCK_READINGS_APART_S)
        try:
            masks.append(int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)))
        except Exception:  # noqa: BLE001  # the older name answers, or raises the reason
            masks.append(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)))
    return masks


def _processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    """Programs with a CUDA context or a window on this card. Costs milliseconds, which only a single look may."""
    found: dict[int, dict[str, Any]] = {}
    for running in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        try:
            processes = running(handle)
        except Exception:  # one of the two kinds may be missing
            if running is nvml.nvmlDeviceGetComputeRunningProcesses:
                raise
            continue
        for one in processes:
            found[one.pid] = {"pid": int(one.pid), "memory_bytes": one.usedGpuMemory, "name": _name(one.pid)}
    return list(found.values())


_QUESTIONS: Mapping[str, Question] = {
    "name": lambda n, h: _text(n.nvmlDeviceGetName(h)),
    "uuid": lambda n, h: _text(n.nvmlDeviceGetUUID(h)),
    "pci_address": lambda n, h: _text(n.nvmlDeviceGetPciInfo(h).busId),
    "capability": lambda n, h: ".".join(map(str, n.nvmlDeviceGetCudaComputeCapability(h))),
    "memory_bytes": lambda n, h: n.nvmlDeviceGetMemoryInfo(h).total,
    "memory_used_bytes": _memory_used,
    "kernel_time_share": lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu / 100,
    "power_w": lambda n, h: n.nvmlDeviceGetPowerUsage(h) / 1000,  # NVML gives mW
    "power_limit_w": lambda n, h: n.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
    "power_limit_default_w": lambda n, h: n.nvmlDeviceGetPowerManagementDefaultLimit(h) / 1000,
    "temperature_c": lambda n, h: float(n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)),
    "sm_clock_hz": lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM) * 1e6,  # NVML gives MHz
    "sm_clock_max_hz": lambda n, h: n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM) * 1e6,
    "persistence": lambda n, h: bool(n.nvmlDeviceGetPersistenceMode(h)),
    "ecc": lambda n, h: bool(n.nvmlDeviceGetEccMode(h)[0]),
    "n_uncorrected_errors": lambda n, h: n.nvmlDeviceGetTotalEccErrors(
        h, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC
    ),
    "remapping": lambda n, h: [int(k) for k in n.nvmlDeviceGetRemappedRows(h)],
    "mig": lambda n, h: bool(n.nvmlDeviceGetMigMode(h)[0]),
    "n_mig_slices": _n_slices,
    "compute_mode": lambda n, h: int(n.nvmlDeviceGetComputeMode(h)),
    "pcie_gen": lambda n, h: n.nvmlDeviceGetCurrPcieLinkGeneration(h),
    "pcie_gen_max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkGeneration(h),  # of card and slot together
    "pcie_width": lambda n, h: n.nvmlDeviceGetCurrPcieLinkWidth(h),
    "pcie_width_max": lambda n, h: n.nvmlDeviceGetMaxPcieLinkWidth(h),
    "display": lambda n, h: bool(n.nvmlDeviceGetDisplayActive(h)),
    "processes": _processes,
}


def _name(pid: int) -> str | None:
    """The program's name; None in a container, where the number is the host's (NVIDIA/nvidia-docker#179)."""
    import psutil  # type: ignore[import-untyped]

    try:
        return str(psutil.Process(pid).name())
    except (psutil.Error, OverflowError, ValueError):
        return None


def _quietly(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception:  # noqa: BLE001  # the answer is None, and the check that needs it says so
        return None


def _cuda(number: int) -> str:
    """CUDA's version from the driver's number, 1000 × major + 10 × minor. Source: nvml.h."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _code(error: Exception) -> int | None:
    value = getattr(error, "value", None)
    return value if isinstance(value, int) else None


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
