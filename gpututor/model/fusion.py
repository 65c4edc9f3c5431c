"""Which kernels torch.compile makes of a list of operators: what Inductor fuses, and what it leaves alone.

Operators that compute element by element and reductions become kernels of Inductor's own. Two of them are joined when
they walk over the same elements and share a tensor, and no other operator has to run in between: a chain reads its
inputs once and writes only what somebody else needs. Products, convolutions, attention and recurrent layers
stay calls of a library, with nothing fused into them: that is the default, without max-autotune.

Source: torch 2.13, torch/_inductor: scheduler.py (fuse_nodes_once, can_fuse, score_fusion), codegen/simd.py (can_fuse),
config.py (max_fusion_size 64, max_fusion_buffer_group_pairwise_attempts 64), ir.py (Reduction.num_splits).
Left out: recomputing a cheap operator in each of its readers, tiling, and fusing reductions of mixed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum

from gpututor.model.fused_kernels import elements_kernels, is_split, rows_kernels
from gpututor.model.kernels import RowReduce, Stream
from gpututor.model.spec import HostKind, KernelSpec

LARGEST = 64  # operators in one kernel
NEIGHBOURS = 64  # of the operators on one tensor, how far apart two may stand to be tried
ROUNDS = 10


class Part(Enum):
    """What an operator is to the compiler."""

    ELEMENTS = "elementwise"
    ROWS = "reduction"
    LIBRARY = "library call"  # its kernels stay as they are
    ALONE = "kernel of its own"  # made by the compiler, but not joined: sorting, scattering


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: what it reads and writes as (tensor, bytes), and the elements it walks over.

    Tensors are numbers. An elementwise operator has `n_rows` elements and `row_length` 1. `inner` says that a
    reduction's rows lie together in memory; `gathers`, that it doesn't read its tensors in its own order.
    """

    name: str
    part: Part
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]
    n_rows: int = 1
    row_length: int = 1
    inner: bool = True
    gathers: bool = False
    flop: int = 0
    number_format: str = "fp32"
    host: HostKind = HostKind.LIGHT
    kernels: tuple[KernelSpec, ...] = ()

    @property
    def n_elements(self) -> int:
        """Elements that the operator walks over."""
        return self.n_rows * self.row_length


@dataclass(frozen=True, slots=True)
class Fused:
    """Operators that became one call: its name, what the host does, and its kernels."""

    name: str
    host: HostKind
    kernels: tuple[KernelSpec, ...]
    n_joined: int


Value = tuple[int, int]  # a tensor, and how often it was written before


@dataclass(slots=True, eq=False)
class Group:
    """Operators joined so far. Masks have one bit for each operator of the list."""

    nodes: list[Node]
    at: int  # place of the first
    mask: int
    before: int = 0  # operators that have to run earlier
    behind: int = 0
    reads: dict[Value, int] = field(default_factory=dict)
    writes: dict[Value, int] = field(default_factory=dict)
    rows: Node | None = None  # a reduction among them, which sets the space
    gathered: set[Value] = field(default_factory=set)


def fuse(nodes: Sequence[Node], kept: AbstractSet[int]) -> list[Fused]:
    """The calls that remain, in an order in which they can run.

    `kept` are tensors that somebody outside reads afterwards, or that existed before and were changed. What nobody
    reads is not computed.
    """
    groups, readers, last = _linked(nodes, kept)
    for _ in range(ROUNDS):
        if not _joined_once(groups, readers, last):
            break
    return [_call(group, readers, last) for group in _in_order(groups)]


# --- who depends on whom ----------------------------------------------------------------------------------------


def _linked(nodes: Sequence[Node], kept: AbstractSet[int]) -> tuple[list[Group], dict[Value, int], frozenset[Value]]:
    """One group for each operator that is needed, for each value a mask of its readers, and the values kept."""
    version: dict[int, int] = {}
    groups: list[Group] = []
    made: dict[Value, int] = {}
    readers: dict[Value, int] = {}
    for k, node in enumerate(nodes):
        group = Group([node], k, 1 << k)
        for tensor, n_bytes in node.reads:
            value = tensor, version.get(tensor, 0)
            group.reads[value] = max(n_bytes, group.reads.get(value, 0))
        for tensor, n_bytes in node.writes:
            old = tensor, version.get(tensor, 0)
            changed = old in made or old in readers
            if changed:
                group.reads.setdefault(old, 0)  # a part may stay as it was, and its readers must have run
                group.before |= readers.get(old, 0)
            version[tensor] = old[1] + 1
            group.writes[tensor, old[1] + 1] = n_bytes
        for value in group.reads:
            readers[value] = readers.get(value, 0) | group.mask
            if value in made:
                group.before |= 1 << made[value]
        made.update(dict.fromkeys(group.writes, k))
        if node.part is Part.ROWS:
            group.rows = node
        if node.gathers:
            group.gathered = set(group.reads)
        groups.append(group)
    last = frozenset((tensor, version[tensor]) for tensor in kept if tensor in version)
    return _needed(groups, readers, last), readers, last


def _needed(groups: list[Group], readers: dict[Value, int], last: frozenset[Value]) -> list[Group]:
    """Groups whose results somebody reads, with complete masks of what lies before and behind."""
    alive = 0
    for group in reversed(groups):
        if not group.writes or any(v in last or readers.get(v, 0) & alive for v in group.writes):
            alive |= group.mask
    for value in readers:
        readers[value] &= alive
    chosen = [g for g in groups if g.mask & alive]
    by_bit = {g.at: g for g in chosen}
    for group in chosen:
        direct = group.before & alive & ~group.mask
        group.before = direct
        for bit in bits(direct):
            group.before |= by_bit[bit].before
        for bit in bits(group.before):
            by_bit[bit].behind |= group.mask
    return chosen


