"""The memory functions of `torch.simgpu`, `torch.accelerator` and tensors, with CUDA's names and meanings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gpututor.model import allocator_report
from gpututor.simgpu.memory import Memory
from gpututor.simgpu.session import current
from gpututor.simgpu.streams import Stream, card_of
from gpututor.simgpu.tensor import SimTensor


def memory_of(device: Any = None) -> Memory:
    """The memory of a card given in any of torch's ways; the current card's by default."""
    return current.session.memories[card_of(device)]


def reset_peaks(device: Any = None) -> None:
    """Let every peak begin anew from what is in use."""
    memory = memory_of(device)
    for counts in (memory.all, memory.small, memory.large):
        counts.reset_peaks()


def reset_totals(device: Any = None) -> None:
    """Let every total begin anew from 0."""
    memory = memory_of(device)
    for counts in (memory.small, memory.large):
        counts.reset_totals()
    memory.n_retries = memory.n_full = memory.n_waits = memory.n_mallocs = memory.n_frees = 0


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that the driver has left, and the card's total."""
    memory = memory_of(device)
    return memory.free_bytes, memory.capacity_bytes


def set_fraction(fraction: float, device: Any = None) -> None:
    """Let the process take no more than this share of the card.

    Raises:
        ValueError: the share isn't between 0 and 1.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    memory = memory_of(device)
    memory.allowed_bytes = int(fraction * memory.capacity_bytes)


def nested(device: Any = None) -> dict[str, Any]:
    """The statistics as dictionaries in dictionaries."""
    found: dict[str, Any] = {}
    for name, value in allocator_report.statistics(memory_of(device)).items():
        *outer, last = name.split(".")
        inside = found
        for part in outer:
            inside = inside.setdefault(part, {})
        inside[last] = value
    return found


def empty_cache() -> None:
    """Give cached memory that no tensor uses back to the driver, on every card."""
    for memory in current.session.memories:
        memory.release_cached()


def record_stream(tensor: SimTensor, stream: Stream) -> None:
    """Keep the tensor's memory, once it is freed, until this stream is done with what it was given so far."""
    if current.session.remote is not None:
        current.session.remote.record_stream(tensor, stream)
        return
    piece = tensor.block.piece
    if piece is not None:
        tensor.block.memory.record_stream(piece, stream.stream_id)


def _asked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which asks the card where that lives in another process."""

    @functools.wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        remote = current.session.remote
        return function(*args, **kwargs) if remote is None else remote.ask_memory(name, args, kwargs)

    return ask


_HERE: dict[str, Callable[..., Any]] = {
    "memory_allocated": lambda device=None: memory_of(device).all.size,
    "max_memory_allocated": lambda device=None: memory_of(device).all.size_peak,
    "memory_reserved": lambda device=None: memory_of(device).all.reserved,
    "max_memory_reserved": lambda device=None: memory_of(device).all.reserved_peak,
    "memory_cached": lambda device=None: memory_of(device).all.reserved,
    "max_memory_cached": lambda device=None: memory_of(device).all.reserved_peak,
    "memory_stats": lambda device=None: allocator_report.statistics(memory_of(device)),
    "memory_stats_as_nested_dict": nested,
    "memory_summary": lambda device=None, abbreviated=False: allocator_report.summary(
        memory_of(device), card_of(device), abbreviated
    ),
    "memory_snapshot": lambda *_: [
        segment for k, m in enumerate(current.session.memories) for segment in allocator_report.snapshot(m, k)
    ],
    "mem_get_info": mem_get_info,
    "reset_peak_memory_stats": reset_peaks,
    "reset_max_memory_allocated": reset_peaks,
    "reset_max_memory_cached": reset_peaks,
    "reset_accumulated_memory_stats": reset_totals,
    "set_per_process_memory_fraction": set_fraction,
    "get_per_process_memory_fraction": lambda device=None: (
        1.0
        if memory_of(device).allowed_bytes is None
        else (memory_of(device).allowed_bytes or 0) / memory_of(device).capacity_bytes
    ),
    "empty_cache": empty_cache,
    "get_allocator_backend": lambda: "native",
}
FUNCTIONS = {name: _asked(name, function) for name, function in _HERE.items()}


def install() -> None:
    """Give torch.accelerator and tensors these functions; torch's own ask C++, which knows no Python device."""
    SimTensor.record_stream = record_stream  # type: ignore[method-assign, assignment]
    for name in (
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_stats",
        "empty_cache",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
    ):
        setattr(torch.accelerator, name, FUNCTIONS[name])
    if hasattr(torch.accelerator, "get_memory_info"):  # torch 2.11 and later
        torch.accelerator.get_memory_info = FUNCTIONS["mem_get_info"]
