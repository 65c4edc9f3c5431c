"""What becomes one kernel: operators are drawn as lines, kernels and bytes are counted by hand."""

from __future__ import annotations

import pytest

from gpututor.model.fused_kernels import MOST_TENSORS
from gpututor.model.fusion import LARGEST, Node, Part, bits, fuse
from gpututor.model.kernels import Gemm, RowReduce, Stream
from gpututor.model.spec import HostKind

N = 1 << 20  # elements of a big tensor
BIG = 4 * N  # its bytes
ROWS, LENGTH = 1024, 1024  # the same elements in rows
KINDS = {"~": Part.ELEMENTS, "+": Part.ROWS, "@": Part.LIBRARY, "!": Part.ALONE}


def draw(program, *, length=LENGTH, inner=True, sizes=None):
    """Operators, one a line: result, `=`, kind, operands. Lower-case tensors are big, upper-case one number a row.

    ``y = ~ x w`` is elementwise, ``S = + x`` a reduction by row, ``y = @ x w`` a library call, ``y = ! x`` a kernel
    of its own. Gives the nodes and the number of each tensor.
    """
    rows = N // length
    number: dict[str, int] = {}
    nodes = []
    for line in filter(None, map(str.strip, program.splitlines())):
        left, _, right = line.partition(" = ")
        kind, *operands = right.split()
        size = {t: (sizes or {}).get(t, 4 * rows if t.isupper() else BIG) for t in (*operands, *left.split())}
        name = {"~": "pointwise", "+": "sum", "@": "mm", "!": "sort"}[kind]
        reads, writes = (
            tuple((number.setdefault(t, len(number)), size[t]) for t in ts) for ts in (operands, left.split())
        )
        part = KINDS[kind]
        by_row = part is Part.ROWS or all(t.isupper() for t in left.split())
        n_rows = rows if by_row else N
        kernels = (Gemm("mm", 1024, 1024, 1024, 3 * BIG),) if kind == "@" else (Stream("sort", 2 * BIG, N),)
        host = HostKind.GEMM if kind == "@" else HostKind.LIGHT
        row_length = length if part is Part.ROWS else 1
        nodes.append(
            Node(
                name, part, reads, writes, n_rows, row_length, inner, host=host, kernels=kernels if kind in "@!" else ()
            )
        )
    return nodes, number


def fused(program, kept, **how):
    """The kernels, those of one call together."""
    nodes, number = draw(program, **how)
    return [call.kernels for call in fuse(nodes, {number[t] for t in kept.split()})]


def moved(calls):
    """Bytes moved, call by call."""
    return [sum(k.moved_bytes for k in kernels) for kernels in calls]


def test_a_chain_is_one_kernel_that_reads_its_input_once_and_writes_its_result_once():
    calls = fused("a = ~ x\n b = ~ a\n c = ~ b", kept="c")

    assert moved(calls) == [2 * BIG]


def test_a_result_that_somebody_else_reads_is_written_too():
    assert moved(fused("a = ~ x\n b = ~ a", kept="a b")) == [3 * BIG]


def test_what_nobody_reads_is_not_computed():
    assert moved(fused("a = ~ x\n b = ~ x y z\n c = ~ a", kept="c")) == [2 * BIG]


def test_two_readers_of_one_tensor_become_one_kernel():
    assert moved(fused("a = ~ x\n b = ~ x", kept="a b")) == [3 * BIG]


def test_operators_that_share_nothing_stay_apart():
    assert moved(fused("a = ~ x\n b = ~ y", kept="a b")) == [2 * BIG, 2 * BIG]


def test_other_numbers_of_elements_stay_apart():
    calls = fused("a = ~ x\n B = ~ A", kept="a B")

    assert len(calls) == 2


def test_a_product_takes_nothing_in_before_or_after_it():
    calls = fused("a = ~ x\n b = @ a w\n c = ~ b", kept="c")

    assert [type(kernels[0]) for kernels in calls] == [Stream, Gemm, Stream]
    assert moved(calls) == [2 * BIG, 3 * BIG, 2 * BIG]


