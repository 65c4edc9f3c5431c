from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpututor.model.constants import group
from gpututor.model.cost import copy_ns, price
from gpututor.model.costs.gemm import product_floor_s
from gpututor.model.costs.rates import product_rate
from gpututor.model.costs.tiles import Product, fastest_tiling, starve, tilings
from gpututor.model.costs.walk import floor_s, l2_bytes_per_s, lone_sm_draw
from gpututor.model.spec import Attention, Conv, DeviceCopy, Gemm, Memset, RnnLayer, RnnStep, RowReduce, Stream
from tests.model.cards_for_tests import AMPERE_LIKE, PLAIN, SLOW_HOST, twice

KIB, MIB = 2**10, 2**20
sizes = st.integers(1, 3000)
small = st.integers(1, 40)


def gemm(m, n, k, **more):
    itemsize = 2 if more.get("number_format") in ("fp16", "bf16") else 4
    return Gemm("g", m, n, k, (m * k + k * n + m * n) * itemsize * more.get("batch", 1), **more)


def stream(n, passes=2):
    return Stream("s", 4 * n * passes, n, n)


def conv(direction, batch, c_in, c_out, side, **more):
    moved_bytes = 4 * (batch * (c_in + c_out) * side * side + 9 * c_in * c_out)
    return Conv("c", direction, batch, c_in, c_out, side * side, side * side, 9, moved_bytes, **more)


kernels = st.one_of(
    st.builds(gemm, sizes, sizes, sizes, number_format=st.sampled_from(["fp32", "fp16"]), batch=small),
    st.builds(stream, st.integers(1, 10**7)),
    st.builds(lambda r, c: RowReduce("r", r, c, 8 * r * c, r * c), sizes, sizes),
    st.builds(conv, st.sampled_from(["fprop", "dgrad", "wgrad"]), small, small, small, small),
    st.builds(lambda b, h, f: RnnStep("n", 4, b, h, f), small, sizes, st.sampled_from(["fp32", "fp16"])),
    st.builds(lambda s, b, h, g: RnnLayer("l", "lstm", 4, s, b, h, "fp16", g), small, small, sizes, st.booleans()),
    st.builds(lambda r, w: Attention("a", 8, r, r, w, 8 * 4 * r * w * 2), sizes, small),
    st.builds(lambda n: DeviceCopy("d", n), st.integers(0, 10**9)),
    st.builds(lambda n: Memset("m", n), st.integers(0, 10**9)),
)


@given(kernels, st.sampled_from([PLAIN, AMPERE_LIKE]))
@settings(deadline=None)
def test_no_kernel_beats_the_roofline(spec, card):
    priced = price(spec, card)
    work = priced.work
    peak = card.peak(work.number_format or "fp32") if work.tensor_core else card.peak("fp32")

    limit_s = max((work.flop or 0) / peak, work.moved_bytes / card.bandwidth_bytes_per_s)
    assert priced.duration_ns >= int(limit_s * 1e9)


@given(kernels)
@settings(deadline=None)
def test_a_card_with_twice_the_rates_is_never_slower(spec):
    assert price(spec, twice(PLAIN)).duration_ns <= price(spec, PLAIN).duration_ns


@given(sizes, sizes, sizes, st.sampled_from("mnk"), st.integers(1, 500))
@settings(deadline=None)
def test_a_larger_product_is_never_faster(m, n, k, grown, by):
    before = {"m": m, "n": n, "k": k}
    after = before | {grown: before[grown] + by}

    assert price(gemm(**after), PLAIN).duration_ns >= price(gemm(**before), PLAIN).duration_ns


@given(st.integers(1, 10**7), st.integers(1, 10**6))
def test_more_elements_never_take_less_time(n, by):
    assert price(stream(n + by), PLAIN).duration_ns >= price(stream(n), PLAIN).duration_ns


@given(st.integers(1, 4), sizes, sizes)
def test_more_or_longer_rows_never_take_less_time(per_block, rows, length):
    def reduce(r, c):
        return price(RowReduce("r", r, c, 8 * r * c, r * c, "fp32", per_block), PLAIN).duration_ns

    assert reduce(rows + 1, length) >= reduce(rows, length) - 1  # a nanosecond of rounding
    assert reduce(rows, length + 1) >= reduce(rows, length) - 1


def test_a_large_elementwise_kernel_takes_its_bytes_over_the_bandwidth():
    n = 25_000_000  # 2 passes of 4 bytes: 200 MB at 100 GB/s is 2 ms

    assert price(stream(n), PLAIN).duration_ns == pytest.approx(2e6 + floor_s() * 1e9, rel=1e-3)


