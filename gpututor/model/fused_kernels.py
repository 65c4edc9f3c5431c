"""The kernels that Inductor writes for joined operators, in the cost model's terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING

from gpututor.model.kernels import RowReduce, Stream

if TYPE_CHECKING:
    from gpututor.model.fusion import Node

# Elements of a block of an elementwise kernel: the number of elements over 128, from 256 to 1,024; four warps.
# Source: torch 2.13, torch/_inductor/runtime/triton_heuristics.py, pointwise.
SMALLEST_BLOCK, LARGEST_BLOCK, THREADS = 256, 1024, 128
# A row up to this long stays in registers between a reduction and what follows it; a longer one is read again.
# Source: torch 2.13, torch/_inductor/choices.py, should_use_persistent_reduction, inner reductions.
PERSISTENT_LENGTH = 1024
ROW_BLOCK_ELEMENTS, ROW_THREADS = 2048, 256  # of a block of a reduction; the autotuner's choice varies, an assumption
# Tensors that one kernel over lists of tensors can take. Source: config.py, combo_kernel_max_num_args.
MOST_TENSORS = 250
MOST_NAMES = 5
SPLIT_ROWS, SPLIT_INNER_LENGTH, SPLIT_OUTER_LENGTH = 5120, 8192, 32


def name_of(kind: str, nodes: Sequence[Node]) -> str:
    """A kernel's name in Inductor's manner: its kind and the operators in it."""
    names = list(dict.fromkeys(node.name for node in nodes))
    more = "_and_more" if len(names) > MOST_NAMES else ""
    return f"triton_{kind}_fused_{'_'.join(names[:MOST_NAMES])}{more}"


def elements_kernels(
    nodes: Sequence[Node], read_bytes: int, written_bytes: int, n_tensors: int = 1
) -> tuple[Stream, ...]:
    """Elementwise operators on the same elements: one kernel, or several where there are very many tensors."""
    n = nodes[0].n_elements
    block = max(SMALLEST_BLOCK, min(LARGEST_BLOCK, n // THREADS))
    n_kernels = max(1, ceil(n_tensors / MOST_TENSORS))
    kernel = Stream(
        name_of("poi", nodes),
        (read_bytes + written_bytes) // n_kernels,
        ceil(n / n_kernels),
        sum(node.flop for node in nodes) // n_kernels,
        nodes[0].number_format,
        block,
        THREADS,
    )
    return (kernel,) * n_kernels


def rows_kernels(
    nodes: Sequence[Node], rows: Node, read: Iterable[int], stored: Iterable[int], split: bool
) -> tuple[RowReduce | Stream, ...]:
    """Reductions with what is joined to them: one kernel, and a small second one where rows are split.

    A long row is read again for what follows its reduction over all elements.
    """
    sizes = list(read)
    looped = rows.row_length > PERSISTENT_LENGTH
    full_bytes = sum(n for n in sizes if n >= rows.n_elements)  # tensors of full size have a byte or more an element
    again = full_bytes if looped and rows.inner and _walks_again(nodes, rows) else 0
    kernel = RowReduce(
        name_of("red" if looped or split else "per", nodes),
        rows.n_rows,
        rows.row_length,
        sum(sizes) + sum(stored) + again,
        sum(node.flop for node in nodes),
        rows.number_format,
        max(1, ROW_BLOCK_ELEMENTS // max(1, rows.row_length)),
        ROW_THREADS,
        split,
    )
    if not split:
        return (kernel,)
    return kernel, Stream(name_of("per", [rows]), 16 * rows.n_rows, rows.n_rows, rows.n_rows)


def _walks_again(nodes: Sequence[Node], rows: Node) -> bool:
    """Whether something of full size is computed from the reduced rows: softmax and norms do so themselves."""
    after = False
    for node in nodes:
        if after and node.row_length == 1 and node.n_rows == rows.n_elements:
            return True
        if node.row_length > 1:
            after = True
            if any(n_bytes >= rows.n_elements for _, n_bytes in node.writes):
                return True
    return False


def is_split(rows: Node) -> bool:
    """Whether a reduction has so few rows that Inductor makes two kernels of it, parts and their sum.

    Source: ir.py, num_splits and reduction_split_factor; 5,120 is 64 times the 80 SMs of a V100, other cards differ a
    little. Rows that lie together are split only when they are few and long.
    """
    if rows.inner:
        return rows.n_rows <= SPLIT_ROWS // 32 and rows.row_length > SPLIT_INNER_LENGTH
    return rows.n_rows < SPLIT_ROWS and rows.row_length > SPLIT_OUTER_LENGTH
