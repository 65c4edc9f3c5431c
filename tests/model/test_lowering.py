from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.errors import KernelSpecError
from gpututor.model.lowering import FAMILIES, RULES, indexing, lower, norm, pointwise, views
from gpututor.model.lowering.foreach import CHUNK_ELEMENTS, MAX_BLOCKS, MAX_TENSORS, packed
from gpututor.model.lowering.matmul import row_elements
from gpututor.model.spec import (
    Attention,
    Conv,
    DeviceCopy,
    Gemm,
    HostKind,
    OpCall,
    RnnStep,
    RowReduce,
    Stream,
    TensorMeta,
)

T = TensorMeta.contiguous


def call(name, *args, outs=(), tf32=False, **kwargs):
    return OpCall(name, args, tuple(kwargs.items()), outs, tf32)


def flop(op):
    return sum(getattr(k, "flop", 0) for k in lower(op).kernels)


def moved_bytes(op):
    return sum(k.moved_bytes for k in lower(op).kernels)


def names(op):
    return [k.name for k in lower(op).kernels]


def position(*shape):
    return T(*shape, dtype="int64")


X = T(2, 3, 5, 7)  # 210 elements
IMAGE, WEIGHT, MAPS = T(2, 3, 8, 9), T(4, 3, 3, 3), T(2, 4, 8, 9)
CONV_TAIL = (None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
CONV_FLOP = 2 * (2 * 8 * 9) * 4 * (3 * 3 * 3)
LSTM = {"mode": "lstm", "seq": 5, "batch": 3, "input": 7, "hidden": 11, "layers": 2, "directions": 1}
# An LSTM unit: three sigmoids of 3, two tanh, f*c + i*g and o*tanh(c) of 4, four gates adding products and biases.
LSTM_GATE = 3 * 3 + 2 + 4 + 4 * 3
HEADS = tuple(T(2, 4, 16, 8, dtype="float16") for _ in range(3))

# Operator, its floating point operations by a closed formula, and the number of kernels.
COUNTED = [
    (call("aten.mm.default", T(3, 5), T(5, 7), outs=(T(3, 7),)), 2 * 3 * 5 * 7, 1),
    (call("aten.addmm.default", T(7), T(3, 5), T(5, 7), outs=(T(3, 7),)), 2 * 3 * 5 * 7, 1),
    (call("aten.addmm_.default", T(3, 7), T(3, 5), T(5, 7), outs=(T(3, 7),)), 2 * 3 * 5 * 7, 1),
    (call("aten.bmm.default", T(2, 3, 5), T(2, 5, 7), outs=(T(2, 3, 7),)), 2 * 2 * 3 * 5 * 7, 1),
    (call("aten.baddbmm.default", T(2, 3, 7), T(2, 3, 5), T(2, 5, 7), outs=(T(2, 3, 7),)), 2 * 2 * 3 * 5 * 7, 1),
    (call("aten.baddbmm_.default", T(2, 3, 7), T(2, 3, 5), T(2, 5, 7), outs=(T(2, 3, 7),)), 2 * 2 * 3 * 5 * 7, 1),
    (call("aten.linear.default", T(2, 3, 5), T(7, 5), T(7), outs=(T(2, 3, 7),)), 2 * 6 * 5 * 7, 1),
    (
        call("aten._int_mm.default", T(3, 5, dtype="int8"), T(5, 7, dtype="int8"), outs=(T(3, 7, dtype="int32"),)),
        2 * 3 * 5 * 7,
        1,
    ),
    (call("aten.mv.default", T(3, 5), T(5), outs=(T(3),)), 2 * 3 * 5, 1),
    (call("aten.dot.default", T(5), T(5), outs=(T(),)), 2 * 5, 1),
    (call("aten.vdot.default", T(5), T(5), outs=(T(),)), 2 * 5, 1),
    (call("aten.convolution.default", IMAGE, WEIGHT, *CONV_TAIL, outs=(MAPS,)), CONV_FLOP, 1),
    (call("aten.convolution.default", IMAGE, WEIGHT, T(4), *CONV_TAIL[1:], outs=(MAPS,)), CONV_FLOP + MAPS.numel, 2),
    (
        call("aten.convolution_backward.default", MAPS, IMAGE, WEIGHT, (4,), *CONV_TAIL[1:], (True, True, True)),
        2 * CONV_FLOP + MAPS.numel,
        3,
    ),
    (call("aten.native_layer_norm.default", X, (7,), T(7), T(7), 1e-5, outs=(X,)), 7 * 210, 1),
    (call("aten.native_layer_norm_backward.default", X, X, (7,), outs=(X, T(7), T(7))), 12 * 210, 2),
    (call("aten.native_batch_norm.default", X, T(3), T(3), T(3), T(3), True, 0.1, 1e-5, outs=(X,)), 7 * 210, 1),
    (call("aten.native_batch_norm.default", X, T(3), T(3), T(3), T(3), False, 0.1, 1e-5, outs=(X,)), 4 * 210, 1),
    (call("aten.cudnn_batch_norm.default", X, T(3), T(3), T(3), T(3), True, 0.1, 1e-5, outs=(X,)), 7 * 210, 1),
    (call("aten._native_batch_norm_legit.default", X, T(3), T(3), T(3), T(3), True, 0.1, 1e-5, outs=(X,)), 1470, 1),
    (call("aten._batch_norm_impl_index.default", X, T(3), T(3), T(3), T(3), True, 0.1, 1e-5, outs=(X,)), 1470, 1),
    (call("aten.native_batch_norm_backward.default", X, X, T(3), outs=(X, T(3), T(3))), 10 * 210, 1),
    (call("aten.cudnn_batch_norm_backward.default", X, X, T(3), outs=(X, T(3), T(3))), 10 * 210, 1),
    (call("aten.native_group_norm.default", X, T(3), T(3), 2, 3, 35, 3, 1e-5, outs=(X,)), (3 + 4) * 210, 2),
    (call("aten._softmax.default", X, -1, False, outs=(X,)), 5 * 210, 1),
    (call("aten._log_softmax.default", X, 1, False, outs=(X,)), 5 * 210, 1),
    (call("aten._safe_softmax.default", X, -1, outs=(X,)), 5 * 210, 1),
    (call("aten._softmax_backward_data.default", X, X, -1, "float32", outs=(X,)), 4 * 210, 1),
    (call("aten._log_softmax_backward_data.default", X, X, -1, "float32", outs=(X,)), 4 * 210, 1),
    (call("aten.native_dropout.default", X, 0.5, True, outs=(X, T(2, 3, 5, 7, dtype="bool"))), 2 * 210, 1),
    (call("aten.native_dropout_backward.default", X, T(2, 3, 5, 7, dtype="bool"), 2.0, outs=(X,)), 2 * 210, 1),
    (call("aten.max_pool2d_with_indices.default", X, (2, 2), outs=(T(2, 3, 2, 3),)), 36 * 4, 1),
    (call("aten.max_pool3d_with_indices.default", T(1, 1, 4, 4, 4), (2,), outs=(T(1, 1, 2, 2, 2),)), 8 * 8, 1),
    (call("aten.avg_pool2d.default", X, (2, 2), outs=(T(2, 3, 2, 3),)), 36 * 4, 1),
    (call("aten.avg_pool3d.default", T(1, 1, 4, 4, 4), (2, 2, 2), outs=(T(1, 1, 2, 2, 2),)), 8 * 8, 1),
    (call("aten._adaptive_avg_pool2d.default", X, (1, 1), outs=(T(2, 3, 1, 1),)), 210, 1),
    (call("aten._adaptive_avg_pool3d.default", T(1, 2, 4, 4, 4), (1, 1, 1), outs=(T(1, 2, 1, 1, 1),)), 128, 1),
    (call("aten.max_pool2d_with_indices_backward.default", T(2, 3, 2, 3), X, outs=(X,)), 36, 2),
    (call("aten.max_pool3d_with_indices_backward.default", T(2, 3, 2, 3), X, outs=(X,)), 36, 2),
    (call("aten.avg_pool2d_backward.default", T(2, 3, 2, 3), X, outs=(X,)), 210, 1),
    (call("aten._adaptive_avg_pool2d_backward.default", T(2, 3, 1, 1), X, outs=(X,)), 210, 1),
    (call("aten.embedding_dense_backward.default", T(4, 6), position(4), 9, outs=(T(9, 6),)), 24, 2),
    (call("aten.nll_loss_forward.default", T(8, 5), position(8), None, 1, -100, outs=(T(), T())), 16, 1),
    (call("aten.nll_loss2d_forward.default", T(2, 5, 3, 3), position(2, 3, 3), outs=(T(), T())), 36, 1),
    (call("aten.nll_loss_backward.default", T(), T(8, 5), position(8), outs=(T(8, 5),)), 8, 2),
    (call("aten.nll_loss2d_backward.default", T(), T(2, 5, 3, 3), position(2, 3, 3), outs=(T(2, 5, 3, 3),)), 18, 2),
    (call("aten.index_put_.default", T(9, 6), (position(4),), T(4, 6), False, outs=(T(9, 6),)), 24, 1),
    (call("aten.index_put.default", T(9, 6), (position(4),), T(4, 6), False, outs=(T(9, 6),)), 24, 1),
    (call("aten._index_put_impl_.default", T(9, 6), (position(4),), T(4, 6), False, outs=(T(9, 6),)), 24, 1),
    (call("aten.topk.default", T(2, 50), 3, outs=(T(2, 3), position(2, 3))), 0, 2),
    (call("aten.sort.default", T(2, 50), outs=(T(2, 50), position(2, 50))), 0, 5),
    (call("aten.argsort.default", T(2, 50), outs=(position(2, 50),)), 0, 5),
    (call("aten.cat.default", (T(2, 3), T(4, 3)), 0, outs=(T(6, 3),)), 0, 1),
    (call("aten.stack.default", (T(3), T(3)), 0, outs=(T(2, 3),)), 0, 1),
    (call("aten.slice_backward.default", T(2, 3), (4, 3), 0, 0, 2, 1, outs=(T(4, 3),)), 0, 2),
    (call("aten.select_backward.default", T(3), (4, 3), 0, 1, outs=(T(4, 3),)), 0, 2),
    (call("aten.constant_pad_nd.default", T(2, 3), (1, 1), outs=(T(2, 5),)), 0, 2),
    (call("aten._local_scalar_dense.default", T()), 0, 0),
    (call("aten.item.default", T()), 0, 0),
    (call("aten._foreach_norm.Scalar", (T(10), T(20)), outs=(T(), T())), 2 * 30 + 2, 2),
    (call("aten._amp_foreach_non_finite_check_and_unscale_.default", (T(10), T(20)), T(1), T(1)), 2 * 30, 1),
    (call("aten._fused_adam_.default", *((T(10), T(20)),) * 4, (), (T(), T())), 12 * 30, 1),
    (call("aten._fused_adam.default", *((T(10), T(20)),) * 4, (), (T(), T())), 12 * 30, 1),
    (call("aten._fused_adamw_.default", *((T(10), T(20)),) * 4, (), (T(), T())), 13 * 30, 1),
    (call("aten._fused_adamw.default", *((T(10), T(20)),) * 4, (), (T(), T())), 13 * 30, 1),
    (call("aten._fused_sgd_.default", *((T(10), T(20)),) * 3), 4 * 30, 1),
    (call("aten._fused_sgd.default", *((T(10), T(20)),) * 3), 4 * 30, 1),
    (call("aten._fused_adagrad_.default", *((T(10), T(20)),) * 3, (T(), T())), 6 * 30, 1),
    (call("aten._fused_adagrad.default", *((T(10), T(20)),) * 3, (T(), T())), 6 * 30, 1),
    (
        call("gpututor.rnn.forward", **LSTM),
        2 * 15 * 44 * (7 + 11) + 2 * (2 * 15 * 44 * 11) + 2 * 5 * 33 * LSTM_GATE,
        2 * (1 + 2 * 5),
    ),
    (
        call("gpututor.rnn.backward", **LSTM),
        2 * (2 * 15 * 44 * (7 + 11)) + 2 * 2 * (2 * 15 * 44 * 11) + 2 * 5 * 33 * LSTM_GATE + 2 * 15 * 44,
        2 * (2 * 5 + 4),
    ),
    (call("gpututor.attention.forward", *HEADS), 2 * (2 * 8 * 16 * 16 * 8), 1),
    (call("gpututor.attention.backward", *HEADS), 5 * (2 * 8 * 16 * 16 * 8) + 2 * 1024, 2),
    *((call(f"aten.{name}.x", X, outs=(X,)), n * 210, 1) for name, n in pointwise.FLOP_PER_ELEMENT.items()),
    *((call(f"aten.{name}.x", X, outs=(X,)), 0, 1) for name in pointwise.COPY_NAMES.split()),
    *((call(f"aten.{name}.x", outs=(X,)), 0, 1) for name in pointwise.FILL_NAMES.split()),
    *((call(f"aten.{name}.x", outs=(X,)), 0, 1) for name in pointwise.RANDOM_NAMES.split()),
    *((call(f"aten.{name}.x", X, outs=(X,)), 0, 0) for name in (views.FREE_NAMES + views.VIEW_NAMES).split()),
]
SUMS = [call(f"aten.{name}.x", X, outs=(T(2, 3, 5),)) for name in norm.SUMS.split()]
SCANS = [call(f"aten.{name}.x", X, -1, outs=(X,)) for name in norm.SCANS.split()]
LOOKUPS = [call(f"aten.{n}.x", T(9, 6), position(4), outs=(T(4, 6),)) for n in indexing.LOOKUPS.split()]
SCATTERS = [call(f"aten.{n}.x", T(9, 6), 0, position(4), T(4, 6), outs=(T(9, 6),)) for n in indexing.SCATTERS.split()]
PICKS = [call(f"aten.{n}.x", X, outs=(position(5, 4),)) for n in indexing.PICKS.split()]
LISTS = [
    call(f"{name}.x", (T(10), T(20)), outs=(T(10), T(20)))
    for name in RULES
    if name.startswith("aten._foreach") and "norm" not in name
]
COUNTED += [(op, 210, 1) for op in SUMS + SCANS] + [(op, 0, 1) for op in LOOKUPS]
COUNTED += [(op, 24, 1) for op in SCATTERS] + [(op, 0, 2) for op in PICKS]


@pytest.mark.parametrize(("op", "expected_flop", "n_kernels"), COUNTED, ids=[op.name for op, _, _ in COUNTED])
def test_flop_and_kernels_follow_a_closed_formula(op, expected_flop, n_kernels):
    assert (flop(op), len(lower(op).kernels)) == (expected_flop, n_kernels)


@pytest.mark.parametrize("op", LISTS, ids=lambda op: op.name)
def test_list_operators_count_once_per_element(op):
    per_element = (
        0 if "copy" in op.name or "zero" in op.name else 3 if any(w in op.name for w in ("addc", "lerp")) else 1
    )

    assert flop(op) == 30 * per_element


def test_every_rule_is_counted_here():
    tested = {".".join(op.name.split(".")[:2]) for op in [*LISTS, *(op for op, _, _ in COUNTED)]}
    tested |= {op.name for op, _, _ in COUNTED}

    assert set(RULES) - tested == set()


def test_no_operator_stands_in_two_families():
    assert sum(len(family.RULES) for family in FAMILIES) == len(RULES)


def test_an_unknown_operator_reads_its_tensors_and_writes_its_results_once():
    cost = lower(call("aten.some_new_op.default", T(10), T(10), 3, outs=(T(10),)))

    assert cost.host is HostKind.LIGHT
    assert cost.kernels == (Stream("some_new_op", 3 * 40, 10),)


def test_an_unknown_operator_on_nothing_launches_nothing():
    assert lower(call("aten.some_new_op.default", T(0), outs=(T(0),))).kernels == ()


@pytest.mark.parametrize("name", ["aten.view.default", "aten.t.default", "aten.empty.memory_format"])
def test_views_launch_nothing(name):
    assert lower(call(name, T(2, 3), outs=(T(3, 2),))).kernels == ()


def test_autograds_detach_is_free():
    assert lower(call("aten.detach.default", X, outs=(X,))).host is HostKind.FREE


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.integers(1, 9))
def test_a_product_moves_each_operand_once(m, n, k, batch):
    op = call("aten.bmm.default", T(batch, m, k), T(batch, k, n), outs=(T(batch, m, n),))

    assert moved_bytes(op) == 4 * batch * (m * k + k * n + m * n)


