"""Operators of aten with a leading underscore that we call or give a kernel.

Names of operators that are only compared, in lists and in the cost model, are no use of torch: one that a torch lacks
is never met.
"""

from __future__ import annotations

from typing import Any

from gpututor.simgpu.private.needing import need


def _op(name: str, purpose: str, without: str) -> Any:
    return need(f"torch.ops.aten.{name}", purpose, without)


TO_COPY = _op("_to_copy.default", "x.to(…) and x.cpu()", "nothing can be moved to the card or from it")
ITEM = _op("_local_scalar_dense.default", "x.item(), which waits for the card", "no value can be read")
COMPATIBLE = _op(
    "_has_compatible_shallow_copy_type.default",
    "what Module.to asks under inference_mode",
    "no module can be moved there",
)
COPY_FROM = _op("_copy_from.default", "numbers that torch.tensor puts on the device by itself", "it fails")
LEFT_ALIGNED = _op(
    "_nested_tensor_from_mask_left_aligned.default",
    "a TransformerEncoder's question whether it may nest its input",
    "it would nest, and fail",
)
UNIQUE = _op("_unique2.default", "x.unique(), whose size the host waits for", "the wait isn't accounted")
PACK = _op("_pack_padded_sequence.default", "packed sequences, whose lengths stay on the host", "packing fails")

SOFTMAX = _op(
    "_softmax.default", "softmax of halves in one kernel, as on CUDA", "a copy is counted that CUDA doesn't make"
)
LOG_SOFTMAX = _op("_log_softmax.default", "the same of its logarithm", "each first makes a copy in fp32")
SOFTMAX_BACKWARD = _op("_softmax_backward_data.default", "the first one's gradient", "such a softmax has none")
LOG_SOFTMAX_BACKWARD = _op("_log_softmax_backward_data.default", "the second one's gradient", "such a softmax has none")

PRODUCT_OF_BYTES = _op("_int_mm.default", "products of 8-bit numbers, which have no other name", "int8 can't be tried")

FOREACH_COPY = _op("_foreach_copy_.default", "copying many tensors in one op", "each takes a launch of its own")

# --- sparse tensors ---------------------------------------------------------------------------------------------

SPARSE_OF_PARTS = _op(
    "_sparse_coo_tensor_with_dims_and_tensors.default", "a sparse tensor over two of the device", "none can be made"
)
SPARSE_UNCHECKED = _op("_sparse_coo_tensor_unsafe.default", "its twin on the CPU", "no op on it can be computed")
INDICES = _op("_indices.default", "the device tensor that holds the indices", "sparse tensors can't be read")
VALUES = _op("_values.default", "the device tensor that holds the values", "sparse tensors can't be read")
NUMBER_OF_VALUES = _op("_nnz.default", "how many values a sparse tensor has", "x._nnz() and printing fail")
COALESCED = _op("_coalesced_.default", "noting that indices differ", "coalesce fails")
DENSE_DIMENSIONS = _op("_dimV.default", "the dimensions of each value", "x.dense_dim() fails")
SPARSE_DIMENSIONS = _op("_dimI.default", "the dimensions of the indices", "x.sparse_dim() fails")
SPARSE_OF_SIZE = _op("_sparse_coo_tensor_with_dims.default", "an empty sparse tensor", "zeros_like of one fails")
OF_THE_PAIR = (
    INDICES,
    VALUES,
    NUMBER_OF_VALUES,
    COALESCED,
    DENSE_DIMENSIONS,
    SPARSE_OF_SIZE,
    SPARSE_OF_PARTS,
)
"""Those that handle a sparse tensor's two parts as tensors, never by address."""
