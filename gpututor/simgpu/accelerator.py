"""`torch.accelerator` for the simulated GPU: torch's own functions ask C++, which knows neither streams nor cards."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu import streams
from gpututor.simgpu.graphs import graphs
from gpututor.simgpu.session import current, thread


def set_device_index(device: Any) -> None:
    """Make a card the current one of this thread."""
    thread.card = streams.card_of(device)


class device_index:  # torch's name
    """`with torch.accelerator.device_index(1):` makes a card the current one meanwhile; None changes nothing."""

    def __init__(self, device: Any) -> None:
        self.card = None if device is None else streams.card_of(device)
        self._before = 0

    def __enter__(self) -> None:
        self._before = thread.card
        if self.card is not None:
            thread.card = self.card

    def __exit__(self, *_: object) -> None:
        thread.card = self._before


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """The number formats that the card computes in."""
    card = current.session.machine.card
    formats = {torch.float64, torch.float32, torch.float16, torch.int8, torch.int16, torch.int32, torch.int64}
    if card.peak("bf16") is not None:
        formats.add(torch.bfloat16)
    return {"supported_dtypes": formats | {torch.uint8, torch.bool}}


def serve() -> None:
    """Put these in the place of torch's."""
    for name, value in {
        "current_stream": streams.current_stream,
        "set_stream": streams.set_stream,
        "synchronize": streams.synchronize,
        "current_device_index": lambda: thread.card,
        "current_device_idx": lambda: thread.card,
        "set_device_index": set_device_index,
        "set_device_idx": set_device_index,
        "device_index": device_index,
        "device_count": lambda: current.session.machine.n_cards,
        "get_device_capability": get_device_capability,
        "Graph": graphs.CUDAGraph,
        "empty_host_cache": lambda: None,
    }.items():
        setattr(torch.accelerator, name, value)
    torch.accelerator.memory.empty_host_cache = lambda: None