def test_a_product_over_nothing_writes_zeros():
    assert lower(call("aten.mm.default", T(3, 0), T(0, 5), outs=(T(3, 5),))).kernels == (Stream("fill", 60, 15),)


@pytest.mark.parametrize(
    ("columns", "aligned_to"),
    [pytest.param(64, 16, id="whole rows of 16"), pytest.param(1001, 1, id="an odd vocabulary")],
)
def test_alignment_is_that_of_the_rows_in_memory(columns, aligned_to):
    op = call("aten.mm.default", T(5, 64, dtype="float16"), T(64, columns, dtype="float16"))

    (kernel,) = lower(op).kernels
    assert kernel.aligned_to == aligned_to


def test_a_transposed_matrix_keeps_its_row_length():
    assert row_elements(TensorMeta((64, 1001), (1, 64))) == 64


def test_tf32_is_passed_on_to_the_product():
    (kernel,) = lower(call("aten.mm.default", T(8, 8), T(8, 8), tf32=True)).kernels

    assert isinstance(kernel, Gemm)
    assert kernel.tf32


def test_the_gradient_mask_leaves_passes_out():
    op = call("aten.convolution_backward.default", MAPS, IMAGE, WEIGHT, None, *CONV_TAIL[1:], (False, True, False))

    assert names(op) == ["conv wgrad"]


