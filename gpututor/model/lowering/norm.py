"""Normalisation, softmax and sums: kernels whose blocks work on rows.

Passes say how often a kernel goes through its main tensor, reading or writing, and how often it reads it again: a
second look at a row that was just read finds it in L2, if the rows at work fit there (costs/walk.py).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from gpututor.model.constants import group
from gpututor.model.kernels import RowReduce, Stream
from gpututor.model.lowering.shape import Rule, argument, numbers, one_walk, reduced, rows_of, short_name, tensor, whole
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

CONSTANTS = group("norm")
# One block of 128 threads a row (aten/src/ATen/native/cuda/layer_norm_kernel.cu; recorded launches on H100 agree).
LAYER_NORM_THREADS = 128
# Batch norm: one block of 512 threads for each channel, in a recorded ResNet-50 step (V100, cuDNN).
BATCH_NORM_THREADS = 512
# With channels last batch norm is another kernel of cuDNN, which asks for many numbers at a time; how many is assumed.
WIDE_NUMBERS = 16
# Layer norm reads a row for its mean and variance, then again to write it; backward the same with two tensors, and a
# second kernel sums up the parameters' gradients (layer_norm_kernel.cu).
LAYER_NORM_PASSES, LAYER_NORM_AGAIN = 2, 1
LAYER_NORM_INPUT_PASSES, LAYER_NORM_INPUT_AGAIN, LAYER_NORM_PARAMETER_PASSES = 3, 2, 2
# Softmax along rows of up to 1,024 numbers runs in one warp, which keeps the row in registers, four rows to a block
# of 128 threads; longer rows take a block each, which reads them for the maximum, for the sum and for the result,
# backward for the sum and for the result (aten/src/ATen/native/cuda/PersistentSoftmax.cuh, SoftMax.cu).
SOFTMAX_PASSES, SOFTMAX_AGAIN, SOFTMAX_BACKWARD_PASSES, SOFTMAX_BACKWARD_AGAIN = 2, 2, 3, 2
SOFTMAX_WARP_ROW, SOFTMAX_WARP_ROWS, SOFTMAX_WARP_THREADS = 1024, 4, 128
SOFTMAX_BLOCK_THREADS = 1024
# Floating point operations per element, by counting the formulas (exp and root count one each).
LAYER_NORM_FLOP, LAYER_NORM_BACKWARD_FLOP, BATCH_NORM_FLOP, BATCH_NORM_BACKWARD_FLOP = 7, 12, 7, 10
SOFTMAX_FLOP, SOFTMAX_BACKWARD_FLOP = 5, 4


def _rows(
    call: OpCall,
    x: TensorMeta,
    n_rows: int,
    passes: float,
    flop: int,
    threads: int,
    rows_per_block: int = 1,
    again: int = 0,
) -> RowReduce:
    """A kernel over rows of `x`; of `again` tensors of its size it reads each row once more."""
    length = x.numel // max(1, n_rows)
    moved_bytes = round(passes * x.n_bytes)
    name, form = short_name(call), x.number_format
    return RowReduce(
        name,
        n_rows,
        length,
        moved_bytes,
        flop * x.numel,
        form,
        rows_per_block,
        threads,
        again_bytes=again * x.n_bytes,
        row_bytes=length * x.itemsize,
    )


def _layer_norm(call: OpCall) -> OpCost:
    x = tensor(call, 0)
    n_rows = x.numel // max(1, prod(numbers(argument(call, 1), 1)))
    kernel = _rows(call, x, n_rows, LAYER_NORM_PASSES, LAYER_NORM_FLOP, LAYER_NORM_THREADS, again=LAYER_NORM_AGAIN)
    return OpCost(HostKind.NORM, (kernel,) if x.numel else ())


def _layer_norm_backward(call: OpCall) -> OpCost:
    x = tensor(call, 1)
    n_rows = x.numel // max(1, prod(numbers(argument(call, 2), 1)))
    passes, again, flop = LAYER_NORM_INPUT_PASSES, LAYER_NORM_INPUT_AGAIN, LAYER_NORM_BACKWARD_FLOP - 4
    to_input = _rows(call, x, n_rows, passes, flop, LAYER_NORM_THREADS, again=again)
    columns = x.numel // max(1, n_rows)
    moved_bytes = LAYER_NORM_PARAMETER_PASSES * x.n_bytes
    to_parameters = reduced(call, x, columns, moved_bytes, 4 * x.numel)
    return OpCost(HostKind.NORM, (to_input, *to_parameters) if x.numel else ())


def _by_channel(call: OpCall, x: TensorMeta, passes: float, flop: int) -> tuple[KernelSpec, ...]:
    """Batch norm's kernel: a block for each channel, or with channels last several for a bunch of channels."""
    if not x.numel:
        return ()
    kernel = _rows(call, x, x.shape[1], passes, flop, BATCH_NORM_THREADS)
    if _channels_last(x):
        kernel = replace(kernel, split=True, numbers_a_thread=WIDE_NUMBERS)
    return (kernel,)


