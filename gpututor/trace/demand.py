"""What an operator asks of the card, by its recorded shapes, and which of its kernels does it.

The FLOP of matrix products, convolutions and fused attention belong to the kernels that multiply; what torch runs
beside them for the same operator (layouts turned, partial sums added) has none of its own. Several that multiply share
them: as the model lists them where there are as many, else by their time, so that they sum to the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from gpututor.errors import KernelSpecError
from gpututor.model.kernels import Attention, Conv, DeviceCopy, Gemm, Memset
from gpututor.model.lowering import lower
from gpututor.model.spec import KernelSpec
from gpututor.trace.called import call_of
from gpututor.trace.kernels import Part, kernel_class
from gpututor.trace.records import Asked

MULTIPLYING = (Gemm, Conv, Attention)
MULTIPLYING_CLASSES = frozenset({"gemm", "convolution", "attention"})
TENSORS_MOVED = {
    "aten::_softmax": 2,
    "aten::_log_softmax": 2,
    "aten::_softmax_backward_data": 3,
    "aten::_log_softmax_backward_data": 3,
    "aten::native_batch_norm": 2,
    "aten::cudnn_batch_norm": 2,
    "aten::native_batch_norm_backward": 3,
    "aten::cudnn_batch_norm_backward": 3,
}
"""Tensors of the first one's size that are read or written: input and result, or input, gradient and its gradient. The
model adds second looks, which were fitted to times and aren't bytes that a trace can vouch for."""
MOVING = frozenset(
    "cat stack index_select index index_put_ _index_put_impl_ gather embedding roll flip repeat upsample_nearest1d "
    "upsample_nearest2d upsample_nearest3d max_pool2d_with_indices topk sort".split()
)
"""Operators that only move or compare numbers, so that they have no FLOP; their bytes hang on more than shapes."""
BESIDE = re.compile(
    r"splitK|split_k|convertTensor|nchwToNhwc|nhwcToNchw|[gG]enerateWinograd|OffsetsKernel|scalePacked|SubTensorOp|"
    r"dot_do_o|convert_dq|transpose|elementwise|reduce_kernel",
)
"""Kernels that only prepare or finish; names seen in cuDNN, cuBLAS, MIOpen, FlashAttention and torch."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What an operator asks, kernel by kernel as the model lists them; without any, `why` says why."""

    parts: tuple[Part, ...] = ()
    multiplies: bool = False
    why: str | None = None


def demand_of(asked: Asked) -> Demand:
    """FLOP and bytes of an operator from its recorded shapes, each tensor read or written once."""
    if asked.name.endswith("n_convolution_backward_input"):
        return _old_gradient(asked)
    if asked.name.endswith("n_convolution_backward_weight"):
        return Demand(why=f"{asked.name}: the size of its weights isn't recorded")
    if asked.name.removeprefix("aten::") in MOVING:
        return Demand((Part(0.0),))
    try:
        call = call_of(asked)
        specs = lower(call).kernels
    except KernelSpecError as error:
        return Demand(why=f"{asked.name}: {error}")
    except (TypeError, ValueError, IndexError, ArithmeticError):
        return Demand(why=f"{asked.name}: its recorded shapes don't fit it")
    multiplying = [s for s in specs if isinstance(s, MULTIPLYING)]
    parts = tuple(_part(s) for s in multiplying or specs)
    if not call.outs and not multiplying:  # of a sum over dimensions that aren't recorded, the result is of any size
        parts = tuple(structs.replace(part, moved_bytes=None) for part in parts)
    if asked.name in TENSORS_MOVED and len(parts) == 1:
        parts = (structs.replace(parts[0], moved_bytes=float(TENSORS_MOVED[asked.name] * call.tensors()[0].n_bytes)),)
    return Demand(parts, bool(multiplying)) if parts else Demand(why=f"{asked.name}: no kernel is expected of it")


def _part(spec: KernelSpec) -> Part:
    if isinstance(spec, (DeviceCopy, Memset)):
        return Part(0.0, float(spec.moved_bytes))
    moved_bytes: int | None = getattr(spec, "moved_bytes", None)
    return Part(float(spec.flop), None if moved_bytes is None else float(moved_bytes), spec.number_format)


def _old_gradient(asked: Asked) -> Demand:
    """The gradient to a convolution's input, an operator of its own before torch 1.11: its sizes give the FLOP.

    Each number of the result's gradient meets each weight of its channel once. The input's size isn't recorded, so
    bytes aren't known.
    """
    try:
        grad, weight = call_of(Asked("aten::dot", asked.dims, asked.types, asked.strides)).args[1:3]
        flop = 2.0 * grad.numel * weight.numel / weight.shape[0]  # type: ignore[attr-defined]
        return Demand((Part(flop, None, grad.number_format),), True)  # type: ignore[attr-defined]
    except (KernelSpecError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError):
        return Demand(why=f"{asked.name}: its recorded shapes don't fit it")


def shared_out(demand: Demand, names: Sequence[str], durations_ns: Sequence[int]) -> list[Part]:
    """The part of each of an operator's kernels, which are given by name and time."""
    if not demand.parts:
        return [Part(why=demand.why)] * len(names)
    doing = list(range(len(names)))
    if demand.multiplies and len(names) > 1:
        doing = [k for k in doing if kernel_class(names[k]) in MULTIPLYING_CLASSES and not BESIDE.search(names[k])]
        if not doing:
            return [Part(why="which kernel of its operator multiplies, the names don't say")] * len(names)
    out = [Part(0.0)] * len(names)
    if len(doing) == len(demand.parts):
        for k, part in zip(doing, demand.parts, strict=True):
            out[k] = part
        return out
    whole_ns = sum(durations_ns[k] for k in doing)
    flop, moved_bytes = _sum([p.flop for p in demand.parts]), _sum([p.moved_bytes for p in demand.parts])
    for k in doing:
        share = durations_ns[k] / whole_ns if whole_ns else 1 / len(doing)
        out[k] = Part(
            None if flop is None else flop * share,
            None if moved_bytes is None else moved_bytes * share,
            demand.parts[0].number_format,
        )
    return out


def _sum(amounts: Sequence[float | None]) -> float | None:
    return None if any(a is None for a in amounts) else sum(a for a in amounts if a is not None)