def test_a_transposed_convolution_is_the_gradient_of_a_plain_one():
    up = call(
        "aten.convolution.default", T(2, 4, 8, 9), T(4, 3, 2, 2), None, (2, 2), (0, 0), (1, 1), True, (0, 0), 1,
        outs=(T(2, 3, 16, 18),),
    )  # fmt: skip

    (kernel,) = lower(up).kernels
    assert isinstance(kernel, Conv)
    assert (kernel.direction, kernel.flop) == ("dgrad", 2 * 2 * 72 * 4 * 4 * 3)


def test_channels_last_is_noticed():
    x, y = TensorMeta.channels_last(2, 3, 8, 9), TensorMeta.channels_last(2, 4, 8, 9)

    (kernel,) = lower(call("aten.convolution.default", x, WEIGHT, *CONV_TAIL, outs=(y,))).kernels
    assert kernel.channels_last


@pytest.mark.parametrize(("length", "rows_per_block"), [(1024, 4), (1025, 1)])
def test_softmax_packs_rows_of_up_to_1024_into_a_block(length, rows_per_block):
    (kernel,) = lower(call("aten._softmax.default", T(6, length), -1, False, outs=(T(6, length),))).kernels

    assert isinstance(kernel, RowReduce)
    assert (kernel.n_rows, kernel.row_length, kernel.rows_per_block) == (6, length, rows_per_block)