def _channels_last(x: TensorMeta) -> bool:
    return x.is_channels_last and not x.is_contiguous


def _widened(kernel: KernelSpec) -> KernelSpec:
    """An elementwise kernel whose threads ask for many numbers at a time."""
    if not isinstance(kernel, Stream):
        return kernel
    return replace(kernel, elements_per_block=WIDE_NUMBERS * kernel.threads_per_block)


def _batch_norm(call: OpCall) -> OpCost:
    """Training: by channel. Evaluation: the statistics are there, so it is one elementwise kernel."""
    x = tensor(call, 0)
    if not bool(argument(call, 5, "training", True)):
        plain = one_walk(call, 4, HostKind.NORM)
        return OpCost(plain.host, tuple(_widened(k) for k in plain.kernels)) if _channels_last(x) else plain
    return OpCost(HostKind.NORM, _by_channel(call, x, CONSTANTS.batch_norm_forward_passes, BATCH_NORM_FLOP))


def _batch_norm_backward(call: OpCall) -> OpCost:
    x = tensor(call, 0)
    return OpCost(HostKind.NORM, _by_channel(call, x, CONSTANTS.batch_norm_backward_passes, BATCH_NORM_BACKWARD_FLOP))


def _group_norm(call: OpCall) -> OpCost:
    """Statistics by image and group (reads once), then an elementwise kernel (reads and writes)."""
    x = tensor(call, 0)
    n_rows = x.shape[0] * whole(call, 6, "group", 1)
    statistics = _rows(call, x, n_rows, 1, 3, BATCH_NORM_THREADS)
    return OpCost(HostKind.NORM, (statistics, *one_walk(call, 4).kernels) if x.numel else ())


def _softmax(call: OpCall, flop: int, passes: int, again: int, dim: int) -> OpCost:
    x = tensor(call, 0)
    n_rows, length = rows_of(x.shape, dim)
    if length <= SOFTMAX_WARP_ROW:
        passes_in_all = passes * CONSTANTS.softmax_warp_passes
        kernel = _rows(call, x, n_rows, passes_in_all, flop, SOFTMAX_WARP_THREADS, SOFTMAX_WARP_ROWS)
    else:
        kernel = _rows(call, x, n_rows, passes, flop, SOFTMAX_BLOCK_THREADS, again=again)
    return OpCost(HostKind.LIGHT, (kernel,) if x.numel else ())


def _softmax_forward(call: OpCall) -> OpCost:
    return _softmax(call, SOFTMAX_FLOP, SOFTMAX_PASSES, SOFTMAX_AGAIN, whole(call, 1, "dim", -1))


def _softmax_backward(call: OpCall) -> OpCost:
    passes, again = SOFTMAX_BACKWARD_PASSES, SOFTMAX_BACKWARD_AGAIN
    return _softmax(call, SOFTMAX_BACKWARD_FLOP, passes, again, whole(call, 2, "dim", -1))


def _sum(call: OpCall) -> OpCost:
    """A sum, mean, maximum, norm and the like: one read of the input, one operation per element."""
    x = tensor(call, 0)
    n_rows = max(1, call.outs[0].numel) if call.outs else 1
    moved_bytes = x.n_bytes + sum(meta.n_bytes for meta in call.outs)
    return OpCost(HostKind.LIGHT, reduced(call, x, n_rows, moved_bytes, x.numel))


def _scan(call: OpCall) -> OpCost:
    x = tensor(call, 0)
    n_rows, _ = rows_of(x.shape, whole(call, 1, "dim", -1))
    return OpCost(HostKind.LIGHT, (_rows(call, x, n_rows, 2, 1, LAYER_NORM_THREADS),) if x.numel else ())


SUMS = "sum mean amax amin max min argmax argmin prod var std var_mean norm linalg_vector_norm logsumexp any all"
SCANS = "cumsum cumprod logcumsumexp cummax cummin"

RULES: dict[str, Rule] = {
    "aten.native_layer_norm": _layer_norm,
    "aten.native_layer_norm_backward": _layer_norm_backward,
    "aten.native_batch_norm": _batch_norm,
    "aten.cudnn_batch_norm": _batch_norm,
    "aten._native_batch_norm_legit": _batch_norm,
    "aten._batch_norm_impl_index": _batch_norm,
    "aten.native_batch_norm_backward": lambda call: _batch_norm_backward(_input_first(call)),
    "aten.cudnn_batch_norm_backward": _batch_norm_backward,
    "aten.native_group_norm": _group_norm,
    "aten._softmax": _softmax_forward,
    "aten._log_softmax": _softmax_forward,
    "aten._safe_softmax": _softmax_forward,
    "aten._softmax_backward_data": _softmax_backward,
    "aten._log_softmax_backward_data": _softmax_backward,
    **{f"aten.{name}": _sum for name in SUMS.split()},
    **{f"aten.{name}": _scan for name in SCANS.split()},
}


def _input_first(call: OpCall) -> OpCall:
    """`native_batch_norm_backward` names the gradient first; both tensors have the same shape."""
    return OpCall(call.name, call.args[1:], call.kwargs, call.outs, call.tf32)
