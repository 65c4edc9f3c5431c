"""Asks a fresh torch, in a child process: importing it takes seconds, and a first kernel may take minutes.

It tells what it knows after each stage, so that a stage which never ends doesn't take the others with it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gpututor.doctor.facts import Switches

RUN, LOOK = "run", "look"


def ask_torch(tell: Callable[[dict[str, Any]], None], how_far: Callable[[], str]) -> None:
    """Tell fields of `facts.Torch` stage by stage. Never raises.

    `how_far` returns when the GPU may be asked for: RUN if a kernel may run there too. The GPU comes last, since a CUDA
    context of ours would look like another program to whoever asks the driver meanwhile.
    """
    began_s = time.perf_counter()
    try:
        import torch
    except Exception as error:  # noqa: BLE001  # a missing library raises OSError, a broken install anything
        tell({"error": f"{type(error).__name__}: {error}"})
        return
    try:
        tell({"import_s": time.perf_counter() - began_s, **_built(torch)})
        may_run = how_far() == RUN
        seen = _seen(torch)
        tell(seen)
        if seen["available"]:
            _tell_gpus(torch, tell, may_run)
    except Exception as error:  # noqa: BLE001  # a broken driver may make any of torch's questions raise
        tell({"why_not": f"{type(error).__name__}: {error}"})


def _tell_gpus(torch: Any, tell: Callable[[dict[str, Any]], None], may_run: bool) -> None:
    gpus: list[dict[str, Any]] = []
    for index in range(torch.cuda.device_count()):
        gpus.append(_device(torch, index))
        tell({"gpus": gpus})
    for index in range(len(gpus) if may_run else 0):
        gpus[index] |= _first_kernel(torch, index)
        tell({"gpus": gpus})


def switches_of(torch: Any) -> Switches:
    """The settings of the running process that cost time."""
    return Switches(
        anomaly=bool(torch.is_anomaly_enabled()),
        deterministic=bool(torch.are_deterministic_algorithms_enabled()),
        cudnn_deterministic=bool(torch.backends.cudnn.deterministic),
        cudnn_benchmark=bool(torch.backends.cudnn.benchmark),
        cudnn_enabled=bool(torch.backends.cudnn.enabled),
    )


def _built(torch: Any) -> dict[str, Any]:
    """What the wheel is, and how it is set; touches no GPU."""
    cudnn = torch.backends.cudnn.version() if torch.version.cuda else None
    return {
        "version": str(torch.__version__),
        "file": torch.__file__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "xpu": getattr(torch.version, "xpu", None),
        "cudnn": None if cudnn is None else str(cudnn),
        "n_threads": torch.get_num_threads(),
        "switches": asdict(switches_of(torch)),
    }


def _seen(torch: Any) -> dict[str, Any]:
    """Whether torch can use a GPU, and torch's own words if it can't."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = bool(torch.cuda.is_available())
    why_not = None
    if not available:
        why_not = "; ".join(str(one.message) for one in caught) or _error_of(torch.cuda.init)
    return {
        "available": available,
        "why_not": why_not,
        "architectures": list(torch.cuda.get_arch_list()) if available else [],
        "other": _other(torch),
    }


def _error_of(action: Callable[[], object]) -> str | None:
    try:
        action()
    except Exception as error:  # noqa: BLE001  # torch raises AssertionError, RuntimeError and their like
        return str(error)
    return None


def _other(torch: Any) -> str | None:
    """The kind of accelerator that isn't torch.cuda, if torch finds one: "mps" or "xpu"."""
    if getattr(torch, "accelerator", None) is None or not torch.accelerator.is_available():
        return None
    kind = str(torch.accelerator.current_accelerator().type)
    return None if kind == "cuda" else kind


def _device(torch: Any, index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    return {
        "index": index,
        "name": str(properties.name),
        "capability": f"{properties.major}.{properties.minor}",
        "uuid": None if getattr(properties, "uuid", None) is None else str(properties.uuid),
        "memory_bytes": int(properties.total_memory),
    }


def _first_kernel(torch: Any, index: int) -> dict[str, Any]:
    """One sum on the card, from the wish to the number: context, code and launch."""
    began_s = time.perf_counter()
    try:
        right = float(torch.ones(8, device=f"cuda:{index}").sum()) == 8.0
    except Exception as error:  # noqa: BLE001  # "no kernel image", out of memory, device busy …
        return {"error": str(error).partition("\n")[0]}
    return {"kernel_s": time.perf_counter() - began_s, "error": None if right else "a sum of eight ones is not 8"}
