"""What an operator asks of a card, said without naming the card.

An `OpCall` is one operator with the shapes it saw. Lowering turns it into an
`OpCost`: what the host does and which kernels run. Only `cost.price` needs a card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import TypeAlias

from gpututor.errors import KernelSpecError
from gpututor.model.kernels import Attention, Conv, DeviceCopy, Gemm, Memset, RnnLayer, RnnStep, RowReduce, Stream
from gpututor.model.tensors import Arg, OpCall, TensorMeta

__all__ = [
    "KINDS",
    "Arg",
    "Attention",
    "Conv",
    "DeviceCopy",
    "Gemm",
    "HostKind",
    "KernelSpec",
    "Memset",
    "OpCall",
    "OpCost",
    "RnnLayer",
    "RnnStep",
    "RowReduce",
    "Stream",
    "TensorMeta",
    "from_dict",
    "to_dict",
]


class HostKind(Enum):
    """Which amount of host work an operator needs; the amounts are in data/hosts.toml."""

    FREE = "free"  # bookkeeping that costs no separate call, such as autograd's own detach
    VIEW = "view"  # changes shape or strides only
    LIGHT = "light"  # elementwise, reductions, indexing
    GEMM = "gemm"  # cuBLAS
    CUDNN = "cudnn"  # convolution
    NORM = "norm"
    RNN = "rnn"
    ATTENTION = "attention"
    FOREACH = "foreach"  # one call for a list of tensors
    COPY = "copy"
    CAST = "cast"  # a copy in another format, its memory made on the way: three operators in one
    SYNC = "sync"  # the host reads a value
    CALL = "compiled call"  # entering compiled code: guards and wrapper around its kernels


KernelSpec: TypeAlias = Gemm | Conv | Stream | RowReduce | RnnStep | RnnLayer | Attention | DeviceCopy | Memset
KINDS: dict[str, type[KernelSpec]] = {
    "gemm": Gemm,
    "conv": Conv,
    "stream": Stream,
    "row reduce": RowReduce,
    "rnn step": RnnStep,
    "rnn layer": RnnLayer,
    "attention": Attention,
    "device copy": DeviceCopy,
    "memset": Memset,
}
KIND_OF: dict[type[KernelSpec], str] = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class OpCost:
    """What one operator makes the host do and which kernels it launches, in order."""

    host: HostKind
    kernels: tuple[KernelSpec, ...] = ()


def to_dict(spec: KernelSpec) -> dict[str, str | int | bool]:
    """The fields of `spec`, and its kind under "kind", as plain values for a file."""
    return {"kind": KIND_OF[type(spec)], **{f.name: getattr(spec, f.name) for f in fields(spec)}}


def from_dict(entry: Mapping[str, object]) -> KernelSpec:
    """The kernel that `to_dict` wrote.

    Raises:
        KernelSpecError: the kind is not known, or a field is missing or of the wrong type.
    """
    kind = KINDS.get(str(entry.get("kind")))
    if kind is None:
        raise KernelSpecError(f"a kernel is of kind {entry.get('kind')!r}; known kinds: {', '.join(KINDS)}")
    given = {name: value for name, value in entry.items() if name != "kind"}
    try:
        spec = kind(**given)  # type: ignore[arg-type]
    except TypeError as error:
        raise KernelSpecError(f"a kernel of kind {entry['kind']!r} does not hold what it needs: {error}") from error
    for f in fields(spec):
        expected = {"int": int, "str": str, "bool": bool}[str(f.type)]
        value: object = getattr(spec, f.name)
        if type(value) is not expected or (isinstance(value, int) and value < 0):
            raise KernelSpecError(f"a kernel of kind {entry['kind']!r} has {f.name} = {value!r}, not a {f.type} from 0")
    return spec