def test_an_elementwise_kernel_has_a_block_for_every_512_elements():
    assert [price(stream(n), PLAIN).work.n_blocks for n in (1, 512, 513, 5120)] == [1, 1, 2, 10]


def test_an_empty_looking_kernel_still_takes_the_floor():
    assert price(stream(1), PLAIN).duration_ns >= floor_s() * 1e9


def test_one_block_draws_only_its_sms_share_of_the_bandwidth():
    slow = replace(PLAIN, bandwidth_bytes_per_s=20e9)
    one = RowReduce("one row", 1, 10 * MIB, 100_000_000, threads_per_block=1024)

    seconds = price(one, slow).duration_ns / 1e9 - floor_s()
    assert seconds == pytest.approx(100e6 / (20e9 / slow.n_sms * lone_sm_draw()), rel=1e-6)


def test_a_block_of_half_the_threads_takes_twice_as_long_where_they_wait_for_memory():
    fast = replace(PLAIN, bandwidth_bytes_per_s=10e12)
    rows = [RowReduce("one row", 1, 10 * MIB, 100_000_000, threads_per_block=n) for n in (512, 256)]

    of_512, of_256 = (price(row, fast).duration_ns - floor_s() * 1e9 for row in rows)
    assert of_256 == pytest.approx(2 * of_512, rel=1e-6)


