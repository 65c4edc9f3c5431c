"""A step's kernels by what they are: FLOP, bytes and time of depthwise and other convolutions, norms and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Machine
from gpututor.model.kernels import Attention, Conv, Gemm
from gpututor.model.spec import KernelSpec
from gpututor.model.tape import Pricer, TapeOp
from gpututor.replay import SameMachine, read_tape

PRODUCTS = (Conv, Gemm, Attention)  # whose FLOP papers count


class Kind(Enum):
    """What a kernel is; the value is what a reader sees."""

    DEPTHWISE = "depthwise convolutions"
    POINTWISE = "1x1 convolutions"
    SPATIAL = "other convolutions"
    PRODUCT = "matrix products"
    NORM = "norms"
    REST = "activations, sums, updates"


def kind_of(op: TapeOp, spec: KernelSpec) -> Kind:
    """What this kernel of an operator is; copies and reorderings that an operator needs belong to the rest."""
    if isinstance(spec, Conv):
        if spec.groups > 1 and spec.groups == spec.c_in:
            return Kind.DEPTHWISE
        return Kind.POINTWISE if spec.filter_taps == 1 else Kind.SPATIAL
    if isinstance(spec, Gemm | Attention):
        return Kind.PRODUCT
    return Kind.NORM if "norm" in op.name else Kind.REST


@dataclass(frozen=True, slots=True)
class Sums:
    """Kernels of one kind in a mean step: their time on the card, the FLOP that papers count, least traffic."""

    ns: float = 0.0
    flop: float = 0.0
    moved_bytes: float = 0.0

    def plus(self, ns: float, flop: float, moved_bytes: float) -> Sums:
        """With one kernel more."""
        return Sums(self.ns + ns, self.flop + flop, self.moved_bytes + moved_bytes)

    @property
    def intensity(self) -> float | None:
        """FLOP for each byte moved; None where nothing moves.

        Source: Williams, Waterman and Patterson 2009, "Roofline".
        """
        return self.flop / self.moved_bytes if self.moved_bytes else None


def by_kind(path: Path, on: Machine) -> Mapping[Kind, Sums]:
    """The kernels of a mean step of a kept run on a machine; kinds without a kernel are left out.

    Raises:
        TimelineError: the file is gone or damaged.
    """
    return _by_kind(path, path.stat().st_mtime_ns, SameMachine(on))


@lru_cache(maxsize=256)
def _by_kind(path: Path, changed_ns: int, on: SameMachine) -> Mapping[Kind, Sums]:
    tape, pricer = read_tape(path), Pricer(on.machine)
    found: dict[Kind, Sums] = {}
    n_steps = max(1, tape.n_steps)
    for entry in tape.entries:
        if not isinstance(entry, TapeOp) or not entry.kernels:
            continue
        for spec, (_, ns, _) in zip(entry.kernels, pricer.op(entry).kernels, strict=False):
            kind = kind_of(entry, spec)
            flop = spec.flop if isinstance(spec, PRODUCTS) else 0
            moved_bytes = getattr(spec, "moved_bytes", 0)
            found[kind] = found.get(kind, Sums()).plus(ns / n_steps, flop / n_steps, moved_bytes / n_steps)
    return found


@lru_cache(maxsize=256)
def _forward_flop(path: Path, changed_ns: int) -> float:
    tape = read_tape(path)
    ops = (entry for entry in tape.entries if isinstance(entry, TapeOp) and entry.phase != "backward")
    flop = sum(spec.flop for op in ops for spec in op.kernels if isinstance(spec, PRODUCTS))
    return flop / max(1, tape.n_steps)


def forward_flop(path: Path) -> float:
    """FLOP of products and convolutions in the forward pass of a mean step: what papers call a network's FLOP.

    A multiply-add counts as two; papers often count it as one.

    Raises:
        TimelineError: the file is gone or damaged.
    """
    read_tape(path)
    return _forward_flop(path, path.stat().st_mtime_ns)
