"""Parameters of lazy modules, which have no size until the first batch, on their way to the card.

Torch keeps such a parameter's class by assigning its data, which can't turn a CPU tensor into one of ours. So the
parameter stays on the CPU and remembers where it belongs, and is made there when its size is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # its stub leaves it out

from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.private.modules import buffers_of, parameters_of

PLACE = "_gpututor_place"


def is_lazy(t: Any) -> bool:
    """Whether this is a parameter or buffer without a size."""
    return isinstance(t, UninitializedTensorMixin)


@contextmanager
def set_aside(module: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """Keep lazy parameters away from a move that would lead to the card, and note on each where it belongs."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (parameters_of(part), buffers_of(part))
        for table in tables:
            for name, t in table.items():
                if t is not None and is_lazy(t):
                    moved = fn(torch.empty(0, dtype=t.data.dtype))
                    if moved.device.type == DEVICE_NAME:
                        setattr(t, PLACE, (moved.device, moved.dtype))
                        kept.append((table, name, t))
    for table, name, _ in kept:
        table[name] = None
    try:
        yield
    finally:
        for table, name, t in kept:
            table[name] = t


def make_on_the_card() -> None:
    """Let a lazy parameter that belongs to the card come into being there."""
    materialize = UninitializedTensorMixin.materialize

    def made(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        place = getattr(self, PLACE, None)
        if place is None or device is not None:
            materialize(self, shape, device, dtype)
            return
        new: Any = torch.empty(shape, device=place[0], dtype=dtype or place[1])
        if isinstance(self, torch.nn.Parameter):
            new = torch.nn.Parameter(new, self.requires_grad)
        torch.utils.swap_tensors(self, new)

    UninitializedTensorMixin.materialize = made