def test_batch_norm_has_a_block_for_every_channel():
    (kernel,) = lower(call("aten.cudnn_batch_norm.default", X, outs=(X,))).kernels

    assert (kernel.n_rows, kernel.row_length) == (3, 70)


@pytest.mark.parametrize(("n_indices", "n_kernels"), [(3072, 2), (3073, 2 + 1 + 8)])
def test_an_embeddings_gradient_sorts_many_indices(n_indices, n_kernels):
    op = call("aten.embedding_dense_backward.default", T(n_indices, 4), position(n_indices), 9, outs=(T(9, 4),))

    assert len(lower(op).kernels) == n_kernels


def test_an_embeddings_gradient_writes_the_whole_table():
    fill = lower(call("aten.embedding_dense_backward.default", T(1, 4), position(1), 9, outs=(T(50_000, 4),))).kernels[
        0
    ]

    assert fill.moved_bytes == 50_000 * 4 * 4


def test_a_lookup_does_not_read_the_whole_table():
    assert moved_bytes(call("aten.embedding.default", T(50_000, 4), position(3), outs=(T(3, 4),))) == 3 * 8 + 2 * 48


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        pytest.param(T(4, 6), True, id="same layout"),
        pytest.param(TensorMeta((4, 6), (1, 4)), False, id="transposed"),
        pytest.param(T(4, 6, dtype="float16"), False, id="other dtype"),
        pytest.param(TensorMeta((4, 6), (0, 1)), False, id="expanded"),
    ],
)
def test_only_a_copy_that_changes_nothing_is_a_plain_one(source, plain):
    (kernel,) = lower(call("aten.copy_.default", T(4, 6), source, outs=(T(4, 6),))).kernels

    assert isinstance(kernel, DeviceCopy) is plain


