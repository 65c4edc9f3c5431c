"""Elementwise operators, fills and copies: each reads its tensors once and writes its results once."""

from __future__ import annotations

from gpututor.model.kernels import DeviceCopy, Stream
from gpututor.model.lowering.shape import (
    Rule,
    elements,
    filled,
    one_walk,
    read_bytes,
    short_name,
    tensor,
    walk,
    written_bytes,
)
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

# Floating point operations per element, by counting the formula; a call of exp, log, tanh, erf, sin or a root counts
# as one. Operators that only move or compare count none.
FLOP_PER_ELEMENT: dict[str, int] = {
    **dict.fromkeys("add add_ sub sub_ rsub mul mul_ div div_ neg neg_ abs exp exp_ log log_ sqrt sqrt_".split(), 1),
    **dict.fromkeys("rsqrt reciprocal tanh tanh_ sin cos erf pow pow_ square relu relu_ clamp clamp_".split(), 1),
    **dict.fromkeys("clamp_min clamp_min_ clamp_max maximum minimum threshold_backward leaky_relu".split(), 1),
    **dict.fromkeys(
        "leaky_relu_ leaky_relu_backward hardtanh hardtanh_ hardtanh_backward floor log1p expm1".split(), 1
    ),
    **dict.fromkeys("addcmul addcmul_ addcdiv addcdiv_ lerp lerp_ sigmoid_backward tanh_backward".split(), 3),
    **dict.fromkeys("sigmoid sigmoid_".split(), 3),  # negate, exp, 1/(1+x) as one
    **dict.fromkeys("silu silu_ elu elu_ softplus mish hardswish hardsigmoid".split(), 4),
    **dict.fromkeys("silu_backward elu_backward softplus_backward mish_backward".split(), 6),
    "gelu": 5,  # x/2 * (1 + erf(x * c))
    "gelu_backward": 9,
}
COPY_NAMES = "copy_ _to_copy clone contiguous _copy_from _copy_from_and_resize copy"
RANDOM_NAMES = "normal_ uniform_ bernoulli_ random_ exponential_ rand randn randint arange linspace"
FILL_NAMES = "fill_ zero_ zeros zeros_like ones ones_like full full_like new_zeros new_ones new_full scalar_tensor"
# torch's fused dropout: 256 threads with 4 elements each (aten/src/ATen/native/cuda/Dropout.cu).
DROPOUT_THREADS, DROPOUT_BLOCK = 256, 1024
DROPOUT_FLOP = 2  # compare with p, scale


def _counted(name: str) -> Rule:
    flop = FLOP_PER_ELEMENT[name]
    return lambda call: one_walk(call, flop)


def copied(call: OpCall) -> OpCost:
    """A copy on the card: a plain one where layout and dtype stay, else an elementwise kernel."""
    tensors = call.tensors()
    if not call.outs or not tensors:
        return OpCost(HostKind.COPY)
    target, source = call.outs[0], tensors[-1]
    moved_bytes = source.n_bytes + target.n_bytes
    dense = (source.is_contiguous and target.is_contiguous) or source.stride == target.stride
    if dense and source.shape == target.shape and source.dtype == target.dtype and target.numel:
        return OpCost(HostKind.COPY, (DeviceCopy(short_name(call), moved_bytes),))
    kind = HostKind.CAST if short_name(call) == "_to_copy" else HostKind.COPY
    return OpCost(kind, walk(short_name(call), target.numel, moved_bytes))


def _filled(call: OpCall) -> OpCost:
    return OpCost(HostKind.LIGHT, filled(call.outs[0]) if call.outs else ())


def _random(call: OpCall) -> OpCost:
    n = elements(call)
    return OpCost(HostKind.LIGHT, walk(short_name(call), n, written_bytes(call)))


def _dropout(call: OpCall) -> OpCost:
    n = elements(call)
    moved_bytes = read_bytes(call) + written_bytes(call)
    form = tensor(call, 0).number_format
    kernel = Stream("dropout", moved_bytes, n, DROPOUT_FLOP * n, form, DROPOUT_BLOCK, DROPOUT_THREADS)
    return OpCost(HostKind.LIGHT, (kernel,) if n else ())


# cat copies up to 128 tensors with one kernel (aten/src/ATen/native/cuda/Shape.cu, CAT_ARRAY_BATCH_SIZE).
CAT_BATCH = 128


def _cat(call: OpCall) -> OpCost:
    parts = [meta for meta in call.tensors() if meta.numel]
    kernels: list[KernelSpec] = []
    for at in range(0, len(parts), CAT_BATCH):
        some = parts[at : at + CAT_BATCH]
        kernels += walk("cat", sum(m.numel for m in some), 2 * sum(m.n_bytes for m in some))
    return OpCost(HostKind.LIGHT, tuple(kernels))


def _fill_then_copy(call: OpCall) -> OpCost:
    """The gradient of a view: the whole result is zeroed, then the part that was seen is copied in."""
    source: TensorMeta = tensor(call, 0)
    return OpCost(HostKind.LIGHT, filled(call.outs[0]) + walk("copy", source.numel, 2 * source.n_bytes))


RULES: dict[str, Rule] = {
    **{f"aten.{name}": _counted(name) for name in FLOP_PER_ELEMENT},
    **{f"aten.{name}": copied for name in COPY_NAMES.split()},
    **{f"aten.{name}": _filled for name in FILL_NAMES.split()},
    **{
        f"aten.{name}": _random for name in "normal_ uniform_ bernoulli_ random_ exponential_ rand randn arange".split()
    },
    "aten.native_dropout": _dropout,
    "aten.native_dropout_backward": lambda call: one_walk(call, DROPOUT_FLOP),
    "aten.cat": _cat,
    "aten.stack": _cat,
    "aten.slice_backward": _fill_then_copy,
    "aten.select_backward": _fill_then_copy,
    "aten.constant_pad_nd": _fill_then_copy,
}
