"""Fused scaled dot-product attention: one kernel forward, two backward."""

from __future__ import annotations

from math import prod

from gpututor.model.kernels import Attention
from gpututor.model.lowering.shape import Rule, tensor, walk
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta


def fused(call: OpCall, backward: bool) -> KernelSpec:
    """The kernel over q, k, v, whose last two dimensions are (rows, width)."""
    q, k, v = tensor(call, 0), tensor(call, 1), tensor(call, 2)
    out_bytes = prod(q.shape[:-1]) * v.shape[-1] * q.itemsize
    forward_bytes = q.n_bytes + k.n_bytes + v.n_bytes + out_bytes
    mask = next((m for m in call.tensors()[3:] if m.shape[-2:] == (q.shape[-2], k.shape[-2])), None)
    # Backward reads q, k, v, the result and its gradient, and writes three gradients.
    moved_bytes = 2 * forward_bytes if backward else forward_bytes
    return Attention(
        "attention backward" if backward else "attention",
        heads=prod(q.shape[:-2]),
        rows=q.shape[-2],
        columns=k.shape[-2],
        width=q.shape[-1],
        moved_bytes=moved_bytes + (mask.n_bytes if mask else 0),
        number_format=q.number_format,
        tf32=call.tf32,
        causal=bool(call.kwarg("causal", False)),
        backward=backward,
    )


def _forward(call: OpCall) -> OpCost:
    empty = not tensor(call, 0).numel
    return OpCost(HostKind.ATTENTION, () if empty else (fused(call, False),))


def _backward(call: OpCall) -> OpCost:
    """A kernel multiplies result and gradient row by row, then the main one runs (FlashAttention's two)."""
    q: TensorMeta = tensor(call, 0)
    if not q.numel:
        return OpCost(HostKind.ATTENTION)
    rows = walk("attention row sums", q.numel, 2 * q.n_bytes, 2 * q.numel, q.number_format)
    return OpCost(HostKind.ATTENTION, (*rows, fused(call, True)))


RULES: dict[str, Rule] = {"gpututor.attention.forward": _forward, "gpututor.attention.backward": _backward}