def test_sgd_with_momentum_and_decay_moves_eleven_numbers_a_parameter():
    p = (T(1000), T(200))
    steps = [
        call("aten._foreach_add_.List", p, p, outs=p),  # gradient += decay * parameter
        call("aten._foreach_mul_.Scalar", p, 0.9, outs=p),
        call("aten._foreach_add_.List", p, p, outs=p),  # momentum += gradient
        call("aten._foreach_add_.List", p, p, outs=p),  # parameter -= rate * momentum
    ]

    assert sum(moved_bytes(step) for step in steps) == 11 * 4 * 1200


def test_fused_adam_moves_seven_numbers_a_parameter():
    lists = ((T(1000), T(200)),) * 4

    assert moved_bytes(call("aten._fused_adam_.default", *lists, (), (T(), T()))) == 7 * 4 * 1200


@given(st.lists(st.integers(0, 500_000), min_size=1, max_size=300), st.integers(1, 5))
def test_list_launches_cover_every_element_once_and_keep_the_limits(sizes, depth):
    launches = list(packed(sizes, depth))

    assert sum(sum(covered) for _, covered in launches) == sum(sizes)
    assert sum(blocks for blocks, _ in launches) == sum(-(-size // CHUNK_ELEMENTS) for size in sizes)
    assert all(blocks <= MAX_BLOCKS and len(covered) <= MAX_TENSORS[depth] for blocks, covered in launches)


def test_a_single_recurrent_step_is_two_products_and_the_gates():
    op = call("gpututor.rnn.forward", mode="gru", seq=1, batch=1, input=8, hidden=8, layers=1, directions=1)

    assert names(op) == ["rnn input", "rnn hidden", "rnn gates"]


def test_a_sequence_takes_a_step_and_the_gates_for_each_time():
    op = call("gpututor.rnn.forward", mode="gru", seq=6, batch=1, input=8, hidden=8, layers=1, directions=2)

    kernels = lower(op).kernels
    assert sum(isinstance(k, RnnStep) for k in kernels) == 2 * 6


def test_an_unknown_recurrent_mode_is_refused():
    with pytest.raises(KernelSpecError, match="mode 'mgu'; known: lstm, gru"):
        lower(call("gpututor.rnn.forward", mode="mgu"))


def test_a_causal_mask_halves_attentions_arithmetic():
    plain, causal = (flop(call("gpututor.attention.forward", *HEADS, causal=c)) for c in (False, True))

    assert causal == plain // 2


def test_fused_attention_never_writes_the_scores():
    q = tuple(T(1, 1, 4096, 64, dtype="float16") for _ in range(3))

    (kernel,) = lower(call("gpututor.attention.forward", *q)).kernels
    assert isinstance(kernel, Attention)
    assert kernel.moved_bytes == 4 * 4096 * 64 * 2


def test_reading_a_value_makes_the_host_wait():
    assert lower(call("aten._local_scalar_dense.default", T())).host is HostKind.SYNC


def test_a_missing_tensor_is_named():
    with pytest.raises(KernelSpecError, match=r"aten\.mm\.default needs a tensor as argument 1 and got 7"):
        lower(call("aten.mm.default", T(2, 2), 7))
