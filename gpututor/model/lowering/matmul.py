"""Matrix products as cuBLAS runs them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gpututor.model.costs.rates import power_of_two_in
from gpututor.model.kernels import Gemm
from gpututor.model.lowering.shape import Rule, short_name, tensor, walk
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta


def row_elements(meta: TensorMeta) -> int:
    """Elements from one row of the stored matrix to the next, whichever way it is transposed.

    >>> row_elements(TensorMeta((3, 5), (5, 1))), row_elements(TensorMeta((5, 3), (1, 5)))
    (5, 5)
    """
    steps = [s for s, size in zip(meta.stride[-2:], meta.shape[-2:], strict=True) if size > 1 and s > 1]
    return max(steps, default=meta.shape[-1])


def product(call: OpCall, a: TensorMeta, b: TensorMeta, *extra: TensorMeta) -> tuple[KernelSpec, ...]:
    """The product of the last two dimensions of `a` and `b`; `extra` tensors are added in the same kernel."""
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = prod(a.shape[:-2])
    out_bytes = batch * m * n * a.itemsize
    if 0 in (m, n, batch):
        return ()
    if k == 0:
        return walk("fill", batch * m * n, out_bytes)
    moved_bytes = a.n_bytes + b.n_bytes + out_bytes + sum(meta.n_bytes for meta in extra)
    aligned = power_of_two_in(row_elements(a), row_elements(b), n)
    return (Gemm(short_name(call), m, n, k, moved_bytes, a.number_format, batch, call.tf32, aligned),)


def _plain(call: OpCall) -> OpCost:
    return OpCost(HostKind.GEMM, product(call, tensor(call, 0), tensor(call, 1)))


def _added(call: OpCall) -> OpCost:
    """The bias or sum is added by the same kernel, as cuBLASLt's epilogue does."""
    return OpCost(HostKind.GEMM, product(call, tensor(call, 1), tensor(call, 2), tensor(call, 0)))


def _of_bytes(call: OpCall) -> OpCost:
    """A product of 8-bit numbers; its sums are written as 32-bit ones."""
    a, b = tensor(call, 0), tensor(call, 1)
    moved_bytes = a.n_bytes + b.n_bytes + sum(out.n_bytes for out in call.outs)
    specs = (replace(s, moved_bytes=moved_bytes) if isinstance(s, Gemm) else s for s in product(call, a, b))
    return OpCost(HostKind.GEMM, tuple(specs))


def _matrix_vector(call: OpCall) -> OpCost:
    a, v = tensor(call, 0), tensor(call, 1)
    column = TensorMeta((v.numel, 1), (1, 1), v.dtype)
    return OpCost(HostKind.GEMM, product(call, a, column))


def _dot(call: OpCall) -> OpCost:
    a, b = tensor(call, 0), tensor(call, 1)
    return OpCost(HostKind.GEMM, walk("dot", a.numel, a.n_bytes + b.n_bytes, 2 * a.numel, a.number_format))


def _linear(call: OpCall) -> OpCost:
    """`linear` as a whole: the weight lies transposed."""
    x, w = tensor(call, 0), tensor(call, 1)
    rows = prod(x.shape[:-1])
    flat = TensorMeta((rows, x.shape[-1]), (x.shape[-1], 1), x.dtype)
    turned = TensorMeta((w.shape[1], w.shape[0]), (w.stride[1], w.stride[0]), w.dtype)
    bias = [b for b in call.args[2:3] if isinstance(b, TensorMeta)]
    return OpCost(HostKind.GEMM, product(call, flat, turned, *bias))


RULES: dict[str, Rule] = {
    "aten.mm": _plain,
    "aten.bmm": _plain,
    "aten.addmm": _added,
    "aten.addmm_": _added,
    "aten.baddbmm": _added,
    "aten.baddbmm_": _added,
    "aten.mv": _matrix_vector,
    "aten.dot": _dot,
    "aten.vdot": _dot,
    "aten.linear": _linear,
    "aten._int_mm": _of_bytes,
}
