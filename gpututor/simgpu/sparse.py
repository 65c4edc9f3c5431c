"""Sparse tensors of the simulated GPU: torch's own, whose indices and values are device tensors.

Torch's sparse (COO) tensor is only a pair of dense tensors; the functions that make and read the pair don't
care whose they are. So layout, gradients, `coalesce`, optimizers and files are torch's own. Ops on the pair are
computed by the CPU's sparse kernels on twins over the same memory, and accounted by the rows they touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import torch

from gpututor.errors import NumericsOff
from gpututor.model.lowering import lower
from gpututor.model.spec import HostKind, OpCall, OpCost, TensorMeta
from gpututor.model.tape import Sync
from gpututor.simgpu.forms import DEVICE_NAME
from gpututor.simgpu.plans import Plan, outline, short_name
from gpututor.simgpu.private import operators
from gpututor.simgpu.private.tensors import indices_of, keys, schema_of, values_of
from gpututor.simgpu.session import Session, current, phase
from gpututor.simgpu.special import copy_in, copy_out, special
from gpututor.simgpu.tensor import SimTensor, host_of, wrap

aten = torch.ops.aten
_PAIR_KEYS = keys("SparseMeta")
_CPU_KEYS = keys("SparseCPU")

OF_THE_PAIR = tuple(
    """
    indices values is_coalesced sparse_dim dense_dim zero_ empty_like copy_sparse_to_sparse_ sparse_resize_
    sparse_resize_and_clear_ empty.memory_format
    """.split()
)
"""Torch's functions that handle the pair as tensors, never by address, as they stand for shapes alone."""
OF_THE_CPU = ("clone", "copy_")
"""The same among the CPU's functions."""


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse tensor of the device."""
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo and value.device.type == DEVICE_NAME


def among(args: tuple[Any, ...]) -> bool:
    """Whether a sparse tensor of the device is among the arguments, lists included."""
    return any(any(map(is_sparse, a)) if type(a) in (list, tuple) else is_sparse(a) for a in args)


# --- making and reading -----------------------------------------------------------------------------------------


@special(operators.SPARSE_OF_PARTS)
def make(session: Session, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sparse tensor over two device tensors; torch checks their shapes."""
    return op.redispatch(_PAIR_KEYS, *args, **{**kwargs, "device": args[3].form.device, "pin_memory": None})


def adopt(host: torch.Tensor, index: int = 0) -> torch.Tensor:
    """The device's sparse tensor with the values of a CPU one."""
    indices, values = wrap(indices_of(host), index=index), wrap(values_of(host), index=index)
    if not current.session.numerics:
        indices.host = values.host = None
    made: torch.Tensor = operators.SPARSE_OF_PARTS.redispatch(
        _PAIR_KEYS,
        host.sparse_dim(),
        host.dense_dim(),
        host.size(),
        indices,
        values,
        dtype=host.dtype,
        layout=torch.sparse_coo,
        device=values.form.device,  # what a tensor says of its device may be CUDA's name
        pin_memory=None,
        is_coalesced=host.is_coalesced(),
    )
    return made


def pair(t: torch.Tensor) -> tuple[SimTensor, SimTensor]:
    """The device tensors that hold indices and values."""
    return operators.INDICES.redispatch(_PAIR_KEYS, t), operators.VALUES.redispatch(_PAIR_KEYS, t)


def twin(value: Any, what: str) -> Any:
    """The argument on the CPU, over the same memory."""
    if type(value) is list or type(value) is tuple:
        return [twin(v, what) for v in value]
    if type(value) is SimTensor:
        return host_of(value)
    if not is_sparse(value):
        return value
    indices, values = pair(value)
    if indices.host is None or values.host is None:
        raise NumericsOff(
            f"{what} of a sparse tensor depends on its indices, and numerics are off, so there are none; "
            "open the session with numerics=True, or make the gradient dense with sparse=False"
        )
    coalesced = aten.is_coalesced.default.redispatch(_PAIR_KEYS, value)
    return operators.SPARSE_UNCHECKED(
        indices.host, values.host, value.size(), dtype=value.dtype, layout=value.layout, is_coalesced=coalesced
    )


