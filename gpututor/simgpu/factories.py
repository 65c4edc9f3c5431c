"""Ops that need a kernel of the device's own: those without a tensor argument, and a few that torch would take apart.

They are registered one by one, since torch's boxed fallback refuses Python while a user's dispatch mode is
active; the fallback stays for whatever is not in the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.dispatch import compute_and_plan, enter
from gpututor.simgpu.private.operators import COPY_FROM, ITEM
from gpututor.simgpu.session import current
from gpututor.simgpu.special import copy_in, values
from gpututor.simgpu.tensor import SimTensor

DIRECT = (
    "empty.memory_format",
    "empty_strided",
    "fill_.Scalar",
    "zero_",
    "lift_fresh",
    "uniform_",
    "normal_",
    "random_",
    "random_.from",
    "random_.to",
    "eye.m_out",
    "eye.out",
    "linspace.out",
    "randperm.generator_out",
    "triu_indices",
    "tril_indices",
    # ops that CPU and CUDA run whole, and that torch would take apart for any other device
    "silu_backward",
    "mish_backward",
    "native_channel_shuffle",
)
EMPTY, CLEAR = torch.ops.aten.empty.memory_format, torch.ops.aten.zero_.default
_aten = torch.library.Library("aten", "IMPL")
_all = torch.library.Library("_", "IMPL")


def register_factories() -> None:
    """Make `torch.zeros(…, device="simgpu")` and its relatives reach us."""
    for name in DIRECT:
        base, _, overload = name.partition(".")
        _aten.impl(name, _direct(getattr(getattr(torch.ops.aten, base), overload or "default")), "PrivateUse1")
    _aten.impl(ITEM, _direct(ITEM), "PrivateUse1")  # torch.tensor([x, y]) reads where the tensor class is passed by
    _aten.impl(COPY_FROM, copy_from, "PrivateUse1")
    _aten.impl("zeros", zeros, "PrivateUse1")
    _aten.impl("arange.start_step", arange, "PrivateUse1")
    _aten.impl("arange.start", arange, "PrivateUse1")
    _aten.impl("arange", lambda end, **k: arange(0, end, **k), "PrivateUse1")
    _all.fallback(lambda op, *a, **k: enter(op, a, k), dispatch_key="PrivateUse1")


def _direct(op: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: enter(op, args, kwargs)


def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    """Reached inside `torch.tensor(…, device="simgpu")`, where the tensor class is passed by.

    Numbers from the host come in a copy that the host waits for, as with CUDA: torch makes a tensor on the CPU and
    moves it. Source: pytorch/pytorch torch/csrc/utils/tensor_new.cpp, internal_new_from_data.
    """
    if current.session.remote is not None:
        return current.session.remote.copy_from(source, target)
    if type(target) is SimTensor:
        if type(source) is not SimTensor:
            copy_in(
                current.session, "copy to the GPU", source, target.form.n_bytes, non_blocking, target.form.device.index
            )
        if target.host is not None:
            target.host.copy_(values(source, "copying"))
    else:
        target.copy_(values(source, "copying to the host"))
    return target


def zeros(size: Any, **kwargs: Any) -> Any:
    """Memory, then a kernel that clears it: what torch does itself, with one way less into Python and back."""
    made = enter(EMPTY, (size,), kwargs)
    return enter(CLEAR, (made,), {})


def arange(
    start: Any, end: Any, step: Any = 1, *, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any
) -> Any:
    """Numbers from `start` to before `end`; floats decide the length, so nothing is remembered."""
    op = torch.ops.aten.arange.start_step
    kwargs = {"dtype": dtype, "device": device or torch.device("simgpu")}
    watch = current.session.watch
    if watch is None:
        return compute_and_plan(None, op, (start, end, step), kwargs)
    return watch.run(lambda *call: compute_and_plan(None, *call), op, (start, end, step), kwargs)
