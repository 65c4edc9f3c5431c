"""Ops whose derivative torch writes in another way for tensor classes than for plain tensors.

The values agree, their last bits don't. So these are taken whole too, and differentiated by the CPU's own rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.note import Note
from gpututor.simgpu.plans import outline
from gpututor.simgpu.whole_ops import run_whole

OPS = ("prod", "prod.dim_int")
_library = torch.library.Library("aten", "IMPL")


def _kernel(name: str) -> Callable[..., Any]:
    base, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, base), overload or "default")

    def kernel(x: Any, *args: Any, **kwargs: Any) -> Any:
        note = Note(f"aten.{base}.{overload or 'default'}", f"gpututor.{base}.backward", (outline(x),), {})
        note.called(name, (x, *args), kwargs)
        return run_whole(lambda h: (op(h, *args, **kwargs),), note, x)[0]

    return kernel


KERNELS = {name: _kernel(name) for name in OPS}


def register_exact() -> None:
    """Take these ops whole, with gradients and without."""
    for name, kernel in KERNELS.items():
        _library.impl(name, kernel, "AutogradPrivateUse1")
