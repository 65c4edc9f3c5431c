"""`torch.simgpu`: the functions that torch itself and training scripts ask a device for."""

from __future__ import annotations

import types
from typing import Any

import torch

from gpututor.simgpu import files, making, memory_calls, rng, streams
from gpututor.simgpu.graphs import callables as graphed_callables
from gpututor.simgpu.graphs import graphs
from gpututor.simgpu.memory import usable_bytes
from gpututor.simgpu.precision import amp
from gpututor.simgpu.private import asked
from gpututor.simgpu.session import current, thread


class DeviceProperties:
    """What `torch.simgpu.get_device_properties()` gives; the fields are CUDA's."""

    def __init__(self) -> None:
        card = current.session.machine.card
        major, _, minor = card.compute_capability.partition(".")
        self.name = f"{card.name} (simulated)"
        self.total_memory = usable_bytes(card)
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


def bf16_supported(*_: Any) -> bool:
    """Whether the card's tensor cores take bfloat16."""
    return current.session.machine.card.peak("bf16") is not None


def build() -> types.ModuleType:
    """The module that becomes `torch.simgpu`."""
    module = types.ModuleType("torch.simgpu", __doc__)
    for name, value in {
        **memory_calls.FUNCTIONS,
        "OutOfMemoryError": torch.OutOfMemoryError,
        "Stream": streams.Stream,
        "Event": streams.Event,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "stream": streams.StreamContext,
        "StreamContext": streams.StreamContext,
        "ExternalStream": streams.ExternalStream,
        "CUDAGraph": graphs.CUDAGraph,
        "Graph": graphs.CUDAGraph,
        "graph": graphs.graph,
        "graph_pool_handle": graphs.graph_pool_handle,
        "make_graphed_callables": graphed_callables.make_graphed_callables,
        "synchronize": streams.synchronize,
        "device": device,
        asked.DEVICE_GUARD: device,
        "set_device": set_device,
        "current_device": lambda: thread.card,
        "device_count": lambda: current.session.machine.n_cards,
        "custom_device_index": streams.card_of,
        asked.GET_DEVICE_INDEX: streams.card_of,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        asked.LAZY_INIT: lambda: None,
        asked.IN_BAD_FORK: files.in_bad_fork,
        "is_current_stream_capturing": graphs.is_current_stream_capturing,
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
        "is_bf16_supported": bf16_supported,
        "get_device_properties": lambda device=None: DeviceProperties(),
        "get_device_name": lambda device=None: DeviceProperties().name,
        "get_device_capability": lambda device=None: (DeviceProperties().major, DeviceProperties().minor),
    }.items():
        setattr(module, name, value)
    rng.add_to(module)
    making.add_to(module)
    amp.build(module)
    return module
