"""The tensors that a program has on its card, by the numbers that both sides give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gpututor.simgpu.remote import wire
from gpututor.simgpu.remote.calls import number
from gpututor.simgpu.remote.wire import foul
from gpututor.simgpu.tensor import SimTensor


class Numbered:
    """Tensors by number; a number is used once and counts up."""

    def __init__(self) -> None:
        self.tensors: dict[int, SimTensor] = {}
        self.next_number = 0
        self.raw: memoryview = memoryview(b"")
        """Bytes of host tensors that came with the present frame."""
        self.broken = False
        """Whether an op has failed that nobody waited for, so that numbers may name nothing."""

    def hook(self, told: dict[str, Any]) -> Any:
        """A marked value: a tensor of the card by its number, a host tensor, a device, or what `wire.plain` knows."""
        if len(told) == 1:
            ((mark, value),) = told.items()
            if mark == "t":
                return self.known(value)
            if mark == "h":
                return wire.tensor_of(value, self.raw)
            if mark == "v":
                return torch.device("cpu") if value == -1 else torch.device("simgpu", number(value, 64))
        return wire.plain(told)

    def known(self, which: Any) -> SimTensor:
        """The tensor of this number.

        Raises:
            Foul: it was never made.
            RuntimeError: an op that was to make it has failed.
        """
        if isinstance(which, SimTensor):
            return which
        t = self.tensors.get(which) if type(which) is int else None
        if t is None:
            if type(which) is int and self.broken:
                return None  # type: ignore[return-value]  # the message is skipped, or hears of the failure
            raise foul("the number of a tensor that it doesn't have")
        return t

    def keep(self, first: int, made: Sequence[SimTensor]) -> None:
        """Give new tensors their numbers."""
        if type(first) is not int or not self.next_number <= first < 1 << 48:
            raise foul("numbers of tensors out of order")
        if len(self.tensors) + len(made) > wire.MAX_TENSORS:
            raise foul(f"more than {wire.MAX_TENSORS:,} tensors at once")
        for k, t in enumerate(made, first):
            self.tensors[k] = t
        self.next_number = first + len(made)

    def forget(self, args: list[Any]) -> None:
        """The program has let go of these tensors."""
        for which in args:
            if type(which) is int:
                self.tensors.pop(which, None)