def bits(mask: int) -> Iterator[int]:
    """The places of the ones in a mask.

    >>> list(bits(0b1001))
    [0, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


# --- joining ----------------------------------------------------------------------------------------------------


def _joined_once(groups: list[Group], readers: dict[Value, int], last: frozenset[Value]) -> bool:
    """Try all pairs that share a tensor, those that save most bytes first; whether any were joined."""
    own = {bit: group for group in groups for bit in bits(group.mask)}
    joined = False
    for _, _, k, m in sorted(_candidates(groups)):
        first, second = own[k], own[m]
        if first.at > second.at:
            first, second = second, first
        if first is second or not _may_join(first, second, readers, last):
            continue
        _join(first, second, groups)
        for bit in bits(second.mask):
            own[bit] = first
        joined = True
    return joined


def _candidates(groups: list[Group]) -> Iterator[tuple[int, int, int, int]]:
    """(minus the bytes saved, distance, place, place) of pairs that share a value."""
    users: dict[Value, list[Group]] = {}
    for group in groups:
        if group.nodes[0].part in (Part.ELEMENTS, Part.ROWS):
            for value in {**group.reads, **group.writes}:
                users.setdefault(value, []).append(group)
    saved: dict[tuple[int, int], int] = {}
    for value, found in users.items():
        for k, first in enumerate(found):
            for second in found[k + 1 : k + NEIGHBOURS]:
                pair = first.at, second.at
                n_bytes = first.writes.get(value, first.reads.get(value, 0))
                saved[pair] = saved.get(pair, 0) + max(n_bytes, second.reads.get(value, 0))
    return ((-n_bytes, abs(m - k), k, m) for (k, m), n_bytes in saved.items())


def _may_join(first: Group, second: Group, readers: dict[Value, int], last: frozenset[Value]) -> bool:
    if len(first.nodes) + len(second.nodes) > LARGEST:
        return False
    both = first.mask | second.mask
    if (first.behind & second.before | second.behind & first.before) & ~both:
        return False  # something else has to run in between
    if first.gathered & second.writes.keys() or second.gathered & first.writes.keys():
        return False
    if first.mask & second.before:
        return _same_space(first, second, readers, last)
    if second.mask & first.before:
        return _same_space(second, first, readers, last)
    return _same_space(first, second, readers, last) and _same_space(second, first, readers, last)


def _same_space(first: Group, second: Group, readers: dict[Value, int], last: frozenset[Value]) -> bool:
    """Whether one kernel can walk over both, `first` coming first."""
    one, two = first.rows, second.rows
    if one is None and two is None:
        return first.nodes[0].n_elements == second.nodes[0].n_elements
    if one is not None and two is not None:
        return (one.n_rows, one.row_length, one.inner) == (two.n_rows, two.row_length, two.inner)
    if one is not None:  # what follows a reduction: by row, or over all elements where a block still holds its row
        n = next(node.n_elements for node in second.nodes)
        return n == one.n_rows or (n == one.n_elements and one.inner and not is_split(one))
    assert two is not None
    n = next(node.n_elements for node in first.nodes)
    if n == two.n_rows:
        return True
    only_here = all(v not in last and not readers.get(v, 0) & ~second.mask & ~first.mask for v in first.writes)
    return n == two.n_elements and (two.inner or only_here)


def _join(first: Group, second: Group, groups: list[Group]) -> None:
    """Put `second` into `first` and keep the masks of all others true."""
    first.nodes += second.nodes
    first.mask |= second.mask
    before = (first.before | second.before) & ~first.mask
    behind = (first.behind | second.behind) & ~first.mask
    first.before, first.behind = before, behind
    for value, n_bytes in second.reads.items():
        first.reads[value] = max(n_bytes, first.reads.get(value, 0))
    first.writes.update(second.writes)
    first.gathered |= second.gathered
    first.rows = first.rows or second.rows
    groups.remove(second)
    for group in groups:
        if group.mask & before:
            group.behind |= behind | first.mask
        if group.mask & behind:
            group.before |= before | first.mask


def _in_order(groups: Iterable[Group]) -> list[Group]:
    """Groups such that each comes after all it depends on; else as in the program."""
    waiting, done, order = sorted(groups, key=lambda g: g.at), 0, list[Group]()
    while waiting:
        group = next(g for g in waiting if not g.before & ~done)
        waiting.remove(group)
        done |= group.mask
        order.append(group)
    return order


# --- the kernels ------------------------------------------------------------------------------------------------


def _call(group: Group, readers: dict[Value, int], last: frozenset[Value]) -> Fused:
    node = group.nodes[0]
    if node.part in (Part.LIBRARY, Part.ALONE):
        return Fused(node.name, node.host, node.kernels, 1)
    stored = {v: n for v, n in group.writes.items() if v in last or readers.get(v, 0) & ~group.mask}
    read = {v: n for v, n in group.reads.items() if v not in group.writes}
    kernels: tuple[Stream | RowReduce, ...]
    if group.rows is None:
        kernels = elements_kernels(group.nodes, sum(read.values()), sum(stored.values()), len(read) + len(stored))
    else:
        kernels = rows_kernels(group.nodes, group.rows, read.values(), stored.values(), is_split(group.rows))
    return Fused(kernels[0].name, HostKind.LIGHT, kernels, len(group.nodes))
