"""Reading an operator's arguments, and the few ways in which its tensors become kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import TypeAlias

from gpututor.errors import KernelSpecError
from gpututor.model.kernels import RowReduce, Stream
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

Rule: TypeAlias = Callable[[OpCall], OpCost]

# Threads and elements of a block of torch's vectorized elementwise kernel: 128 threads, 4 elements each
# (aten/src/ATen/native/cuda/CUDALoops.cuh and thread_constants.h). NeuSight's table of recorded launches agrees.
THREADS = 128
ELEMENTS_PER_BLOCK = 512
REDUCE_THREADS = 512  # aten/src/ATen/native/cuda/Reduce.cuh: reduce_kernel<512, ...>


def argument(call: OpCall, index: int, name: str = "", default: object = None) -> object:
    """An argument by place, else by name, else `default`."""
    if index < len(call.args):
        return call.args[index]
    return call.kwarg(name, default) if name else default


def tensor(call: OpCall, index: int) -> TensorMeta:
    """The tensor at this place among the arguments.

    Raises:
        KernelSpecError: something else stands there.
    """
    found = argument(call, index)
    if isinstance(found, TensorMeta):
        return found
    raise KernelSpecError(f"{call.name} needs a tensor as argument {index} and got {found!r}")


def whole(call: OpCall, index: int, name: str, default: int) -> int:
    """A whole number by place or name."""
    found = argument(call, index, name, default)
    return int(found) if isinstance(found, (int, float)) else default


def numbers(value: object, length: int, default: int = 1) -> tuple[int, ...]:
    """A list argument as whole numbers, a single one repeated to `length`."""
    if isinstance(value, (int, float)):
        return (int(value),) * length
    if isinstance(value, tuple) and value:
        given = tuple(int(v) for v in value if isinstance(v, (int, float)))
        return given * length if len(given) == 1 else given
    return (default,) * length


def answers(value: object) -> tuple[bool, ...]:
    """A list of yes and no, such as a gradient's output mask."""
    return tuple(bool(v) for v in value) if isinstance(value, tuple) else ()


def read_bytes(call: OpCall) -> int:
    """Bytes of all tensors among the arguments."""
    return sum(meta.n_bytes for meta in call.tensors())


def written_bytes(call: OpCall) -> int:
    """Bytes of all results."""
    return sum(meta.n_bytes for meta in call.outs)


def product_format(metas: Iterable[TensorMeta]) -> str:
    """The number format in which a kernel over these tensors computes: that of the first floating one, else fp32."""
    return next((m.number_format for m in metas if m.dtype not in ("int64", "int32", "bool", "uint8")), "fp32")


def meeting_format(metas: Iterable[TensorMeta]) -> str:
    """The number format in which tensors of several formats meet: one fp64 tensor with dimensions makes all fp64.

    Source: PyTorch's rules of type promotion, torch.result_type.
    """
    met = tuple(metas)
    return "fp64" if any(m.dtype == "float64" and m.shape for m in met) else product_format(met)


def short_name(call: OpCall) -> str:
    """The operator's plain name: "aten.add_.Tensor" gives "add_"."""
    parts = call.name.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def elements(call: OpCall) -> int:
    """Elements that an elementwise kernel walks over: the largest result, or the largest input without results."""
    return max((m.numel for m in call.outs or call.tensors()), default=0)


def walk(
    name: str, n_elements: int, moved_bytes: int, flop: int = 0, number_format: str = "fp32"
) -> tuple[KernelSpec, ...]:
    """One elementwise kernel with torch's block size, or none where there is nothing to walk over."""
    if n_elements == 0:
        return ()
    return (Stream(name, moved_bytes, n_elements, flop, number_format, ELEMENTS_PER_BLOCK, THREADS),)


def filled(meta: TensorMeta) -> tuple[KernelSpec, ...]:
    """The kernel that writes one value into all of `meta`."""
    return walk("fill", meta.numel, meta.n_bytes)


def reduced(call: OpCall, source: TensorMeta, n_rows: int, moved_bytes: int, flop: int) -> tuple[KernelSpec, ...]:
    """The reduction of `source` to `n_rows` numbers, as torch launches it."""
    if source.numel == 0 or n_rows == 0:
        return ()
    length = -(-source.numel // n_rows)
    rows_per_block = max(1, REDUCE_THREADS // max(1, length))
    name, form = short_name(call), source.number_format
    return (RowReduce(name, n_rows, length, moved_bytes, flop, form, rows_per_block, REDUCE_THREADS, split=True),)


def one_walk(call: OpCall, flop_per_element: int = 0, host: HostKind = HostKind.LIGHT) -> OpCost:
    """One kernel that reads every tensor argument and writes every result."""
    n = elements(call)
    form = meeting_format((*call.tensors(), *call.outs))
    moved_bytes = read_bytes(call) + written_bytes(call)
    return OpCost(host, walk(short_name(call), n, moved_bytes, n * flop_per_element, form))


def rows_of(shape: tuple[int, ...], dim: int) -> tuple[int, int]:
    """How many rows there are along dimension `dim`, and their length."""
    if not shape:
        return 1, 1
    length = shape[dim]
    return prod(shape) // max(1, length), length
