"""The tensor of the simulated device: a form, memory on the card, and the numbers on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gpututor.simgpu.bits import mark
from gpututor.simgpu.forms import Form, form_of
from gpututor.simgpu.memory import Block, Memory, block_of
from gpututor.simgpu.private.tensors import DisableTorchDispatch, make_wrapper_subclass, no_torch_function
from gpututor.simgpu.session import current

_make = make_wrapper_subclass


class SimTensor(torch.Tensor):
    """What `x.to("simgpu")` gives. `host` holds its values on the CPU, or None with numerics off."""

    form: Form
    host: torch.Tensor | None
    block: Block

    __torch_function__ = no_torch_function

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # replaced by dispatch.py, which needs this class first
        cls, op: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    @property
    def data(self) -> torch.Tensor:
        """The same values without history, as torch gives them."""
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined, no-any-return]

    @data.setter
    def data(self, other: torch.Tensor) -> None:
        """Take over another tensor's size, values and memory, as `p.data = x` does."""
        if type(other) is not SimTensor:
            raise TypeError(
                f"incompatible tensor type: a tensor on {self.form.device} can't take the data of one on "
                f"{other.device}; move one of them first"
            )
        torch.Tensor.data.__set__(self, other)  # type: ignore[attr-defined]
        self.form, self.host, self.block = other.form, other.host, other.block

    def __tensor_flatten__(self) -> tuple[list[str], tuple[str]]:
        """Makes Module.to keep the identity of parameters, so that tied weights stay tied."""
        return ["host"], (str(self.form.device),)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, torch.Tensor], context: Any, size: Any, stride: Any) -> SimTensor:
        return wrap(inner["host"])


Form.tensor_class = SimTensor


def new(form: Form, host: torch.Tensor | None, block: Block) -> SimTensor:
    """A tensor of this form over these values and this memory."""
    t: SimTensor = _make(*form.made_of)
    t.form, t.host, t.block = form, host, block
    return t


def new_each(forms: Sequence[Form | None], hosts: Sequence[Any], memory: Memory) -> list[Any]:
    """A tensor of each form over its values, each in memory of its own; where there is no form, the value itself.

    Raises:
        torch.OutOfMemoryError: the card's memory doesn't hold them all.
    """
    made: list[Any] = []
    for form, host in zip(forms, hosts, strict=True):
        if form is None:
            made.append(host)
        else:
            block = block_of(form.n_bytes, memory)
            t = _make(*form.made_of)
            t.form, t.host, t.block = form, host, block
            made.append(t)
    return made


def wrap(host: torch.Tensor, block: Block | None = None, index: int = 0) -> SimTensor:
    """The simulated twin of a CPU tensor, in `block` or in memory of its own."""
    form = form_of(host.size(), host.stride(), host.dtype, index)
    return new(form, host, block if block is not None else Block(form.n_bytes, current.session.memories[index]))


def host_of(t: SimTensor) -> torch.Tensor:
    """The values on the CPU; with numerics off a tensor of the same form on torch's meta device."""
    if t.host is not None:
        return t.host
    return mark(torch.empty_strided(t.form.size, t.form.stride, dtype=t.form.dtype, device="meta"), t.form)


def become(t: SimTensor, host: torch.Tensor) -> None:
    """Give `t` another size, strides or storage in place, as `t_`, `resize_` and `set_` do."""
    form = form_of(host.size(), host.stride(), host.dtype, t.form.device.index)
    with DisableTorchDispatch():
        torch.Tensor.data.__set__(t, _make(*form.made_of))  # type: ignore[attr-defined]
    if form.n_bytes != t.form.n_bytes:
        t.block = Block(form.n_bytes, current.session.memories[form.device.index])
    t.form, t.host = form, host if host.device.type != "meta" else None