@pytest.mark.parametrize("n_waves", [1, 2, 5])
def test_a_block_left_over_after_whole_waves_takes_as_long_as_it_does_alone(n_waves):
    def walking_ns(n_rows):
        rows = RowReduce("rows", n_rows, MIB, 10 * MIB * n_rows, threads_per_block=1024)
        return price(rows, PLAIN).duration_ns - floor_s() * 1e9

    at_once = PLAIN.n_sms * (PLAIN.max_warps_per_sm // 32)
    whole = n_waves * at_once

    assert walking_ns(whole + 1) - walking_ns(whole) == pytest.approx(walking_ns(1), abs=2)


@pytest.mark.parametrize(("row_kib", "read_from_memory"), [(1, 0), (100, 1)])
def test_rows_read_again_come_from_l2_while_they_fit(row_kib, read_from_memory):
    n_rows, row_bytes = 1000, row_kib * KIB  # PLAIN has 1 MiB of L2 and works on 20 such rows at once
    rows = RowReduce(
        "norm",
        n_rows,
        row_bytes // 4,
        2 * n_rows * row_bytes,
        threads_per_block=1024,
        again_bytes=n_rows * row_bytes,
        row_bytes=row_bytes,
    )

    assert price(rows, PLAIN).work.moved_bytes == (2 + read_from_memory) * n_rows * row_bytes


def test_reading_again_from_l2_takes_its_bandwidth():
    rows = RowReduce("norm", 10_000, 256, 20_480_000, threads_per_block=1024)
    again = replace(rows, again_bytes=10_240_000, row_bytes=1024)

    longer_s = (price(again, PLAIN).duration_ns - price(rows, PLAIN).duration_ns) * 1e-9
    assert longer_s == pytest.approx(10_240_000 / l2_bytes_per_s(PLAIN), rel=0.01)


def test_a_reduction_that_may_split_fills_the_card():
    alone = RowReduce("sum", 1, 10 * MIB, 40 * MIB, threads_per_block=512)
    split = replace(alone, split=True)

    assert price(alone, PLAIN).work.n_blocks == 1
    assert price(split, PLAIN).work.n_blocks == PLAIN.n_sms * (PLAIN.max_warps_per_sm // 16)


def test_blocks_per_sm_come_from_the_warps_that_fit():
    work = price(stream(1), PLAIN).work  # 128 threads are 4 warps, and 64 fit

    assert work.blocks_per_sm == 16


def test_one_tile_more_than_the_sms_costs_a_second_round():
    def at_most(n):  # a card of 10 SMs and tiles of 32 by 32 only
        rate = product_rate("fp32", False, 16, PLAIN)
        whole = tilings(Product(32, 32 * n, 1000, 1), rate, PLAIN, may_split=False)
        return [t for t in whole if t.n_blocks == n][-1].seconds

    assert at_most(11) == pytest.approx(2 * at_most(10))


def test_a_tile_of_128_runs_at_the_sustained_rate_after_its_start():
    k = 1000
    rate = product_rate("fp32", False, 16, PLAIN)

    best = fastest_tiling(Product(1280, 128, k, 1), rate, PLAIN, may_split=False)  # one tile for each of 10 SMs
    started_s = (group("tiles").tile_us + group("tiles").tile_area_us) * 1e-6
    assert best.seconds == pytest.approx(2 * 1280 * 128 * (k + group("tiles").extra_k) / 1e12 + started_s)


@pytest.mark.parametrize(("capability", "rate_share"), [("7.0", 1.0), ("8.0", 0.5), ("6.1", 0.5)])
def test_a_batch_of_narrow_fp32_results_wastes_half_of_the_only_tile(capability, rate_share):
    card = replace(AMPERE_LIKE, compute_capability=capability)
    narrow, wide = gemm(1280, 64, 4096, batch=10), gemm(1280, 128, 4096, batch=10)

    def per_flop(spec):
        return (price(spec, card).duration_ns - product_floor_s() * 1e9) / spec.flop

    assert per_flop(wide) / per_flop(narrow) == pytest.approx(rate_share, rel=0.05)


def test_small_tiles_starve_self_fed_tensor_cores_less():
    older = product_rate("fp16", False, 16, PLAIN)

    assert starve(older, replace(PLAIN, compute_capability="9.0")) < starve(older, PLAIN)


def test_a_long_inner_dimension_is_split_over_more_blocks():
    work = price(gemm(32, 32, 200_000), PLAIN).work

    assert work.n_blocks > 1


def test_the_smallest_product_takes_the_products_floor():
    assert price(gemm(1, 1, 1), PLAIN).duration_ns >= product_floor_s() * 1e9


@pytest.mark.parametrize(
    ("card", "spec", "expected"),
    [
        pytest.param(PLAIN, gemm(64, 64, 64), ("fp32", False), id="fp32"),
        pytest.param(PLAIN, gemm(64, 64, 64, tf32=True), ("fp32", False), id="TF32 before Ampere"),
        pytest.param(AMPERE_LIKE, gemm(64, 64, 64, tf32=True), ("tf32", True), id="TF32 on Ampere"),
        pytest.param(PLAIN, gemm(64, 64, 64, number_format="fp16"), ("fp16", True), id="fp16"),
        pytest.param(PLAIN, gemm(64, 64, 64, number_format="bf16"), ("fp32", False), id="bf16 before Ampere"),
        pytest.param(
            replace(PLAIN, compute_capability="6.0"),
            gemm(64, 64, 64, number_format="fp16"),
            ("fp32", False),
            id="fp16 without tensor cores",
        ),
    ],
)
def test_format_and_unit_of_a_product(card, spec, expected):
    work = price(spec, card).work

    assert (work.number_format, work.tensor_core) == expected


def test_an_odd_row_length_costs_tensor_cores_half_their_rate():
    even = gemm(4096, 4096, 4096, number_format="fp16")
    odd = replace(even, aligned_to=1)

    ratio = price(odd, PLAIN).duration_ns / price(even, PLAIN).duration_ns
    assert 1.8 < ratio <= 2.0


def test_tensor_core_convolutions_pay_for_reordering_nchw():
    nchw = conv("fprop", 8, 64, 64, 32, number_format="fp16")
    extra_bytes = 2 * group("conv").layout_share * 2 * 8 * (64 + 64) * 32 * 32  # 2 bytes an element

    priced, last = price(nchw, PLAIN), price(replace(nchw, channels_last=True), PLAIN)
    assert priced.work.moved_bytes - last.work.moved_bytes == pytest.approx(extra_bytes, abs=1)
    assert priced.duration_ns > last.duration_ns


def test_tf32_never_makes_a_convolution_slower():
    plain = conv("fprop", 2, 64, 8, 128)

    assert price(replace(plain, tf32=True), AMPERE_LIKE).duration_ns <= price(plain, AMPERE_LIKE).duration_ns


def test_a_recurrent_step_takes_the_librarys_floor():
    assert price(RnnStep("step", 4, 1, 1), PLAIN).duration_ns >= 23e3 - 3.3e3


def test_a_pageable_copy_runs_at_the_hosts_slower_rate():
    n_bytes = 40_000_000

    pinned = copy_ns(n_bytes, PLAIN, SLOW_HOST, "to GPU", pinned=True)
    pageable = copy_ns(n_bytes, PLAIN, SLOW_HOST, "to GPU", pinned=False)
    assert (pinned, pageable) == (pytest.approx(4e6, rel=1e-3), pytest.approx(10e6, rel=1e-3))


def test_a_narrow_link_limits_a_fast_host():
    narrow = replace(PLAIN, pcie_lanes=1)  # 0.985 GB/s, of which 80 % arrive

    assert copy_ns(788_000_000, narrow, SLOW_HOST, "to GPU", pinned=True) == pytest.approx(1e9, rel=1e-3)
