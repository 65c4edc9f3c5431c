"""Pooling: each result looks at its window; neighbouring windows find their numbers in cache."""

from __future__ import annotations

from math import prod

from gpututor.model.lowering.shape import Rule, argument, filled, numbers, read_bytes, tensor, walk, written_bytes
from gpututor.model.spec import HostKind, OpCall, OpCost


def _window(call: OpCall, place: int) -> int:
    x = tensor(call, 0)
    return prod(numbers(argument(call, place, "kernel_size"), len(x.shape) - 2))


def _pooled(call: OpCall) -> OpCost:
    out = call.outs[0]
    flop = out.numel * _window(call, 1)
    moved_bytes = read_bytes(call) + written_bytes(call)
    return OpCost(HostKind.LIGHT, walk("pool", out.numel, moved_bytes, flop, out.number_format))


def _adaptive(call: OpCall) -> OpCost:
    x, out = tensor(call, 0), call.outs[0]
    return OpCost(HostKind.LIGHT, walk("pool", out.numel, x.n_bytes + out.n_bytes, x.numel, x.number_format))


def _max_backward(call: OpCall) -> OpCost:
    """The gradient is zeroed, then each result's share goes to the place that won (two launches when recorded)."""
    grad, out = tensor(call, 0), call.outs[0]
    moved_bytes = grad.n_bytes + 8 * grad.numel + out.n_bytes
    return OpCost(HostKind.LIGHT, filled(out) + walk("pool backward", out.numel, moved_bytes, grad.numel))


def _mean_backward(call: OpCall) -> OpCost:
    grad, out = tensor(call, 0), call.outs[0]
    return OpCost(HostKind.LIGHT, walk("pool backward", out.numel, grad.n_bytes + out.n_bytes, out.numel))


RULES: dict[str, Rule] = {
    "aten.max_pool2d_with_indices": _pooled,
    "aten.max_pool3d_with_indices": _pooled,
    "aten.avg_pool2d": _pooled,
    "aten.avg_pool3d": _pooled,
    "aten._adaptive_avg_pool2d": _adaptive,
    "aten._adaptive_avg_pool3d": _adaptive,
    "aten.max_pool2d_with_indices_backward": _max_backward,
    "aten.max_pool3d_with_indices_backward": _max_backward,
    "aten.avg_pool2d_backward": _mean_backward,
    "aten._adaptive_avg_pool2d_backward": _mean_backward,
}
