"""Results too large for the card are refused before the host computes them, so that its own memory isn't filled."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu import known
from gpututor.simgpu.memory import Memory
from gpututor.simgpu.private.tensors import schema_of

WORTH_A_LOOK_BYTES = 64 << 20
"""Below this the host can as well compute first."""


def refuse_what_cannot_fit(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], memory: Memory) -> None:
    """Find the results' sizes without computing, where they may be large.

    Raises:
        torch.OutOfMemoryError: the card can't hold them.
    """
    makes_none = any(argument.alias_info is not None for argument in schema_of(op).arguments)  # a view, or in place
    if makes_none or _at_most_bytes(args) < WORTH_A_LOOK_BYTES:
        return
    try:
        out = known.shapes(op, args, kwargs, guess=True)
    except Exception:  # what torch can't do on shapes alone is computed at once
        return
    memory.would_take(sum(o.numel() * o.element_size() for o in known.tensors((out,))))


def _at_most_bytes(args: Any) -> int:
    """No op makes more elements of these arguments than this many bytes hold."""
    most = 16
    for a in args:
        if isinstance(a, torch.Tensor):
            most *= max(1, a.numel())
        elif type(a) is int:
            most *= max(1, abs(a))
        elif type(a) is list or type(a) is tuple:
            most *= max(1, _at_most_bytes(a) // 16)
    return most
