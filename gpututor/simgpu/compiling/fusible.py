"""An op that ran, as the fusion rules take it: what it is, which memory it reads and writes, and over what it walks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from gpututor.model.fusion import Node, Part
from gpututor.model.kernels import Attention, Conv, Gemm, RnnLayer, RnnStep, RowReduce, Stream
from gpututor.model.spec import HostKind, KernelSpec
from gpututor.model.tape import TapeOp
from gpututor.simgpu.private.tensors import schema_of
from gpututor.simgpu.tensor import SimTensor

LIBRARY = (Gemm, Conv, RnnStep, RnnLayer, Attention)
# Inductor calls torch's own kernels for sorting, or writes one that adds atomically; nothing is joined to either here.
# Source: torch 2.13, torch/_inductor/lowering.py (make_fallback; scatter_reduce_, index_put_impl_).
ALONE = frozenset(
    """sort argsort topk multinomial nonzero _unique2 unique_consecutive cumsum cumprod logcumsumexp cummax cummin
    scatter scatter_ scatter_add scatter_add_ index_add index_add_ index_put index_put_ _index_put_impl_
    embedding_dense_backward histc bincount""".split()
)
# These read their tensors at other places than they write, so what made those tensors can't be joined.
GATHERS = frozenset(
    """embedding index index_select gather take nll_loss_forward nll_loss2d_forward max_pool2d_with_indices avg_pool2d
    max_pool2d_with_indices_backward avg_pool2d_backward max_pool3d_with_indices roll flip
    upsample_nearest2d upsample_bilinear2d grid_sampler_2d im2col col2im""".split()
)
WRITES_ONLY = frozenset("fill_ zero_ copy_ uniform_ normal_ random_ bernoulli_ exponential_ _foreach_zero_".split())
RANDOM = frozenset("native_dropout rand randn rand_like randn_like bernoulli_ uniform_ normal_ random_".split())

Access = tuple[int, int]
_written_places: dict[Any, tuple[tuple[int, ...], tuple[str, ...]]] = {}


class Numbered:
    """Memory blocks and their numbers, in the order in which they were met; and which were met already filled.

    A block that the program lets go of is let go of here too, so that its memory serves again.
    """

    def __init__(self) -> None:
        self.numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self.n_met = 0
        self.outside: set[int] = set()

    def number(self, t: SimTensor, is_new: bool) -> int:
        """The number of the block that a tensor lies in."""
        k = self.numbers.get(t.block)
        if k is None:
            k = self.numbers[t.block] = self.n_met
            self.n_met += 1
            if not is_new:
                self.outside.add(k)
        return k

    def read(self, tensors: Iterable[SimTensor], most_bytes: int) -> tuple[Access, ...]:
        """Reads of these tensors, each of at most `most_bytes`."""
        return tuple((self.number(t, False), min(seen_bytes(t), most_bytes)) for t in tensors)

    def write(self, tensors: Iterable[SimTensor]) -> tuple[Access, ...]:
        """Writes of these tensors."""
        return tuple((self.number(t, True), seen_bytes(t)) for t in tensors)


def seen_bytes(t: SimTensor) -> int:
    """Bytes of memory that a tensor shows: an expanded dimension shows the same ones again."""
    n = t.form.dtype.itemsize
    for size, stride in zip(t.form.size, t.form.stride, strict=True):
        n *= size if stride or size == 0 else 1
    return n


def tensors_in(value: Any) -> Iterator[SimTensor]:
    """The simulated tensors in an argument or a result."""
    if type(value) is SimTensor:
        yield value
    elif isinstance(value, list | tuple):
        for v in value:
            yield from tensors_in(v)


def changed_by(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[SimTensor]:
    """The arguments into which an op writes."""
    places = _written_places.get(op)
    if places is None:
        schema = schema_of(op).arguments
        at = tuple(k for k, a in enumerate(schema) if a.alias_info is not None and a.alias_info.is_write)
        places = _written_places[op] = (at, tuple(schema[k].name for k in at))
    found = [args[k] for k in places[0] if k < len(args)] + [kwargs[n] for n in places[1] if n in kwargs]
    return list(tensors_in(found))


def nodes_of(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    outs: Any,
    entries: Sequence[TapeOp],
    memory: Numbered,
) -> list[Node]:
    """What the compiler gets of one op (None for one taken whole): nothing of a view, two nodes of some norms."""
    kernels = tuple(k for entry in entries for k in entry.kernels)
    if not kernels:
        return []
    name = entries[0].name
    changed = changed_by(op, args, kwargs) if op is not None else []
    reads = [*tensors_in(list(args)), *tensors_in(list(kwargs.values()))]
    if name in WRITES_ONLY:
        reads = [t for t in reads if all(t is not c for c in changed)]
    writes = list({id(t): t for t in [*changed, *tensors_in(outs)]}.values())
    moved_bytes = sum(k.moved_bytes for k in kernels if not isinstance(k, RnnStep | RnnLayer))
    most_bytes = max(0, moved_bytes - sum(map(seen_bytes, writes))) or moved_bytes
    accesses = memory.read(reads, most_bytes), memory.write(writes)
    if any(isinstance(k, LIBRARY) for k in kernels):
        return [Node(name, Part.LIBRARY, *accesses, host=entries[0].host, kernels=kernels)]
    if name in ALONE:
        own = tuple(k for k in kernels if not k.name.startswith("radix") or name != "embedding_dense_backward")
        return [Node(name, Part.ALONE, *accesses, gathers=True, kernels=own)]
    rows = next((k for k in kernels if isinstance(k, RowReduce)), None)
    if rows is not None and name in TWO_NODES:
        return TWO_NODES[name](name, rows, kernels, *accesses)
    if rows is not None:
        return [_reduction(name, rows, kernels, accesses, rows_lie_together(name, args, kwargs))]
    return [_elementwise(name, kernels, accesses, writes or reads)]


def _reduction(
    name: str, rows: RowReduce, kernels: Sequence[KernelSpec], accesses: tuple[Any, Any], inner: bool
) -> Node:
    flop = sum(k.flop for k in kernels if isinstance(k, RowReduce | Stream))
    gathers = name in GATHERS
    return Node(name, Part.ROWS, *accesses, rows.n_rows, rows.row_length, inner, gathers, flop, rows.number_format)


def _elementwise(
    name: str, kernels: Sequence[KernelSpec], accesses: tuple[Any, Any], over: Sequence[SimTensor]
) -> Node:
    in_lists = name.startswith(("_foreach", "_fused", "_amp_foreach"))
    sizes = [t.form.size.numel() for t in over]
    n = sum(k.n_elements for k in kernels if isinstance(k, Stream)) if in_lists else max(sizes, default=1)
    flop = sum(k.flop for k in kernels if isinstance(k, Stream))
    form = next((k.number_format for k in kernels if isinstance(k, Stream)), "fp32")
    host = HostKind.FOREACH if in_lists else HostKind.LIGHT
    return Node(name, Part.ELEMENTS, *accesses, max(1, n), 1, True, name in GATHERS, flop, form, host)


def rows_lie_together(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a reduction runs over the last dimensions."""
    n_dims = next((len(t.form.size) for t in tensors_in(list(args))), 0)
    if name in ("native_layer_norm", "native_group_norm", "nll_loss_forward", "nll_loss2d_forward"):
        return True
    place = 2 if name.endswith("_backward_data") or "norm" in name else 1
    dims = args[place] if len(args) > place else kwargs.get("dim")
    if dims is None or dims == []:
        return True
    chosen = sorted(d % max(1, n_dims) for d in (dims if isinstance(dims, list | tuple) else [dims]))
    return chosen == list(range(n_dims - len(chosen), n_dims))


