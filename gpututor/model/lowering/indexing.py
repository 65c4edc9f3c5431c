"""Operators that look up, scatter, sort or pick: what they move depends on the indices, not on the whole table."""

from __future__ import annotations

from gpututor.model.kernels import RowReduce
from gpututor.model.lowering.shape import (
    REDUCE_THREADS,
    Rule,
    elements,
    filled,
    rows_of,
    short_name,
    tensor,
    walk,
    whole,
    written_bytes,
)
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

# Up to this many indices an embedding's gradient needs no sorting
# (aten/src/ATen/native/cuda/Embedding.cu, embedding_dense_backward_cuda).
EMBEDDING_UNSORTED = 3072
# Sorting goes through keys and positions once for each 8 bits of the key, after a pass that counts
# (CUB's radix sort, DeviceRadixSort); each pass reads and writes.
RADIX_BITS = 8
# `topk` finds the k-th value by looking at 2 bits of the key at a time: 16 reads of an fp32 row, one more to collect;
# one block of up to 1,024 threads a row (aten/src/ATen/native/cuda/TensorTopK.cu, SortingRadixSelect.cuh).
TOPK_BITS, TOPK_THREADS = 2, 1024


def index_bytes(call: OpCall) -> int:
    """Bytes of the tensors that hold positions or masks."""
    return sum(meta.n_bytes for meta in call.tensors() if meta.dtype in ("int64", "int32", "bool"))


def looked_up(call: OpCall) -> OpCost:
    """One kernel that reads the indices and, for each result, one number of the table."""
    moved_bytes = index_bytes(call) + 2 * written_bytes(call)
    return OpCost(HostKind.LIGHT, walk(short_name(call), elements(call), moved_bytes))


def sorting(n_keys: int, itemsize: int) -> tuple[KernelSpec, ...]:
    """The kernels of a radix sort of `n_keys` keys with their 8-byte positions."""
    moved_bytes = 2 * n_keys * (itemsize + 8)
    passes = walk("radix sort", n_keys, moved_bytes) * (itemsize * 8 // RADIX_BITS)
    return walk("radix count", n_keys, n_keys * itemsize) + passes


def _embedding_backward(call: OpCall) -> OpCost:
    """The whole table's gradient is zeroed, then the used rows are added up; many indices are sorted first."""
    grad, indices, table = tensor(call, 0), tensor(call, 1), call.outs[0]
    kernels = filled(table)
    if indices.numel > EMBEDDING_UNSORTED:
        kernels += sorting(indices.numel, 8)
    moved_bytes = indices.n_bytes + 3 * grad.n_bytes
    kernels += walk("embedding backward", grad.numel, moved_bytes, grad.numel, grad.number_format)
    return OpCost(HostKind.LIGHT, kernels)


def _scattered(call: OpCall) -> OpCost:
    """Adding or writing into a tensor at given positions: reads positions and values, reads and writes the places."""
    target, floats = tensor(call, 0), [m for m in call.tensors()[1:] if m.dtype not in ("int64", "int32", "bool")]
    values = max(floats, key=lambda m: m.numel, default=target)
    moved_bytes = index_bytes(call) + 3 * values.n_bytes
    return OpCost(HostKind.LIGHT, walk(short_name(call), values.numel, moved_bytes, values.numel))


def _index_put(call: OpCall) -> OpCost:
    """With `accumulate`, positions are sorted first so that equal ones are added by one thread."""
    plain = _scattered(call)
    positions = [m for m in call.tensors()[1:] if m.dtype == "int64"]
    if positions and len(call.args) > 3 and call.args[3]:
        return OpCost(HostKind.LIGHT, sorting(max(m.numel for m in positions), 8) + plain.kernels)
    return plain


def _sort(call: OpCall) -> OpCost:
    x = tensor(call, 0)
    return OpCost(HostKind.LIGHT, sorting(x.numel, x.itemsize))


def _topk(call: OpCall) -> OpCost:
    """Selecting by row, then sorting the k that were found."""
    x = tensor(call, 0)
    n_rows, length = rows_of(x.shape, whole(call, 2, "dim", -1))
    if not x.numel:
        return OpCost(HostKind.LIGHT)
    reads = x.itemsize * 8 // TOPK_BITS + 1
    moved_bytes = reads * x.n_bytes + written_bytes(call)
    select = RowReduce("topk select", n_rows, length, moved_bytes, 0, x.number_format, 1, TOPK_THREADS)
    found: TensorMeta = call.outs[0]
    order = RowReduce("topk sort", n_rows, -(-found.numel // n_rows), 2 * written_bytes(call), 0, x.number_format, 1)
    return OpCost(HostKind.LIGHT, (select, order))


def _counted_then_picked(call: OpCall) -> OpCost:
    """Results whose size depends on the values: count, scan, pick, and the host waits to learn the size."""
    x = tensor(call, 0)
    kernels = walk("count", x.numel, x.n_bytes) + walk("pick", x.numel, x.n_bytes + written_bytes(call))
    return OpCost(HostKind.SYNC, kernels)


def _nll_loss(call: OpCall) -> OpCost:
    """One block adds up the picked log-probabilities (aten/src/ATen/native/cuda/NLLLoss2d.cu, Loss.cu)."""
    x, target = tensor(call, 0), tensor(call, 1)
    rows = target.numel
    moved_bytes = rows * (x.itemsize + target.itemsize) + written_bytes(call)
    kernel = RowReduce("nll_loss", 1, max(1, rows), moved_bytes, 2 * rows, x.number_format, 1, REDUCE_THREADS)
    return OpCost(HostKind.LIGHT, (kernel,))


def _nll_loss_backward(call: OpCall) -> OpCost:
    """The gradient is zeroed, then one number of each row is written."""
    grad, target = call.outs[0], tensor(call, 2)
    rows = target.numel
    moved_bytes = rows * (grad.itemsize + target.itemsize)
    return OpCost(HostKind.LIGHT, filled(grad) + walk("nll_loss backward", rows, moved_bytes, rows))


def _value_read(call: OpCall) -> OpCost:
    return OpCost(HostKind.SYNC)


LOOKUPS = "embedding index index_select gather take"
SCATTERS = "scatter scatter_ scatter_add scatter_add_ index_add index_add_ index_copy index_copy_ index_fill_"
PICKS = "nonzero masked_select unique_dim unique_consecutive _unique2"

RULES: dict[str, Rule] = {
    **{f"aten.{name}": looked_up for name in LOOKUPS.split()},
    **{f"aten.{name}": _scattered for name in SCATTERS.split()},
    **{f"aten.{name}": _counted_then_picked for name in PICKS.split()},
    "aten.index_put": _index_put,
    "aten.index_put_": _index_put,
    "aten._index_put_impl_": _index_put,
    "aten.embedding_dense_backward": _embedding_backward,
    "aten.sort": _sort,
    "aten.argsort": _sort,
    "aten.topk": _topk,
    "aten.nll_loss_forward": _nll_loss,
    "aten.nll_loss2d_forward": _nll_loss,
    "aten.nll_loss_backward": _nll_loss_backward,
    "aten.nll_loss2d_backward": _nll_loss_backward,
    "aten._local_scalar_dense": _value_read,
    "aten.item": _value_read,
}
