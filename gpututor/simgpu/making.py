"""Ways to make a tensor that torch gives a device in Python no hook for: pinned factories and legacy types."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.private.functions import device_constructors, find_builtin, register_builtin
from gpututor.simgpu.tensor import SimTensor

PINNABLE = tuple(
    """
    arange empty empty_like empty_strided eye full full_like linspace logspace ones ones_like rand rand_like randint
    randint_like randn randn_like randperm scalar_tensor tensor zeros zeros_like
    """.split()
)
"""Factories of torch that take `pin_memory=True`."""


def pinned(factory: Callable[..., Any]) -> Callable[..., Any]:
    """The factory, which pins its tensor by our mark instead of asking torch's C++ for pinned memory."""

    @functools.wraps(factory)
    def make(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
        made = factory(*args, **kwargs)
        return made.pin_memory() if pin_memory else made

    return make


def pin_in_factories() -> None:
    """Let `torch.empty(…, pin_memory=True)` and its relatives work."""
    device_constructors()  # is remembered by torch, and must hold the functions that modes are shown
    for name in PINNABLE:
        plain = getattr(torch, name)
        wrapped = pinned(plain)
        operator = find_builtin(plain)
        if operator is not None:
            register_builtin(wrapped, operator)  # a scripted function finds its op by the function
        setattr(torch, name, wrapped)


# --- torch.simgpu.FloatTensor and its like ----------------------------------------------------------------------

LEGACY = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ShortTensor": torch.int16,
    "CharTensor": torch.int8,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


class LegacyType(type):
    """What `torch.simgpu.FloatTensor` is: it makes tensors and answers isinstance, and has no instances of its own."""

    dtype: torch.dtype

    def __instancecheck__(cls, one: object) -> bool:
        return type(one) is SimTensor and one.form.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = DEVICE_NAME) -> torch.Tensor:
        """A tensor of this size without values, or with the values given."""
        if len(args) == 1 and not isinstance(args[0], int):
            if isinstance(args[0], torch.Size):
                return torch.empty(args[0], dtype=cls.dtype, device=device)
            if isinstance(args[0], torch.Tensor):
                return args[0].to(device, cls.dtype)
            return torch.tensor(args[0], dtype=cls.dtype, device=device)
        return torch.empty(args or 0, dtype=cls.dtype, device=device)


def add_to(module: types.ModuleType) -> None:
    """Give `torch.simgpu` its legacy types."""
    for name, dtype in LEGACY.items():
        # torch reads the whole name of a type given to Tensor.type
        facts = {"dtype": dtype, "__module__": module.__name__, "__qualname__": name}
        setattr(module, name, LegacyType(f"{module.__name__}.{name}", (), facts))
