"""What deterministic algorithms launch more or otherwise, counted by hand."""

from __future__ import annotations

import pytest

from gpututor.model.kernels import Conv, Gemm, Stream
from gpututor.model.lowering import hangs_on_determinism, lower
from gpututor.model.spec import OpCall, TensorMeta

X, W, Y = (TensorMeta.contiguous(*shape) for shape in ((8, 16, 10, 10), (32, 16, 3, 3), (8, 32, 10, 10)))
NORMED = (Y, TensorMeta.contiguous(32), TensorMeta.contiguous(32))


def conv(dilation=1, x=X, groups=1, **switches):
    args = (x, W, None, (1, 1), (dilation,) * 2, (dilation,) * 2, False, (0, 0), groups)
    return OpCall("aten.convolution.default", args, outs=(Y,), **switches)


def backward(dilation=1, **switches):
    args = (Y, X, W, (0,), (1, 1), (dilation,) * 2, (dilation,) * 2, False, (0, 0), 1, (True, True, False))
    return OpCall("aten.convolution_backward.default", args, outs=(X, W), **switches)


def kinds(call):
    return [type(kernel).__name__ for kernel in lower(call).kernels]


def test_a_plain_convolution_stays_cudnns():
    assert lower(conv(deterministic=True)) == lower(conv())
    assert [type(k) for k in lower(conv()).kernels] == [Conv]


def test_a_dilated_one_is_unfolded_and_multiplied_sample_by_sample():
    assert kinds(conv(2, deterministic=True)) == ["Stream", "Gemm"] * 8
    assert kinds(conv(2)) == ["Conv"]


def test_its_backward_goes_through_the_samples_twice():
    assert kinds(backward(2, deterministic=True)) == ["Gemm", "Stream"] * 8 + ["Stream", "Gemm"] * 8


def test_the_products_have_the_convolutions_flop():
    products = [k for k in lower(conv(2, deterministic=True)).kernels if isinstance(k, Gemm)]

    assert sum(k.flop for k in products) == 2 * 8 * 32 * 100 * (16 * 9)


def test_columns_are_written_for_every_point_of_the_filter():
    columns = next(k for k in lower(conv(2, deterministic=True)).kernels if isinstance(k, Stream))

    assert columns.n_elements == 100 * 16 * 9


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(conv(2, TensorMeta.channels_last(8, 16, 10, 10), deterministic=True), id="channels_last"),
        pytest.param(conv(2, groups=2, deterministic=True), id="groups"),
    ],
)
def test_other_layouts_and_groups_stay_cudnns(call):
    assert "Gemm" not in kinds(call)


def test_filled_memory_costs_a_kernel_for_each_result():
    assert kinds(conv(filled=True)) == ["Stream", "Conv"]
    assert kinds(backward(filled=True))[:2] == ["Stream", "Stream"]


def test_a_convolution_and_a_norm_fill_nine_tensors_in_a_step():
    # ultralytics issue 26181 counts some 2,640 fills for some 300 of both
    norm = OpCall("aten.native_batch_norm.default", (Y, None, None, None, None, True, 0.1, 1e-5), outs=NORMED)
    norm_back = OpCall(
        "aten.native_batch_norm_backward.default",
        (Y, Y, None, None, None, *NORMED[1:], True, 1e-5, (True,) * 3),
        outs=NORMED,
    )
    calls = (conv(), norm, norm_back, backward())
    extra = [len(lower(filled(call)).kernels) - len(lower(call).kernels) for call in calls]

    assert extra == [1, 3, 3, 2]


def filled(call):
    return OpCall(call.name, call.args, call.kwargs, call.outs, filled=True)


def test_empty_memory_is_free_unless_it_is_filled():
    empty = OpCall("aten.empty.memory_format", ((8, 8),), outs=(TensorMeta.contiguous(8, 8),))

    assert lower(empty).kernels == ()
    assert [k.n_elements for k in lower(filled(empty)).kernels] == [64]


def test_sums_and_products_hang_on_neither():
    assert not hangs_on_determinism(OpCall("aten.add.Tensor", (Y, Y), outs=(Y,)))
    assert hangs_on_determinism(conv(2))
    assert hangs_on_determinism(OpCall("aten.empty.memory_format", ((8,),), outs=(W,)))
