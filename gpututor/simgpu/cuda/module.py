"""What `torch.cuda` and its neighbours answer while CUDA's names lead to the simulated card."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu import streams
from gpututor.simgpu.cuda.swaps import Swaps
from gpututor.simgpu.private import asked
from gpututor.simgpu.private.functions import cuda_utils
from gpututor.simgpu.session import current

CUDA_VERSION = "12.8"
"""What `torch.version.cuda` says. Source: pytorch.org, "Get Started": a toolkit that current wheels are built for."""

CUDNN_VERSION = 91002
"""What `torch.backends.cudnn.version()` says: 9.10.2. Source: the cuDNN that torch's wheels for CUDA 12.8 require."""

KEPT = frozenset({"amp", "random", "nvtx", "memory", "graphs", "sparse", "nccl", "profiler", "tunable"})
"""Submodules of torch.cuda that stay themselves; names inside them are replaced one by one."""


def put_names(swaps: Swaps) -> None:
    """Let torch.cuda, torch.backends and torch.accelerator speak of the simulated card."""
    cuda = torch.cuda
    ours = {name: value for name, value in vars(torch.simgpu).items() if not name.startswith("__")}  # type: ignore[attr-defined]
    for name, value in {**_plain(), **ours, **_different()}.items():
        if name not in KEPT:
            swaps.put(cuda, name, value)
    for module in ("random", "memory"):  # torch's own code reaches these functions by their modules
        owner = importlib.import_module(f"torch.cuda.{module}")
        for name in set(vars(owner)) & set(ours):
            if callable(ours[name]):
                swaps.put(owner, name, ours[name])
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        swaps.put(cuda.nvtx, name, _nothing)
    swaps.put(cuda.nvtx, "range", lambda *_, **__: contextlib.nullcontext())
    for name in ("start", "stop"):
        swaps.put(cuda.profiler, name, _nothing)
    _backends(swaps)
    _accelerator(swaps)


def _nothing(*_: Any, **__: Any) -> None:
    """What asks nothing of a simulated card."""


def _plain() -> dict[str, Any]:
    """Names that the device module may lack; where it has one, that one is taken."""
    return {
        "is_tf32_supported": lambda: int(current.session.machine.card.compute_capability.partition(".")[0]) >= 8,
        "get_arch_list": lambda: [f"sm_{current.session.machine.card.compute_capability.replace('.', '')}"],
        "get_gencode_flags": lambda: "",
        "ipc_collect": _nothing,
        "current_blas_handle": _nothing,
        "set_sync_debug_mode": _nothing,
        "get_sync_debug_mode": lambda: 0,
        "can_device_access_peer": lambda *_: True,
        "utilization": lambda device=None: _utilization_percent(),
        **{name: _unreadable(name) for name in ("temperature", "power_draw", "clock_rate", "list_gpu_processes")},
    }


def _different() -> dict[str, Any]:
    """Names that must be as on CUDA, whatever the device module has under them."""
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        asked.LAZY_INIT: _nothing,
        asked.LAZY_CALL: lambda function, **_: function(),
        asked.IN_BAD_FORK: lambda: False,
        asked.COUNT_BY_NVML: lambda: torch.cuda.device_count(),  # noqa: PLW0108  looked up when it is called
        asked.INITIALIZED: True,
        "device_of": device_of,
        "StreamContext": _stream_context,
        "stream": _stream_context,
        asked.UTILS: cuda_utils,
    }


def _stream_context(stream: streams.Stream | None) -> Any:
    """`with torch.cuda.stream(s):`, where None changes nothing."""
    return contextlib.nullcontext() if stream is None else stream


class device_of:
    """`with torch.cuda.device_of(x):`; one card needs no switching."""

    def __init__(self, _of: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _utilization_percent() -> int:
    """Share of the run so far with a kernel at work, as nvidia-smi's whole percents."""
    queue = current.session.player.queue
    return min(100, round(100 * queue.summed_kernel_ns / queue.host_ns)) if queue.host_ns else 0


def _unreadable(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"torch.cuda.{name} reads a sensor of a real card, and this one is simulated; "
            "torch.cuda.utilization() and memory_allocated() are there"
        )

    return refuse


def _backends(swaps: Swaps) -> None:
    """cuDNN and cuBLAS are said to be there; their switches are torch's own and stay."""
    from torch.backends import cuda, cudnn

    swaps.put(cuda, "is_built", lambda: True)
    swaps.put(cudnn, "is_available", lambda: True)
    swaps.put(cudnn, "version", lambda: CUDNN_VERSION)
    swaps.put(cudnn, "is_acceptable", lambda tensor: False)  # asked only before weights are laid out anew for cuDNN
    swaps.put(torch.version, "cuda", CUDA_VERSION)


def _accelerator(swaps: Swaps) -> None:
    """`torch.accelerator` names the device as CUDA does."""
    accelerator = torch.accelerator
    swaps.put(accelerator, "is_available", lambda: True)
    swaps.put(accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))
    swaps.put(accelerator, "device_count", lambda: torch.cuda.device_count())  # noqa: PLW0108  looked up when called
    for name in ("set_device_index", "set_device_idx"):
        swaps.put(accelerator, name, lambda device: torch.cuda.set_device(device))  # noqa: PLW0108  the same
    for name in ("current_device_index", "current_device_idx"):
        swaps.put(accelerator, name, lambda: torch.cuda.current_device())  # noqa: PLW0108  the same
