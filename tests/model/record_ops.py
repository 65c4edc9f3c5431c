"""Notes every operator that a torch program runs, as an `OpCall`."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpututor.model.spec import OpCall, TensorMeta


class Recorded(TorchDispatchMode):
    """While it is entered, `calls` grows by one for each operator below autograd."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        outs = out if isinstance(out, tuple) else (out,)
        metas = tuple(as_meta(o) for o in outs if isinstance(o, torch.Tensor))
        self.calls.append(OpCall(str(func), tuple(as_meta(a) for a in args), (), metas))
        return out


def as_meta(value):
    """A tensor's outline; lists become tuples, anything else stays."""
    if isinstance(value, torch.Tensor):
        return TensorMeta(tuple(value.shape), tuple(value.stride()), str(value.dtype).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return tuple(as_meta(v) for v in value)
    return value