def test_a_sum_over_short_rows_is_one_kernel_with_what_comes_before_and_after():
    # softmax by hand: the row's sum of f(x), then g(x, sum) written
    calls = fused("e = ~ x\n S = + e\n y = ~ e S", kept="y")

    assert [type(kernels[0]) for kernels in calls] == [RowReduce]
    assert moved(calls) == [2 * BIG]


def test_a_long_row_is_read_again_for_what_follows_its_sum():
    calls = fused("S = + x\n y = ~ x S", kept="y", length=4096)

    assert moved(calls) == [3 * BIG]


def test_a_sum_across_rows_leaves_what_follows_to_another_kernel():
    calls = fused("S = + x\n y = ~ x S", kept="y", inner=False, length=16)

    assert [type(kernels[0]) for kernels in calls] == [RowReduce, Stream]


def test_few_long_rows_are_summed_in_two_kernels():
    (kernels,) = fused("S = + x", kept="S", length=N)

    assert [type(k) for k in kernels] == [RowReduce, Stream]
    assert kernels[0].split


def test_two_sums_over_the_same_rows_read_them_once():
    rows_bytes = 4 * ROWS
    assert moved(fused("S = + x\n T = + x", kept="S T")) == [BIG + 2 * rows_bytes]


def test_sums_over_other_rows_stay_apart():
    nodes, number = draw("S = + x")
    others, _ = draw("T = + x", length=256)
    others = [Node("sum", Part.ROWS, ((number["x"], BIG),), ((9, 4 * 4096),), 4096, 256)]

    assert len(fuse([*nodes, *others], {number["S"], 9})) == 2


def test_nothing_is_joined_around_an_operator_that_must_run_in_between():
    # c needs b, which needs a; joining a and c would put the product before its own input
    calls = fused("a = ~ x\n b = @ a w\n c = ~ b a", kept="c")

    assert [type(kernels[0]) for kernels in calls] == [Stream, Gemm, Stream]


def test_sorting_is_never_joined():
    assert len(fused("a = ~ x\n b = ! a\n c = ~ b", kept="c")) == 3


def test_a_change_in_place_comes_after_the_readers_of_the_old_values():
    nodes, number = draw("a = @ x w\n x = ~ x\n b = @ x w")
    calls = fuse(nodes, {number["a"], number["b"], number["x"]})

    assert [call.name for call in calls] == ["mm", "triton_poi_fused_pointwise", "mm"]


def test_a_chain_longer_than_a_kernel_may_be_is_cut():
    n = LARGEST + 1
    program = "\n".join(f"v{k + 1} = ~ v{k}" for k in range(n))
    calls = fused(program, kept=f"v{n}")

    assert len(calls) == 2


def test_an_update_of_very_many_tensors_is_several_kernels():
    n = 300
    reads = tuple((k, 400) for k in range(n))
    node = Node("_foreach_add_", Part.ELEMENTS, reads, reads, 100 * n)
    (call,) = fuse([node], set(range(n)))

    assert len(call.kernels) == -(-2 * n // MOST_TENSORS)
    assert sum(k.moved_bytes for k in call.kernels) == 2 * n * 400


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("a = ~ x\n b = ~ a\n c = ~ b a x", id="a chain with side readers"),
        pytest.param("a = ~ x\n S = + a\n b = ~ a S\n T = + b\n c = ~ b T", id="two norms in a row"),
        pytest.param("a = @ x w\n b = ~ a y\n S = + b\n c = ~ b S\n d = @ c v", id="between two products"),
    ],
)
def test_fusing_never_moves_more_than_the_operators_alone(program):
    nodes, number = draw(program)
    last = max(number.values())
    alone = [fuse([node], {t for t, _ in node.writes}) for node in nodes]
    alone_bytes = sum(k.moved_bytes for calls in alone for call in calls for k in call.kernels)
    together = fuse(nodes, {last})

    assert sum(k.moved_bytes for call in together for k in call.kernels) <= alone_bytes
    assert len(together) <= len(nodes)


def test_bits_are_the_places_of_ones():
    assert list(bits(0b10110)) == [1, 2, 4]
