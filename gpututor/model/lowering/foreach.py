"""Operators on lists of tensors: one call, a few kernels that each work on many tensors.

torch cuts every tensor into chunks and packs as many tensors and chunks into one launch
as its argument block can hold (aten/src/ATen/native/cuda/MultiTensorApply.cuh, the limits for 4 KB of arguments;
a recorded step of ResNet-50's 161 parameters shows the same three launches).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpututor.model.kernels import Stream
from gpututor.model.lowering.shape import Rule, product_format, short_name
from gpututor.model.spec import HostKind, KernelSpec, OpCall, OpCost, TensorMeta

CHUNK_ELEMENTS, BLOCK_THREADS = 65536, 512
MAX_TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # by the number of lists worked on together
MAX_BLOCKS = 320
# The two fused optimizers' arithmetic per parameter, counted from their formulas.
FUSED_FLOP = {"_fused_adam": 12, "_fused_adamw": 13, "_fused_sgd": 4, "_fused_adagrad": 6}


def packed(sizes: list[int], depth: int) -> Iterator[tuple[int, list[int]]]:
    """For each launch, its number of blocks and the elements of each tensor that it covers."""
    blocks, covered = 0, list[int]()
    for size in sizes:
        if not size:
            continue
        covered.append(0)
        left = size
        while left > 0:
            step = min(CHUNK_ELEMENTS, left)
            left, blocks = left - step, blocks + 1
            covered[-1] += step
            full = blocks == MAX_BLOCKS or (left == 0 and len(covered) == MAX_TENSORS[depth])
            if full:
                yield blocks, covered
                blocks, covered = 0, [0] if left else []
    if blocks:
        yield blocks, covered


def lists_of(call: OpCall) -> list[tuple[TensorMeta, ...]]:
    """The arguments that are lists of tensors, empty ones left out."""
    values = [*call.args, *(value for _, value in call.kwargs)]
    return [
        tuple(v for v in value if isinstance(v, TensorMeta))
        for value in values
        if isinstance(value, tuple) and value and all(isinstance(v, TensorMeta) for v in value)
    ]


def many(call: OpCall, read: int, written: int, flop_per_element: int, depth: int, lead: int = 0) -> OpCost:
    """Launches over the lists of `call`: `read` and `written` count passes through a list of that size."""
    lists = lists_of(call)
    if not lists:
        return OpCost(HostKind.FOREACH)
    leading = lists[lead]
    depth = min(5, max(1, depth))
    itemsize = max((m.itemsize for m in leading), default=4)
    kernels: list[KernelSpec] = []
    for n_blocks, covered in packed([m.numel for m in leading], depth):
        n = sum(covered)
        per_block = -(-n // n_blocks)
        kernels.append(
            Stream(
                short_name(call),
                (read + written) * n * itemsize,
                n,
                flop_per_element * n,
                product_format(leading),
                per_block,
                BLOCK_THREADS,
            )
        )
    return OpCost(HostKind.FOREACH, tuple(kernels))


def _each(call: OpCall) -> OpCost:
    """Elementwise on lists: reads every list of full size, writes one result (the first list when in place)."""
    name = short_name(call)
    lists = lists_of(call)
    full = [other for other in lists if lists and [m.numel for m in other] == [m.numel for m in lists[0]]]
    n_lists = max(1, len(full))
    ternary = any(word in name for word in ("addcmul", "addcdiv", "lerp"))
    flop = 0 if any(word in name for word in ("copy", "zero")) else 3 if ternary else 1
    in_place = name.endswith("_")
    read = n_lists
    if name == "_foreach_zero_":
        read = 0
    elif name == "_foreach_copy_":
        read = n_lists - 1
    elif "addcmul" in name and n_lists == 3:
        read = 2  # torch's optimizers add the square of a list, which is read once
    return many(call, read, 1, flop, n_lists + (0 if in_place else 1))


def _norm(call: OpCall) -> OpCost:
    """Partial sums of squares by chunk, then a small kernel that adds up each tensor's parts."""
    first = many(call, 1, 0, 2, 1)
    lists = lists_of(call)
    n = len(lists[0]) if lists else 0
    tail = Stream("norm of parts", 8 * n, n, n, "fp32", 1, BLOCK_THREADS)
    return OpCost(HostKind.FOREACH, (*first.kernels, tail) if n else ())


def _fused(call: OpCall) -> OpCost:
    """One pass over parameters and states: reads all lists, writes all but the gradients."""
    name = short_name(call).rstrip("_")
    lists = lists_of(call)
    full = [other for other in lists if [m.numel for m in other] == [m.numel for m in lists[0]]][: max(MAX_TENSORS)]
    return many(call, len(full), len(full) - 1, FUSED_FLOP[name], len(full))


UNARY = "neg abs sqrt exp log reciprocal zero sign clamp_min clamp_max"
BINARY = "add sub mul div pow maximum minimum copy addcmul addcdiv lerp"

RULES: dict[str, Rule] = {
    **{f"aten._foreach_{name}{tail}": _each for name in f"{UNARY} {BINARY}".split() for tail in ("", "_")},
    "aten._foreach_norm": _norm,
    **{f"aten.{name}{tail}": _fused for name in FUSED_FLOP for tail in ("", "_")},
    "aten._amp_foreach_non_finite_check_and_unscale_": lambda call: many(call, 1, 1, 2, 1),
}
