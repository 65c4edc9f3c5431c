"""When torch.compile compiles anew: what it compares at each call, and what compiling costs.

A function is compiled for the shapes of its first call. The first call with another size in some dimension compiles
again with that dimension left open; so do dimensions that `mark_dynamic` names. After `MOST_VERSIONS`
versions torch gives up and runs the function as it is. Source: torch 2.13, torch/_dynamo/config.py
(automatic_dynamic_shapes, recompile_limit).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from gpututor.simgpu.private.asked import DYNAMIC_DIMENSIONS
from gpututor.simgpu.private.modules import tree_leaves
from gpututor.simgpu.tensor import SimTensor

MOST_VERSIONS = 8

COMPILE_BASE_NS = 3_000_000_000
"""The first compilation of anything. Source: pytorch issue 172547: a small model's first step takes 3.36 s with it and
0.25 s without, torch 2.9.1 on an H100."""

COMPILE_OP_NS = 50_000_000
"""More for each operator in it. Source: pytorch/benchmark pull request 1547: 27.9 s for a ResNet-50's training step on
CUDA, which has some 500 operators both ways; twice that with every cache empty. An order of magnitude."""

Sizes = tuple[tuple[int | None, ...], ...]


@dataclass(slots=True)
class Version:
    """One compiled form: what must be equal, sizes that must be (None: any), and the parts compiled so far."""

    fixed: tuple[Any, ...]
    sizes: Sizes
    compiled: set[tuple[str, int]] = field(default_factory=set)
    n_runs: dict[Any, int] = field(default_factory=dict)

    def fits(self, fixed: tuple[Any, ...], sizes: Sizes) -> bool:
        """Whether a call with these arguments may use it."""
        return self.fixed == fixed and all(
            all(a is None or a == b for a, b in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.sizes, sizes, strict=True)
        )


def seen(values: Iterable[Any], *more: Any) -> tuple[tuple[Any, ...], Sizes, Sizes]:
    """What a call's arguments are to the guards: what must be equal, sizes, and the same with marked ones open."""
    fixed: list[Any] = [torch.is_grad_enabled(), *more]
    sizes: list[tuple[int | None, ...]] = []
    marked: list[tuple[int | None, ...]] = []
    for leaf in tree_leaves(list(values)):
        if isinstance(leaf, torch.Tensor):
            fixed.append((leaf.dtype, leaf.requires_grad, leaf.dim(), leaf.device.type))
            shape = tuple(leaf.size())
            open_dims = getattr(leaf, DYNAMIC_DIMENSIONS, ())
            sizes.append(shape)
            marked.append(tuple(None if d in open_dims else n for d, n in enumerate(shape)))
        elif type(leaf) is int:
            fixed.append(int)
            sizes.append((leaf,))
            marked.append((leaf,))
        else:
            fixed.append(leaf if isinstance(leaf, bool | float | str | type(None)) else type(leaf))
    return tuple(fixed), tuple(sizes), tuple(marked)


class Guards:
    """The versions of one compiled function. `dynamic` as torch takes it: None decides by itself."""

    def __init__(self, dynamic: bool | None = None) -> None:
        self.dynamic = dynamic
        self.versions: list[Version] = []

    def version_for(self, values: Iterable[Any], *more: Any) -> Version | None:
        """The version that a call uses, made anew if none fits; None when there are too many."""
        fixed, sizes, marked = seen(values, *more)
        for version in self.versions:
            if version.fits(fixed, sizes):
                return version
        if len(self.versions) >= MOST_VERSIONS:
            return None
        if self.dynamic:
            marked = tuple(tuple(None for _ in shape) for shape in sizes)
        elif self.dynamic is None:
            for before in self.versions:
                if before.fixed == fixed:
                    marked = tuple(_opened(a, b) for a, b in zip(before.sizes, marked, strict=True))
        version = Version(fixed, marked)
        self.versions.append(version)
        return version


def _opened(before: tuple[int | None, ...], now: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Sizes that stay fixed: those that were the same both times."""
    return tuple(b if a == b else None for a, b in zip(before, now, strict=True))


def input_bytes(values: Iterable[Any]) -> int:
    """Bytes of the simulated tensors among a call's arguments, parameters left out."""
    leaves = tree_leaves(list(values))
    return sum(t.form.n_bytes for t in leaves if type(t) is SimTensor and not isinstance(t, torch.nn.Parameter))
