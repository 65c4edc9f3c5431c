"""CUDA's tensor types of old: `torch.cuda.FloatTensor(2, 3)`, `x.type(torch.cuda.FloatTensor)`, `isinstance(x, …)`."""

from __future__ import annotations

import functools
from typing import Any

import torch

from gpututor.simgpu.cuda.swaps import Swaps
from gpututor.simgpu.making import LEGACY
from gpututor.simgpu.tensor import SimTensor

NAMES = {dtype: f"torch.cuda.{name}" for name, dtype in LEGACY.items()}


class _TypeOfTensors(type):
    """A tensor is an instance of the type with its dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SimTensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> torch.Tensor:
        """Sizes give a tensor whose values are not set; a list, an array or a tensor gives one with these values."""
        if len(args) == 1 and not isinstance(args[0], int | torch.Size):
            return torch.as_tensor(args[0], dtype=cls.dtype).to("cuda")
        size = args[0] if args and isinstance(args[0], torch.Size) else args or (0,)
        return torch.empty(size, dtype=cls.dtype, device="cuda")

    def __str__(cls) -> str:
        return NAMES[cls.dtype]


def put_names(swaps: Swaps) -> None:
    """Let torch.cuda's types make and name tensors of the simulated card."""
    types = {}
    for name, dtype in LEGACY.items():
        types[NAMES[dtype]] = made = _TypeOfTensors(name, (), {"dtype": dtype, "__module__": "torch.cuda"})
        swaps.put(torch.cuda, name, made)
    convert, set_default = torch.Tensor.type, torch.set_default_tensor_type

    @functools.wraps(convert)
    def type_(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        wanted = types.get(dtype, dtype) if isinstance(dtype, str) else dtype
        if isinstance(wanted, _TypeOfTensors):
            return self.to("cuda", wanted.dtype, non_blocking=non_blocking)
        if wanted is None and isinstance(self, SimTensor):
            return NAMES.get(self.dtype, f"torch.cuda.{self.dtype}")
        return convert(self, wanted, non_blocking=non_blocking, **kwargs)

    def set_default_tensor_type(t: Any) -> None:
        wanted = types.get(t, t) if isinstance(t, str) else t
        if isinstance(wanted, _TypeOfTensors):
            torch.set_default_dtype(wanted.dtype)
            torch.set_default_device("cuda")
        else:
            set_default(wanted)

    swaps.put(torch.Tensor, "type", type_)
    swaps.put(torch, "set_default_tensor_type", set_default_tensor_type)
