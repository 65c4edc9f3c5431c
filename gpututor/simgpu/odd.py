"""Results that are no plain strided tensor: sparse ones, and conjugates and negatives still to be carried out.

None of them is remembered as a plan, so the hot path never meets one.
"""

from __future__ import annotations

from typing import Any

import torch

from gpututor.simgpu import sparse
from gpututor.simgpu.bits import bits_of, form_with_bits, mark
from gpututor.simgpu.forms import form_of
from gpututor.simgpu.memory import Block
from gpututor.simgpu.session import current
from gpututor.simgpu.tensor import SimTensor, new


def is_odd(out: Any) -> bool:
    """Whether this result of a CPU op, or one in a list of them, needs more than a form."""
    if isinstance(out, tuple | list):
        return any(map(is_odd, out))
    if not isinstance(out, torch.Tensor):
        return False
    return out.layout is not torch.strided or out.is_nested or out.is_conj() or out.is_neg()


def wrapped(op: Any, out: Any, args: tuple[Any, ...], index: int) -> Any:
    """The result on the device; a list comes back as a tuple.

    Raises:
        NotImplementedError: it is a compressed sparse or a strided nested tensor.
    """
    if isinstance(out, tuple | list):
        return tuple(wrapped(op, o, args, index) for o in out)
    if not isinstance(out, torch.Tensor):
        return out
    if out.layout is torch.sparse_coo:
        return sparse.adopt(out, index)
    if out.layout is not torch.strided:
        sparse.refuse_compressed()
    if out.is_nested:
        sparse.refuse_nested(op)
    form = form_with_bits(form_of(out.size(), out.stride(), out.dtype, index), bits_of(out))
    shared = args[0].block if args and type(args[0]) is SimTensor else None
    host = out if current.session.numerics else None
    return mark(new(form, host, shared or Block(form.n_bytes, current.session.memories[index])), form)
