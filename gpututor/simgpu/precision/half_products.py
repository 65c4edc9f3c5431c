"""Products and convolutions of float16: summed in float32 and rounded once, as tensor cores and cuBLAS do.

The processor's own kernels for float16 round elsewhere and are up to thirty times as slow as those for float32.
Source: NVIDIA, "Volta architecture white paper", tensor cores: products of FP16 are added up in FP32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gpututor.simgpu.private.tensors import function_of

aten = torch.ops.aten
SUMMED = frozenset(
    {
        aten.mm.default,
        aten.bmm.default,
        aten.addmm.default,
        aten.baddbmm.default,
        aten.convolution.default,
        aten.convolution_backward.default,
    }
)
"""The ops that this concerns; the first two arguments are tensors of one dtype."""


def function_on_cpu(op: Any) -> Callable[..., Any]:
    """What computes `op` on tensors of the CPU."""
    function: Callable[..., Any] = function_of(op)
    if op not in SUMMED:
        return function

    def compute(*args: Any, **kwargs: Any) -> Any:
        if args[1].dtype is not torch.float16:
            return function(*args, **kwargs)
        return _in(torch.float16, function(*(_in(torch.float32, a) for a in args), **kwargs))

    return compute


def _in(dtype: torch.dtype, value: Any) -> Any:
    """Tensors in another dtype, one by one in a tuple; the rest as it is."""
    if type(value) is tuple:
        return tuple(_in(dtype, each) for each in value)
    return value.to(dtype) if isinstance(value, torch.Tensor) else value
