"""`torch.simgpu`: the functions that torch itself and training scripts ask a device for."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import torch

from gpututor.simgpu import streams
from gpututor.simgpu.forms import Memory
from gpututor.simgpu.session import current, thread


class DeviceProperties:
    """What `torch.simgpu.get_device_properties()` gives; the fields are CUDA's."""

    def __init__(self) -> None:
        card = current.session.machine.card
        major, _, minor = card.compute_capability.partition(".")
        self.name = f"{card.name} (simulated)"
        self.total_memory = card.memory_bytes
        self.multi_processor_count = card.n_sms
        self.major, self.minor = int(major), int(minor)
        self.L2_cache_size = card.l2_bytes

    def __repr__(self) -> str:
        return (
            f"DeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})"
        )


class device:
    """`with torch.simgpu.device(0):` makes a card the current one of this thread."""

    def __init__(self, which: Any) -> None:
        self.idx = streams.card_of(which)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx, thread.card = thread.card, self.idx

    def __exit__(self, *_: object) -> None:
        thread.card = self.prev_idx


def set_device(which: Any) -> None:
    """Make a card the current one of this thread."""
    thread.card = streams.card_of(which)


def memory() -> Memory:
    """The account of the card's memory."""
    return current.session.memory


def reset_peak(device: Any = None) -> None:
    """Let the peak begin anew from what is in use."""
    memory().peak_bytes = memory().in_use_bytes


def memory_stats(device: Any = None) -> dict[str, int]:
    """Bytes in use and their peak, under CUDA's names."""
    m = memory()
    return {"allocated_bytes.all.current": m.in_use_bytes, "allocated_bytes.all.peak": m.peak_bytes}


def bf16_supported(*_: Any) -> bool:
    """Whether the card's tensor cores take bfloat16."""
    return current.session.machine.card.peak("bf16") is not None


def build() -> types.ModuleType:
    """The module that becomes `torch.simgpu`."""
    module = types.ModuleType("torch.simgpu", __doc__)
    for name, value in {
        "Stream": streams.Stream,
        "Event": streams.Event,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "stream": lambda s: s if s is not None else contextlib.nullcontext(),
        "synchronize": streams.synchronize,
        "device": device,
        "_DeviceGuard": device,
        "set_device": set_device,
        "current_device": lambda: thread.card,
        "device_count": lambda: current.session.machine.n_cards,
        "custom_device_index": streams.card_of,
        "_get_device_index": streams.card_of,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "_is_in_bad_fork": lambda: False,
        "is_current_stream_capturing": lambda: False,
        # one generator serves host and device, so that results equal the CPU's: torch.manual_seed seeds it
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "initial_seed": torch.initial_seed,
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
        "is_bf16_supported": bf16_supported,
        "memory_allocated": lambda device=None: memory().in_use_bytes,
        "max_memory_allocated": lambda device=None: memory().peak_bytes,
        "memory_reserved": lambda device=None: memory().in_use_bytes,
        "max_memory_reserved": lambda device=None: memory().peak_bytes,
        "reset_peak_memory_stats": reset_peak,
        "memory_stats": memory_stats,
        "mem_get_info": lambda device=None: (
            memory().capacity_bytes - memory().in_use_bytes,
            memory().capacity_bytes,
        ),
        "empty_cache": lambda: None,
        "get_device_properties": lambda device=None: DeviceProperties(),
        "get_device_name": lambda device=None: DeviceProperties().name,
        "get_device_capability": lambda device=None: (DeviceProperties().major, DeviceProperties().minor),
    }.items():
        setattr(module, name, value)
    return module
