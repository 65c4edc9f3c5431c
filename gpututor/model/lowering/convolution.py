"""Convolutions as cuDNN runs them: one kernel for each pass, and one for the bias."""

from __future__ import annotations

from math import prod

from gpututor.model.kernels import Conv
from gpututor.model.lowering.shape import Rule, answers, argument, reduced, tensor, walk, whole
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta


def passed(call: OpCall, direction: str, x: TensorMeta, w: TensorMeta, y: TensorMeta, first: int) -> KernelSpec:
    """One pass of a convolution from `x` to `y` with weights `w`; `first` is the place of the stride argument.

    A transposed convolution is the same three passes with `x` and `y` exchanged.
    """
    if bool(argument(call, first + 3, "transposed", False)):
        x, y = y, x
        direction = {"fprop": "dgrad", "dgrad": "fprop", "wgrad": "wgrad"}[direction]
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
        channels_last=x.is_channels_last and not x.is_contiguous,
    )


def _forward(call: OpCall) -> OpCost:
    x, w, y = tensor(call, 0), tensor(call, 1), call.outs[0]
    kernels: tuple[KernelSpec, ...] = (passed(call, "fprop", x, w, y, first=3),) if y.numel else ()
    if isinstance(argument(call, 2, "bias"), TensorMeta):  # torch adds it after cuDNN, in place
        kernels += walk("add bias", y.numel, 2 * y.n_bytes, y.numel, y.number_format)
    return OpCost(HostKind.CUDNN, kernels)


def _backward(call: OpCall) -> OpCost:
    grad, x, w = tensor(call, 0), tensor(call, 1), tensor(call, 2)
    wanted = answers(argument(call, 10, "output_mask", (True, True, True)))
    kernels: tuple[KernelSpec, ...] = ()
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
