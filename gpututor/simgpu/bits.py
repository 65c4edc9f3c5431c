"""Conjugates and negatives that are taken only when a tensor is read: torch marks the tensor with a bit.

`x.conj()` is a view on the card as on CUDA; the op that reads it may run a kernel first to carry it out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpututor.simgpu.forms import Form
from gpututor.simgpu.private.tensors import set_conj, set_neg

_SET: dict[str, Callable[[torch.Tensor, bool], None]] = {
    "is_conj": set_conj,
    "is_neg": set_neg,
}


class LazyForm(Form):
    """The form of a tensor with such bits; another object than the plain form, so plans don't mix them up."""

    __slots__ = ("bits",)

    def __init__(self, plain: Form, bits: tuple[str, ...]) -> None:
        super().__init__(plain.size, plain.stride, plain.dtype, plain.device)
        self.bits = bits


_lazy_forms: dict[tuple[Form, tuple[str, ...]], LazyForm] = {}


def form_with_bits(plain: Form, bits: tuple[str, ...]) -> Form:
    """The one form like `plain` with these bits."""
    if not bits:
        return plain
    return _lazy_forms.setdefault((plain, bits), LazyForm(plain, bits))


def bits_of(t: torch.Tensor) -> tuple[str, ...]:
    """Which of "is_conj" and "is_neg" are still to be done."""
    return tuple(name for name in _SET if getattr(t, name)())


def mark(t: torch.Tensor, form: Form) -> torch.Tensor:
    """The tensor, with torch told what its form still has to do."""
    if isinstance(form, LazyForm):
        for name in form.bits:
            _SET[name](t, True)
    return t