# --- any op with a sparse tensor among its arguments ------------------------------------------------------------


def run(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The CPU's result, on the device, accounted by the rows touched.

    Raises:
        NotImplementedError: the CPU has no such op on sparse tensors; CUDA has none either, or we don't know how.
        NumericsOff: the result depends on values that are not there.
    """
    session, name = current.session, short_name(op)
    first = args[0] if args else None
    if not session.numerics and type(first) is SimTensor and name == "add_":
        account(session, op, args, ())
        return first
    twins, named = twin(list(args), name), {k: twin(v, name) for k, v in kwargs.items() if k != "device"}
    try:
        out = op(*twins, **named)
    except NotImplementedError as missing:
        raise NotImplementedError(
            f"{name} is not there for sparse tensors of the simulated GPU; make them dense first: x.to_dense(), or "
            "sparse=False where the gradient comes from an embedding"
        ) from missing
    everything = (*args, *kwargs.values())
    index = next(a.device.index for a in flat(everything) if is_sparse(a) or type(a) is SimTensor) or 0
    written = written_by(op, args, kwargs)
    if written:
        for place, changed in zip(written, written_by(op, twins, named), strict=True):
            if is_sparse(place) and values_of(changed).data_ptr() != host_of(pair(place)[1]).data_ptr():
                place.data = adopt(changed, index)
        account(session, op, everything, tuple(written))
        return None if not schema_of(op).returns else kwargs.get("out", first)
    if odd_layout(out):
        refuse_compressed()
    results = tuple(given_back(o, index) for o in (out if type(out) in (list, tuple) else (out,)))
    account(session, op, args, results)
    return results if type(out) in (list, tuple) else results[0]


def written_by(op: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The tensors that `op` changes, lists opened."""
    changed = [a for a in schema_of(op).arguments if a.alias_info and a.alias_info.is_write]
    places = {a.name: k for k, a in enumerate(schema_of(op).arguments)}
    found = [args[places[a.name]] if places[a.name] < len(args) else kwargs.get(a.name) for a in changed]
    return [t for t in flat(tuple(found)) if isinstance(t, torch.Tensor)]


def odd_layout(out: Any) -> bool:
    """Whether a CPU result has a layout that the device doesn't."""
    return isinstance(out, torch.Tensor) and out.layout not in (torch.strided, torch.sparse_coo)


def given_back(out: Any, index: int) -> Any:
    """A CPU result as the program sees it."""
    if not isinstance(out, torch.Tensor):
        return out
    return adopt(out, index) if out.layout is torch.sparse_coo else wrap(out, index=index)


def flat(args: tuple[Any, ...]) -> list[Any]:
    """The arguments with lists opened."""
    return [x for a in args for x in (a if type(a) in (list, tuple) else (a,))]


def stored(value: Any) -> tuple[TensorMeta, ...]:
    """What of a tensor a kernel reads or writes: all of a dense one, indices and values of a sparse one."""
    if type(value) is SimTensor:
        return (value.form.outline,)
    if is_sparse(value):
        return tuple(outline(part) for part in pair(value))
    return ()


def account(session: Session, op: Any, args: tuple[Any, ...], results: tuple[Any, ...]) -> None:
    """Write the op on the tape: what it reads and writes, of dense tensors only the rows that a sparse one names."""
    name = short_name(op)
    sparse = [a for a in flat(args) if is_sparse(a)]
    indices, values = (outline(part) for part in pair(sparse[0])) if sparse else (None, None)
    read: list[TensorMeta] = [m for a in sparse for m in stored(a)]
    if values is not None and any(type(a) is SimTensor for a in args) and name in ROW_BY_ROW:
        read.append(values)
        written: tuple[TensorMeta, ...] = (values,)
    else:
        read += [m for a in flat(args) if type(a) is SimTensor for m in stored(a)]
        written = tuple(m for r in results for m in stored(r))
    cost = lower(OpCall(f"gpututor.sparse.{name}", tuple(read), (), written))
    if name == "_coalesce" and indices is not None:
        cost = OpCost(cost.host, sorted_first(indices) + cost.kernels)
    plan = Plan(name)
    plan.cost = OpCost(HostKind.LIGHT, cost.kernels)
    session.account(plan.entry(phase()))
    if name in WAITS:
        session.account(Sync(name, 0))


def sorted_first(indices: TensorMeta) -> Any:
    """The kernels that bring equal indices together: flatten, sort, mark the first of each."""
    keys = TensorMeta.contiguous(indices.shape[-1], dtype="int64")
    flatten = lower(OpCall("gpututor.sparse.flatten", (indices,), (), (keys,))).kernels
    unique = lower(OpCall("gpututor.sparse.unique", (keys,), (), (keys,))).kernels
    return flatten + lower(OpCall("aten.sort.default", (keys,), (), (keys, keys))).kernels + unique


ROW_BY_ROW = frozenset({"add", "add_", "sub_", "sparse_mask"})
"""Ops of a dense and a sparse tensor that touch only the rows the sparse one names."""
WAITS = frozenset({"_coalesce", "_to_sparse", "to_sparse"})
"""CUDA learns the number of different indices before it goes on.

Source: torch, aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu, coalesce_sparse_cuda; to_sparse calls nonzero.
"""


# --- copies across the link -------------------------------------------------------------------------------------


def to_copy(source: Any, **kwargs: Any) -> Any:
    """`.cpu()`, `.to("simgpu")` and a change of dtype of a sparse tensor."""
    session, dtype = current.session, kwargs.get("dtype")
    wanted = torch.device(kwargs.get("device") or source.device)
    if not is_sparse(source):
        for part in (indices_of(source), values_of(source)):
            copy_in(session, "copy to the GPU", part, part.numel() * part.element_size(), False, wanted.index or 0)
        return adopt(source.to(dtype or source.dtype, copy=True), wanted.index or 0)
    host = twin(source, "copying").to(dtype or source.dtype, copy=True)
    if wanted.type == DEVICE_NAME:
        result = adopt(host, wanted.index or 0)
        account(session, operators.TO_COPY, (source,), (result,))
        return result
    for part in pair(source):
        copy_out(session, "copy to the host", part)
    return host


def refuse_compressed(*_: Any, **__: Any) -> Any:
    """Compressed layouts: not simulated.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "compressed sparse tensors (CSR, CSC, BSR, BSC) are not there on the simulated GPU; "
        "use torch.sparse_coo_tensor or a dense tensor"
    )


def refuse_nested(op: Any, *_: Any, **__: Any) -> Any:
    """Nested tensors of the older, strided layout: not simulated.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"{short_name(op)} of a strided nested tensor is not there on the simulated GPU; make it with "
        "layout=torch.jagged, or pad it with torch.nn.utils.rnn.pad_sequence"
    )


_library = torch.library.Library("aten", "IMPL")  # registrations last as long as these objects
_all = torch.library.Library("_", "IMPL")


def _pass_on(ops: Iterable[Any], to: Any) -> None:
    """Let these ops on the pair be done by the kernels of other dispatch keys."""
    for op in ops:
        _library.impl(op, partial(op.redispatch, to), "SparsePrivateUse1")


def _named(names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        base, _, overload = name.partition(".")
        yield getattr(getattr(aten, base), overload or "default")


def register_sparse() -> None:
    """Let torch make, read and compute sparse tensors of the device."""
    _pass_on((*_named(OF_THE_PAIR), *operators.OF_THE_PAIR), _PAIR_KEYS)
    _pass_on((*_named(OF_THE_CPU), operators.SPARSE_DIMENSIONS), _CPU_KEYS)
    _library.impl(operators.TO_COPY, to_copy, "SparsePrivateUse1")
    _all.fallback(lambda op, *args, **kwargs: run(op, args, kwargs), dispatch_key="SparsePrivateUse1")
    _all.fallback(refuse_compressed, dispatch_key="SparseCsrPrivateUse1")
    _all.fallback(refuse_nested, dispatch_key="NestedTensorPrivateUse1")
