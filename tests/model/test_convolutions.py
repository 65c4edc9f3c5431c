"""Convolutions: ways of computing them, counted by hand, and DeepBench's measurements beside them."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpututor.model.cost import price
from gpututor.model.costs.conv import conv_product, implicit_gemm, is_ragged
from gpututor.model.costs.rates import product_rate
from gpututor.model.costs.winograd import fused, n_tiles, unfused, winograd
from gpututor.model.kernels import Conv
from gpututor.model.lowering import lower
from gpututor.model.spec import OpCall, TensorMeta
from tests.model.cards_for_tests import AMPERE_LIKE, PLAIN

FP32 = product_rate("fp32", False, 1, PLAIN)
PASSES = ("fprop", "dgrad", "wgrad")
ONE_STEP = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
small, sides = st.integers(1, 24), st.integers(1, 40)


def three_by_three(way, batch, c_in, c_out, rows, columns, **more):
    """A 3x3 convolution over every pixel."""
    itemsize = 2 if more.get("number_format") == "fp16" else 4
    moved_bytes = itemsize * (batch * (c_in + c_out) * rows * columns + 9 * c_in * c_out // more.get("groups", 1))
    pixels = rows * columns
    sizes = {"winograd_rows": rows, "winograd_columns": columns} | more
    return Conv("c", way, batch, c_in, c_out, pixels, pixels, 9, moved_bytes, **sizes)


drawn = st.builds(
    three_by_three, st.sampled_from(PASSES), small, small, small, sides, sides,
    number_format=st.sampled_from(["fp32", "fp16"]), tf32=st.booleans(), channels_last=st.booleans(),
)  # fmt: skip


@given(small, sides, sides, st.sampled_from([2, 4]))
def test_tiles_cover_the_images_and_no_row_or_column_of_tiles_is_empty(batch, rows, columns, tile):
    n = n_tiles(three_by_three("fprop", batch, 8, 8, rows, columns), tile)

    assert batch * rows * columns <= n * tile**2 < batch * (rows + tile) * (columns + tile)


def test_fused_tiles_need_16_products_where_the_direct_method_needs_36():
    spec = three_by_three("fprop", 2, 16, 16, 8, 12)

    assert fused(spec, PLAIN, FP32)[1].flop * 36 == spec.flop * 16


@pytest.mark.parametrize("way", PASSES)
def test_unfused_tiles_need_36_products_where_the_direct_method_needs_144(way):
    spec = three_by_three(way, 2, 16, 16, 8, 12)

    assert unfused(spec, PLAIN, FP32)[1].flop * 144 == spec.flop * 36


def test_an_image_of_7_by_7_takes_as_many_products_as_one_of_8_by_8():
    work = [unfused(three_by_three("fprop", 2, 16, 16, side, side), PLAIN, FP32)[1].flop for side in (7, 8)]

    assert work[0] == work[1]


@pytest.mark.parametrize(("way", "n_ways"), [("fprop", 2), ("dgrad", 2), ("wgrad", 1)])
def test_weight_gradients_have_no_fused_kernel(way, n_ways):
    assert len(list(winograd(three_by_three(way, 2, 16, 16, 8, 8), PLAIN, FP32))) == n_ways


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(three_by_three("fprop", 2, 16, 16, 8, 8, groups=2), id="groups"),
        pytest.param(three_by_three("fprop", 2, 16, 16, 8, 8, winograd_rows=0), id="strides"),
    ],
)
def test_winograd_is_for_whole_filters_in_single_steps(spec):
    assert not list(winograd(spec, PLAIN, FP32))


def test_winograd_is_not_for_tensor_cores():
    rate = product_rate("fp16", False, 16, PLAIN)

    assert not list(winograd(three_by_three("fprop", 2, 16, 16, 8, 8, number_format="fp16"), PLAIN, rate))


def test_winograd_makes_a_large_convolution_faster():
    spec = three_by_three("fprop", 32, 256, 256, 56, 56)

    assert price(spec, PLAIN).duration_ns < 0.7 * price(replace(spec, winograd_rows=0), PLAIN).duration_ns


@given(drawn, st.sampled_from([PLAIN, AMPERE_LIKE]))
@settings(deadline=None)
def test_no_way_beats_the_roofline_of_its_own_arithmetic(spec, card):
    priced = price(spec, card)
    peak = card.peak(priced.work.number_format) if priced.work.tensor_core else card.peak("fp32")

    assert priced.duration_ns >= int(max(priced.work.flop / peak, spec.moved_bytes / card.bandwidth_bytes_per_s) * 1e9)


@given(drawn, small)
@settings(deadline=None)
def test_more_images_never_take_less_time(spec, more):
    grown = three_by_three(
        spec.direction, spec.batch + more, spec.c_in, spec.c_out, spec.winograd_rows, spec.winograd_columns,
        number_format=spec.number_format, tf32=spec.tf32, channels_last=spec.channels_last,
    )  # fmt: skip

    assert price(grown, AMPERE_LIKE).duration_ns >= price(spec, AMPERE_LIKE).duration_ns


def test_narrow_groups_share_a_tile():
    product = conv_product(three_by_three("fprop", 2, 128, 128, 8, 8, groups=32), tensor_core=True)  # 32 groups of 4

    assert (product.batch, product.n, product.k) == (4, 32, 9 * 32)


def test_a_kernel_without_reordering_is_taken_where_reordering_costs_more():
    thin = Conv("c", "fprop", 64, 64, 64, 56**2, 56**2, 1, 2 * 64 * (64 + 64) * 56**2, number_format="fp16")

    assert price(thin, replace(PLAIN, bandwidth_bytes_per_s=10e9)).work.moved_bytes == thin.moved_bytes
    assert price(thin, replace(PLAIN, bandwidth_bytes_per_s=1e12)).work.moved_bytes > thin.moved_bytes


@pytest.mark.parametrize("way", ["dgrad", "wgrad"])
def test_gradients_of_wide_groups_are_slow_with_channels_last(way):
    last = three_by_three(way, 8, 128, 128, 28, 28, groups=4, number_format="fp16", channels_last=True)

    assert price(last, PLAIN).duration_ns > price(replace(last, channels_last=False), PLAIN).duration_ns


def test_the_fastest_way_is_taken():
    spec = three_by_three("fprop", 8, 64, 64, 28, 28)
    ways = [implicit_gemm(spec, PLAIN, FP32), *winograd(spec, PLAIN, FP32)]

    assert price(spec, PLAIN).duration_ns == round(min(seconds for seconds, _ in ways) * 1e9)


def convolution(x, w, stride=(1, 1), dilation=(1, 1)):
    y = TensorMeta.contiguous(x.shape[0], w.shape[0], 8, 9)
    tail = (None, stride, (1, 1), dilation, False, (0, 0), 1)
    return lower(OpCall("aten.convolution.default", (x, w, *tail), (), (y,))).kernels


@pytest.mark.parametrize(
    ("filter_side", "stride", "dilation", "rows"),
    [(3, (1, 1), (1, 1), 8), (3, (2, 2), (1, 1), 0), (3, (1, 1), (2, 2), 0), (5, (1, 1), (1, 1), 0)],
)
def test_lowering_says_where_winograd_applies(filter_side, stride, dilation, rows):
    x, w = TensorMeta.contiguous(2, 4, 8, 9), TensorMeta.contiguous(4, 4, filter_side, filter_side)

    (kernel,) = convolution(x, w, stride, dilation)
    assert kernel.winograd_rows == rows


WHOLE = {False: TensorMeta.contiguous(2, 8, 8, 9), True: TensorMeta.channels_last(2, 8, 8, 9)}


@pytest.mark.parametrize("last", [False, True])
def test_a_slice_of_channels_is_copied_first_and_keeps_its_order(last):
    half = TensorMeta((2, 4, 8, 9), WHOLE[last].stride)

    copy, kernel = convolution(half, TensorMeta.contiguous(4, 4, 3, 3))
    assert (copy.moved_bytes, kernel.channels_last) == (2 * half.n_bytes, last)


def test_both_gradients_copy_a_sliced_input_once():
    half, maps = TensorMeta((2, 4, 8, 9), WHOLE[False].stride), TensorMeta.contiguous(2, 4, 8, 9)
    call = (maps, half, TensorMeta.contiguous(4, 4, 3, 3), None, *ONE_STEP, (True, True, False))

    kernels = lower(OpCall("aten.convolution_backward.default", call, (), (half,))).kernels
    assert [kernel.name for kernel in kernels] == ["contiguous", "conv dgrad", "conv wgrad"]


def deepbench_errors(group, change=lambda spec: spec):
    from tools.calibrate.conv import deepbench

    rows = [row for row in deepbench() if row[0] == group]
    return [abs((price(change(spec), on).duration_ns / 1e9 + launch_s) / s - 1) for _, spec, on, s, launch_s in rows]


@pytest.mark.parametrize(
    ("group", "bound"),
    [
        ("NV_V100 fp32 fprop", 0.15),
        ("NV_V100 fp32 dgrad", 0.25),
        ("NV_V100 fp32 wgrad", 0.28),
        ("NV_T4 fp32 fprop", 0.2),
    ],
)
def test_deepbench_convolutions_are_met_in_the_median(shared, group, bound):
    errors = deepbench_errors(group)

    assert len(errors) >= 80
    assert median(errors) < bound  # a like model reached 8, 20 and 25 % in these tables


@pytest.mark.parametrize("way", PASSES)
def test_winograd_brings_deepbenchs_convolutions_nearer(shared, way):
    group = f"NV_V100 fp32 {way}"

    assert median(deepbench_errors(group)) < median(
        deepbench_errors(group, lambda spec: replace(spec, winograd_rows=0))
    )


@pytest.mark.parametrize(
    ("channels", "direction", "channels_last", "number_format", "ragged"),
    [
        (36, "dgrad", True, "fp16", True),
        (36, "wgrad", True, "bf16", True),
        (40, "dgrad", True, "fp16", False),  # whole pieces of 8 channels
        (36, "fprop", True, "fp16", False),
        (36, "dgrad", False, "fp16", False),
        (36, "dgrad", True, "fp32", False),
    ],
)
def test_gradients_of_odd_widths_are_ragged_in_16_bits_with_channels_last(
    channels, direction, channels_last, number_format, ragged
):
    spec = Conv(
        "conv",
        direction,
        8,
        channels,
        channels,
        196,
        196,
        9,
        10**6,
        channels,
        number_format,
        channels_last=channels_last,
    )

    assert is_ragged(spec) is ragged
