"""What operators do more, or otherwise, where a program asks for deterministic algorithms.

Two things. torch.use_deterministic_algorithms also switches torch.utils.deterministic.fill_uninitialized_memory on, and
then memory that an operator asks for with `empty` is filled before it is written. And cuDNN is left aside for dilated
convolutions: torch takes its own, which goes through the batch sample by sample, unfolds each into a matrix of
columns and multiplies. Other convolutions are taken as quick as before: which algorithm cuDNN then takes isn't known.
Sources: torch.utils.deterministic's documentation; aten/src/ATen/native/Convolution.cpp, `use_cudnn` ("cudnn doesn't
support deterministic dilated convolution fully yet", plain layout only) and cuda/NaiveDilatedConvolution.cu.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gpututor.model.kernels import Gemm
from gpututor.model.lowering.shape import answers, argument, filled, numbers, reduced, tensor, walk, whole
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

EMPTY = frozenset({"aten.empty", "aten.empty_like", "aten.empty_strided", "aten.new_empty", "aten.new_empty_strided"})
FILLED = EMPTY | {
    f"aten.{name}"
    for name in (
        "convolution convolution_backward native_batch_norm cudnn_batch_norm _native_batch_norm_legit "
        "native_batch_norm_backward cudnn_batch_norm_backward native_layer_norm native_layer_norm_backward "
        "native_group_norm native_group_norm_backward"
    ).split()
}
"""Operators that ask for their results' memory with `empty`.

Source: ultralytics/ultralytics#26181 counts some 2,640 fills in a step of a network with some 300 convolutions and as
many norms, about nine for each pair; these rules make nine: one and two in a convolution's passes, three and three in a
norm's. That structured operators (sums, activations) fill nothing follows from the same count.
"""
PLACE = {"aten.convolution": 3, "aten.convolution_backward": 4}
"""Where the stride stands among the arguments; padding and dilation follow it."""


def is_dilated(call: OpCall, base: str) -> bool:
    """Whether it is a convolution with gaps between the points of its filter, in the plain layout and one group.

    >>> x, w = TensorMeta.contiguous(1, 2, 8, 8), TensorMeta.contiguous(2, 2, 3, 3)
    >>> args = (x, w, None, (1, 1), (2, 2), (2, 2), False, (0, 0), 1)
    >>> is_dilated(OpCall("aten.convolution.default", args), "aten.convolution")
    True
    """
    first = PLACE.get(base)
    if first is None or argument(call, first + 3, "transposed", False) or whole(call, first + 5, "groups", 1) > 1:
        return False
    x = tensor(call, first - 3)
    return x.is_contiguous and max(numbers(argument(call, first + 2, "dilation"), 2)) > 1


def fills(call: OpCall) -> tuple[KernelSpec, ...]:
    """A kernel for each result, which writes one value into all of it."""
    return tuple(kernel for out in call.outs for kernel in filled(out))


def dilated(call: OpCall, base: str) -> OpCost:
    """Torch's own dilated convolution, forward or backward: two kernels a sample and direction."""
    first = PLACE[base]
    x, w = tensor(call, first - 3), tensor(call, first - 2)
    out = tensor(call, 0) if base == "aten.convolution_backward" else call.outs[0]
    each = tuple(_sample(x, w, out, "forward"))
    if base == "aten.convolution":
        kernels = each * x.shape[0]
        if isinstance(argument(call, 2, "bias"), TensorMeta):
            kernels += walk("add bias", out.numel, 2 * out.n_bytes, out.numel, out.number_format)
        return OpCost(HostKind.CUDNN, kernels)
    wanted = answers(argument(call, 10, "output_mask", (True, True, True)))
    kernels = ()
    if wanted[0]:
        kernels += tuple(_sample(x, w, out, "input")) * x.shape[0]
    if wanted[1]:
        kernels += tuple(_sample(x, w, out, "weight")) * x.shape[0]
    if wanted[2]:
        channels = out.shape[1]
        kernels += reduced(call, out, channels, out.n_bytes + channels * out.itemsize, out.numel)
    return OpCost(HostKind.CUDNN, kernels)


def _sample(x: TensorMeta, w: TensorMeta, out: TensorMeta, of: str) -> Iterator[KernelSpec]:
    """The kernels for one sample: its columns are made, or folded back, and one product is taken."""
    pixels, points = prod(out.shape[2:]), x.shape[1] * prod(w.shape[2:])
    own_bytes = x.n_bytes // max(1, x.shape[0])
    columns = walk("columns", pixels * points, own_bytes + pixels * points * x.itemsize, 0, x.number_format)
    c_out, form = out.shape[1], x.number_format
    sizes = {"forward": (c_out, pixels, points), "input": (points, pixels, c_out), "weight": (c_out, points, pixels)}
    m, n, k = sizes[of]
    product = Gemm("gemm", m, n, k, (m * k + k * n + m * n) * x.itemsize, form)
    yield from ((product, *columns) if of == "input" else (*columns, product))
