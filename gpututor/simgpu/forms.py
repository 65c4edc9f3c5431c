"""What the simulated device knows of a tensor without looking at its numbers."""

from __future__ import annotations

from typing import Any

import torch

from gpututor.model.spec import TensorMeta

DEVICE_NAME = "simgpu"
DTYPE_NAME = {
    dtype: str(dtype).removeprefix("torch.")
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.complex64,
        torch.complex128,
        torch.complex32,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.float8_e4m3fn,
        torch.float8_e4m3fnuz,
        torch.float8_e5m2,
        torch.float8_e5m2fnuz,
    )
}

WHOLE_KEPT = 1 << 20
"""Whole numbers and booleans still computed with numerics off: enough for the token ids or the mask of a batch,
and little to compute beside a simulated step."""

FRACTIONS_KEPT = 32
"""Numbers with a fraction that are: a loss scale, a step counter, the drop rates of a network's layers."""


class Form:
    """Size, strides, dtype and device of a tensor. Equal forms are one object, so they compare by identity."""

    __slots__ = ("detached", "device", "dtype", "kept", "made_of", "n_bytes", "outline", "size", "stride")

    tensor_class: type  # set by tensor.py, which needs forms first

    def __init__(self, size: torch.Size, stride: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        self.size, self.stride, self.dtype, self.device = size, stride, dtype, device
        self.n_bytes = size.numel() * dtype.itemsize
        whole = not (dtype.is_floating_point or dtype.is_complex)
        self.kept = size.numel() <= (WHOLE_KEPT if whole else FRACTIONS_KEPT)  # with numerics off, see known.py
        self.outline = TensorMeta(tuple(size), tuple(stride), DTYPE_NAME.get(dtype, str(dtype)))
        self.detached: Any = None  # the plan of aten.detach, which autograd calls more often than any other op
        strides = (None, None) if stride == plain_strides(size) else (stride, 0)  # plain ones torch finds sooner itself
        # what torch makes a wrapper from
        self.made_of = (self.tensor_class, size, *strides, None, dtype, torch.strided, device)


def plain_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a tensor that torch makes when it is told only a size.

    >>> plain_strides((2, 3, 4)), plain_strides((2, 0, 4)), plain_strides(())
    ((12, 4, 1), (4, 4, 1), ())
    """
    strides, stride = [], 1
    for n in reversed(size):
        strides.append(stride)
        stride *= max(1, n)
    return tuple(reversed(strides))


_forms: dict[tuple[torch.Size, tuple[int, ...], torch.dtype, int], Form] = {}
_devices: dict[int, torch.device] = {}


def device_of(index: int) -> torch.device:
    """The torch device of simulated GPU `index`."""
    known = _devices.get(index)
    if known is None:
        known = _devices[index] = torch.device(DEVICE_NAME, index)
    return known


def form_of(size: torch.Size, stride: tuple[int, ...], dtype: torch.dtype, index: int = 0) -> Form:
    """The one form with these properties."""
    key = (size, stride, dtype, index)
    form = _forms.get(key)
    if form is None:
        form = _forms[key] = Form(size, stride, dtype, device_of(index))
    return form