# --- norms that are two kernels or more -------------------------------------------------------------------------


def _layer_norm_backward(
    name: str, rows: RowReduce, kernels: Sequence[KernelSpec], reads: tuple[Access, ...], writes: tuple[Access, ...]
) -> list[Node]:
    """The input's gradient goes by row, the parameters' by column."""
    n, length, form = rows.n_rows, rows.row_length, rows.number_format
    to_input = Node(name, Part.ROWS, reads, writes[:1], n, length, True, False, rows.flop, form)
    if len(writes) == 1:
        return [to_input]
    flop = sum(k.flop for k in kernels[1:] if isinstance(k, RowReduce))
    return [to_input, Node(name, Part.ROWS, reads[:2], writes[1:], length, n, False, False, flop, form)]


def _batch_norm(
    name: str, rows: RowReduce, kernels: Sequence[KernelSpec], reads: tuple[Access, ...], writes: tuple[Access, ...]
) -> list[Node]:
    """Sums by channel first, then all elements; both ways."""
    backward = name.endswith("_backward")
    n_big = 2 if backward else 1
    flop, form = rows.flop // 2, rows.number_format
    by_channel = Node(
        name, Part.ROWS, reads[:n_big], writes[1:], rows.n_rows, rows.row_length, False, False, flop, form
    )
    small = tuple((tensor, 0) for tensor, _ in writes[1:])
    over_all = Node(name, Part.ELEMENTS, (*reads, *small), writes[:1], rows.n_rows * rows.row_length, flop=flop)
    return [by_channel, over_all]


TWO_NODES = {
    "native_layer_norm_backward": _layer_norm_backward,
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "native_batch_norm_backward": _batch_norm,
    "cudnn_batch_norm_backward": _batch_norm,
}
