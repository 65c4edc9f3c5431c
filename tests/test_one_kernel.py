"""One kernel alone: its SMs, its limits, and other numbers of rows, against counts on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.cards import card, machine
from gpututor.errors import KernelSpecError, TimelineError
from gpututor.ledger import Account
from gpututor.model.kernels import Gemm, RowReduce, Stream
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp
from gpututor.one_kernel import (
    alone,
    explained,
    fill_by_rows,
    first_kernel,
    first_span,
    largest_loss,
    roof,
    rows_for_free,
    waves,
    with_rows,
)
from gpututor.replay import play
from gpututor.timeline import KernelWork

V100, T4 = card("V100"), card("T4")
ROW = RowReduce("softmax", 1, 1 << 20, 14 << 20, 5 << 20, threads_per_block=1024)
FOUR_SMS = replace(V100, n_sms=4)


def played(spec):
    tape = Tape("one", [BeginStep(), TapeOp("op", HostKind.LIGHT, "no_grad", (spec,)), Sync("end"), EndRun()], [None])
    return play(tape, machine("p3.2xlarge"))


def went(n_blocks, resident=1):
    return waves(KernelWork("k", n_blocks=n_blocks, blocks_per_sm=resident), FOUR_SMS)


# --- waves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_blocks", "resident", "shares"),
    [
        (1, 1, (1, 0, 0, 0)),
        (3, 2, (1, 1, 1, 0)),
        (4, 1, (1, 1, 1, 1)),
        (5, 1, (1, 0.5, 0.5, 0.5)),  # two waves, one block in the second
        (7, 2, (1, 1, 1, 1)),  # one wave of up to eight
        (9, 2, (1, 0.5, 0.5, 0.5)),
        (10, 1, (1, 1, 2 / 3, 2 / 3)),
    ],
)
def test_each_sm_has_work_in_the_waves_that_reach_it(n_blocks, resident, shares):
    assert went(n_blocks, resident).sm_shares == pytest.approx(shares)


@pytest.mark.parametrize(
    ("n_blocks", "words"),
    [
        (1, "1 block for 4 SMs: 3 SMs never get one."),
        (3, "3 blocks for 4 SMs: 1 SM never gets one."),
        (4, "4 blocks in one wave: all 4 SMs have one to the end."),
        (8, "8 blocks in 2 waves: all 4 SMs have one to the end."),
        (5, "5 blocks in 2 waves; in the last one 3 of 4 SMs get none."),
    ],
)
def test_the_waves_are_told_in_words(n_blocks, words):
    assert went(n_blocks).in_words == words


@given(n_rows=st.integers(1, 700))
def test_the_picture_and_the_ledger_agree_on_the_fill(n_rows):
    one = alone(with_rows(ROW, n_rows), V100)
    shares = waves(one.work, V100).sm_shares

    assert one.ledger.sm_fill_share == pytest.approx(sum(shares) / len(shares), abs=1e-5)


def test_a_kernel_that_does_not_say_its_blocks_has_no_waves():
    with pytest.raises(TimelineError, match="doesn't say how many blocks"):
        waves(KernelWork("k"), V100)


# --- rows ------------------------------------------------------------------------------------------------------


def test_ten_rows_are_ten_times_the_work():
    ten = with_rows(ROW, 10)

    assert (ten.n_rows, ten.moved_bytes, ten.flop) == (10, 10 * ROW.moved_bytes, 10 * ROW.flop)


def test_only_a_kernel_of_rows_has_rows():
    with pytest.raises(KernelSpecError, match="doesn't work on rows"):
        with_rows(Stream("add", 12, 1), 2)


@pytest.mark.parametrize("chosen", [V100, T4], ids=lambda each: each.name)
def test_fill_rises_to_one_block_an_sm_and_falls_after_the_first_wave(chosen):
    at_once = chosen.n_sms * (chosen.max_warps_per_sm // 32)
    fill = dict(fill_by_rows(ROW, chosen, at_once + 1))

    expected = {1: 1 / chosen.n_sms, chosen.n_sms: 1, at_once: 1, at_once + 1: (1 + 1 / chosen.n_sms) / 2}
    assert fill == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("chosen", [V100, T4], ids=lambda each: each.name)
@given(n_rows=st.integers(1, 360))
def test_between_its_bends_the_fill_is_a_straight_line(chosen, n_rows):
    bends = fill_by_rows(ROW, chosen, 360)
    before = max(point for point in bends if point[0] <= n_rows)
    after = min(point for point in bends if point[0] >= n_rows)
    along = (n_rows - before[0]) / max(1, after[0] - before[0])

    seen = alone(with_rows(ROW, n_rows), chosen).ledger.sm_fill_share
    assert seen == pytest.approx(before[1] + along * (after[1] - before[1]), abs=1e-5)


@given(n_rows=st.integers(1, 700))
def test_another_row_never_saves_time(n_rows):
    assert alone(with_rows(ROW, n_rows + 1), V100).duration_ns >= alone(with_rows(ROW, n_rows), V100).duration_ns


def test_rows_are_free_until_they_fill_the_memorys_bandwidth():
    # a block of 1,024 threads draws 19 MB/s each, 19.5 GB/s, and 90.5 % of 900 GB/s is full with 41.9 of them
    assert rows_for_free(ROW, V100, 320) == 41


# --- limits ----------------------------------------------------------------------------------------------------


def test_the_limits_are_bytes_over_bandwidth_and_flop_over_peak():
    limits = roof(played(Stream("add", 900_000_000, 1 << 26, 15_700_000)))

    assert (limits.bytes_ns, limits.flop_ns) == pytest.approx((1e6, 1e3))  # of 900 GB/s and 15.7 TFLOP/s


def test_a_product_is_measured_against_its_own_formats_peak():
    limits = roof(played(Gemm("mm", 5000, 5000, 2500, 100_000_000, "fp16")))

    assert limits.flop_ns == pytest.approx(1e6)  # 125 GFLOP at 125 TFLOP/s
    assert limits.number_format == "fp16"


@pytest.mark.parametrize(
    "spec",
    [ROW, Stream("add", 12 << 26, 1 << 26, 1 << 26), Gemm("mm", 8192, 8192, 8192, 3 << 28)],
    ids=lambda spec: spec.name,
)
def test_no_kernel_beats_its_limit(spec):
    assert 0 < roof(played(spec)).reached_share <= 1


def test_every_line_of_the_waterfall_below_busy_is_explained():
    told = explained(played(ROW))

    assert {"too_few_blocks", "memory_bound", "latency_bound", "slower_format", "last_wave_tail", "mfu"} <= set(told)
    assert told["too_few_blocks"] == "1 block for 80 SMs: 79 SMs never get one."


def test_the_largest_loss_of_a_lone_block_is_the_empty_card():
    assert largest_loss(alone(ROW, V100).ledger) is Account.TOO_FEW_BLOCKS


# --- nothing there ---------------------------------------------------------------------------------------------


def test_a_tape_without_kernels_says_so():
    with pytest.raises(TimelineError, match="launched no kernel"):
        first_kernel(Tape("nothing", [BeginStep(), Sync("end"), EndRun()], [None]))


def test_a_timeline_without_kernels_says_so():
    timeline = Tape("nothing", [BeginStep(), Sync("end"), EndRun()], [None]).price(machine("p3.2xlarge"))

    with pytest.raises(TimelineError, match="no kernel that says what it did"):
        first_span(timeline)
