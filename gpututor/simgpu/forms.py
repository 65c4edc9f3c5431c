"""What the simulated device knows of a tensor without looking at its numbers, and the memory it takes."""

from __future__ import annotations

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
    )
}


class Form:
    """Size, strides, dtype and device of a tensor. Equal forms are one object, so they compare by identity."""

    __slots__ = ("device", "dtype", "n_bytes", "outline", "size", "stride")

    def __init__(self, size: torch.Size, stride: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
        self.size, self.stride, self.dtype, self.device = size, stride, dtype, device
        self.n_bytes = size.numel() * dtype.itemsize
        self.outline = TensorMeta(tuple(size), tuple(stride), DTYPE_NAME.get(dtype, str(dtype)))


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


class Memory:
    """Bytes in use on one simulated card, and their peak."""

    __slots__ = ("capacity_bytes", "card_name", "in_use_bytes", "peak_bytes")

    def __init__(self, capacity_bytes: int, card_name: str) -> None:
        self.capacity_bytes, self.card_name = capacity_bytes, card_name
        self.in_use_bytes = self.peak_bytes = 0

    def out_of_memory(self, wanted_bytes: int) -> torch.OutOfMemoryError:
        """What CUDA would say when the card is full."""
        gib = 2**30
        free = self.capacity_bytes - self.in_use_bytes
        return torch.OutOfMemoryError(
            f"simulated {self.card_name} out of memory. Tried to allocate {wanted_bytes / gib:.2f} GiB. "
            f"GPU 0 has a total capacity of {self.capacity_bytes / gib:.2f} GiB, of which "
            f"{free / gib:.2f} GiB is free. "
            f"{self.in_use_bytes / gib:.2f} GiB is in use; take a smaller batch or a card with more memory."
        )


class Block:
    """One allocation; the views of a tensor share it, and it is given back with the last of them."""

    __slots__ = ("memory", "n_bytes")

    def __init__(self, n_bytes: int, memory: Memory) -> None:
        in_use = memory.in_use_bytes + n_bytes
        if in_use > memory.capacity_bytes:
            raise memory.out_of_memory(n_bytes)
        self.n_bytes, self.memory = n_bytes, memory
        memory.in_use_bytes = in_use
        if in_use > memory.peak_bytes:
            memory.peak_bytes = in_use

    def __del__(self) -> None:
        memory = getattr(self, "memory", None)  # absent when the card was full, or at interpreter exit
        if memory is not None:
            memory.in_use_bytes -= self.n_bytes
