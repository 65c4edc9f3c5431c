"""Convolutions as cuDNN runs them: one kernel for each pass, one for the bias, and copies of tensors with gaps."""

from __future__ import annotations

from math import prod

from gpututor.model.kernels import Conv
from gpututor.model.lowering.shape import Rule, answers, argument, numbers, reduced, tensor, walk, whole
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

WINOGRAD_FILTER = (3, 3)


def passed(call: OpCall, direction: str, x: TensorMeta, w: TensorMeta, y: TensorMeta, first: int) -> KernelSpec:
    """One pass of a convolution from `x` to `y` with weights `w`; `first` is the place of the stride argument.

    A transposed convolution is the same three passes with `x` and `y` exchanged.
    """
    if bool(argument(call, first + 3, "transposed", False)):
        x, y = y, x
        direction = {"fprop": "dgrad", "dgrad": "fprop", "wgrad": "wgrad"}[direction]
    rows, columns = (x if direction == "dgrad" else y).shape[2:] if single_steps(call, w, first) else (0, 0)
    return Conv(
        f"conv {direction}",
        direction,
        batch=x.shape[0],
        c_in=x.shape[1],
        c_out=y.shape[1],
        pixels_in=prod(x.shape[2:]),
        pixels_out=prod(y.shape[2:]),
        filter_taps=prod(w.shape[2:]),
        moved_bytes=x.n_bytes + w.n_bytes + y.n_bytes,
        groups=whole(call, first + 5, "groups", 1),
        number_format=x.number_format,
        tf32=call.tf32,
        channels_last=has_channels_last(x) and not x.is_contiguous,
        winograd_rows=rows,
        winograd_columns=columns,
    )


def single_steps(call: OpCall, w: TensorMeta, first: int) -> bool:
    """Whether a 3x3 filter goes over every pixel, without stride or dilation."""
    if w.shape[2:] != WINOGRAD_FILTER:
        return False
    steps = (*numbers(argument(call, first, "stride"), 2), *numbers(argument(call, first + 2, "dilation"), 2))
    return set(steps) == {1}


def has_channels_last(x: TensorMeta) -> bool:
    """Whether channels are the innermost dimension of a picture or a part of one, as torch reads it off the strides.

    >>> whole = TensorMeta.channels_last(2, 6, 8, 9)
    >>> half = TensorMeta((2, 3, 8, 9), whole.stride)
    >>> half.is_channels_last, has_channels_last(half)
    (False, True)
    """
    if len(x.shape) not in (4, 5):
        return False
    inside_out = [x.stride[dim] for dim in (1, *range(len(x.shape) - 1, 1, -1), 0)]
    return inside_out[0] == 1 and inside_out == sorted(inside_out)


def without_gaps(x: TensorMeta) -> tuple[KernelSpec, ...]:
    """The copy that torch makes before cuDNN where `x` is a slice of a larger tensor, or the same number repeated.

    Source: aten/src/ATen/native/Convolution.cpp, whose calls of cuDNN take `input.contiguous(memory_format)`.
    """
    if x.is_contiguous or x.is_channels_last:
        return ()
    return walk("contiguous", x.numel, x.n_bytes + x.numel * x.itemsize, 0, x.number_format)


def _forward(call: OpCall) -> OpCost:
    x, w, y = tensor(call, 0), tensor(call, 1), call.outs[0]
    kernels = (*without_gaps(x), passed(call, "fprop", x, w, y, first=3)) if y.numel else ()
    if isinstance(argument(call, 2, "bias"), TensorMeta):  # torch adds it after cuDNN, in place
        kernels += walk("add bias", y.numel, 2 * y.n_bytes, y.numel, y.number_format)
    return OpCost(HostKind.CUDNN, kernels)


def _backward(call: OpCall) -> OpCost:
    grad, x, w = tensor(call, 0), tensor(call, 1), tensor(call, 2)
    wanted = answers(argument(call, 10, "output_mask", (True, True, True)))
    kernels = without_gaps(grad)
    if wanted[1]:
        kernels += without_gaps(x)
    if wanted[0]:
        kernels += (passed(call, "dgrad", x, w, grad, first=4),)
    if wanted[1]:
        kernels += (passed(call, "wgrad", x, w, grad, first=4),)
    if wanted[2]:
        channels = grad.shape[1]
        kernels += reduced(call, grad, channels, grad.n_bytes + channels * grad.itemsize, grad.numel)
    return OpCost(HostKind.CUDNN, kernels)


RULES: dict[str, Rule] = {
    "aten.convolution": _forward,
    "aten.convolution_backward": _backward,
}
