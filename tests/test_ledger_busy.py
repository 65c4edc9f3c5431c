import pytest

from gpututor.cards import card
from gpututor.ledger import Account, charge
from gpututor.timeline import KernelWork, Label, Origin
from tests.draw import MS, US, draw

A = Account
V100 = card("V100-SXM2-16GB")  # 80 SMs, 15.7 TFLOP/s fp32, 125 TFLOP/s fp16
FULL = {"n_blocks": 80, "blocks_per_sm": 1}


def shares_of(work, row="##########", on=V100):
    ledger = charge(draw(gpu=row, work=work, unit_ns=MS), on)
    return {a: pytest.approx(ns / (10 * MS), abs=1e-6) for a, ns in ledger.charged_ns.items() if ns}


def test_a_kernel_at_the_cards_best_rate_is_useful_from_end_to_end():
    best = KernelWork(flop=V100.top_peak_flop_per_s * 10e-3, moved_bytes=0, number_format="fp16", **FULL)

    assert shares_of(best) == {A.USEFUL: 1}


def test_one_block_uses_one_sm():
    one = KernelWork(flop=0, moved_bytes=0, n_blocks=1, number_format="fp32")

    assert shares_of(one) == {A.TOO_FEW_BLOCKS: 79 / 80, A.LATENCY_BOUND: 1 / 80}


def test_a_block_more_than_a_wave_costs_a_second_wave():
    work = KernelWork(flop=0, moved_bytes=0, n_blocks=161, blocks_per_sm=2, number_format="fp32")

    assert shares_of(work) == {A.LAST_WAVE_TAIL: 79 / 160, A.LATENCY_BOUND: 81 / 160}


def test_an_sm_with_one_block_of_several_it_could_hold_is_filled():
    work = KernelWork(flop=0, moved_bytes=0, n_blocks=80, blocks_per_sm=8, number_format="fp32")

    assert shares_of(work) == {A.LATENCY_BOUND: 1}


def test_single_precision_on_a_card_with_tensor_cores_runs_in_a_slower_format():
    fp32 = KernelWork(flop=V100.peak("fp32") * 10e-3, moved_bytes=0, number_format="fp32", **FULL)
    useful = V100.peak("fp32") / V100.peak("fp16")

    assert shares_of(fp32) == {A.USEFUL: useful, A.SLOWER_FORMAT: 1 - useful}


def test_a_kernel_that_only_moves_bytes_is_memory_bound():
    stream = KernelWork(flop=0, moved_bytes=V100.bandwidth_bytes_per_s * 8e-3, number_format="fp32", **FULL)

    assert shares_of(stream) == {A.MEMORY_BOUND: 0.8, A.LATENCY_BOUND: 0.2}


def test_bytes_that_move_while_the_arithmetic_runs_cost_nothing():
    both = KernelWork(
        flop=V100.peak("fp16") * 10e-3,
        moved_bytes=V100.bandwidth_bytes_per_s * 10e-3,
        number_format="fp16",
        **FULL,
    )

    assert shares_of(both) == {A.USEFUL: 1}


def test_padding_is_charged_apart_from_useful_work():
    flop = V100.peak("fp16") * 10e-3
    padded = KernelWork(flop=flop, useful_flop=0.75 * flop, moved_bytes=0, number_format="fp16", **FULL)

    assert shares_of(padded) == {A.USEFUL: 0.75, A.RECOMPUTE_AND_PADDING: 0.25}


def test_a_kernel_without_flop_is_not_broken_down_beyond_its_blocks():
    assert shares_of(KernelWork(n_blocks=40)) == {A.TOO_FEW_BLOCKS: 0.5, A.BUSY_UNSPLIT: 0.5}


def test_without_a_card_the_number_of_sms_in_the_label_still_gives_the_fill():
    label = Label(Origin.RECORDED, card="a card of tomorrow", n_sms=160)
    ledger = charge(draw(gpu="####", work=KernelWork(flop=1.0, n_blocks=80), label=label))

    assert ledger.sm_fill_share == 0.5
    assert ledger.mfu is None
    assert "peak" in ledger.reasons["mfu"]


def test_the_card_named_in_the_label_is_used():
    label = Label(Origin.RECORDED, card="Tesla V100-SXM2-16GB")

    assert charge(draw(gpu="#", label=label)).card.name == "V100-SXM2-16GB"


def test_a_memset_without_detail_is_memory_bound_and_spoils_no_gauge():
    ledger = charge(draw(gpu="ZZZZ"), V100)

    assert ledger.charged_ns[A.MEMORY_BOUND] == 4 * US
    assert ledger.mfu == 0


def test_a_kernel_that_is_a_copy_within_the_gpu_needs_no_blocks():
    copy = KernelWork(kind="copy on GPU", flop=0, moved_bytes=V100.bandwidth_bytes_per_s * 10e-3)

    assert shares_of(copy) == {A.MEMORY_BOUND: 1}


def test_two_kernels_that_each_fill_half_fill_the_card_together():
    half = KernelWork(flop=0, moved_bytes=0, n_blocks=40, number_format="fp32")
    ledger = charge(draw(gpu_a="####", gpu_b="####", work=half), V100)

    assert ledger.sm_fill_share == 1
    assert ledger.busy_share == 1


def test_flop_of_kernels_at_the_same_time_add_up():
    fifth = KernelWork(flop=V100.peak("fp16") * 0.2 * 10e-3, moved_bytes=0, number_format="fp16", **FULL)
    ledger = charge(draw(gpu_a="##########", gpu_b="##########", work=fifth, unit_ns=MS), V100)

    assert ledger.mfu == pytest.approx(0.4)


def test_useful_flop_of_a_kernel_that_sticks_out_count_in_part():
    work = KernelWork(flop=1e6, moved_bytes=0, number_format="fp32", **FULL)
    ledger = charge(draw(gpu="####", window=(1, 4), work=work), V100)

    assert ledger.useful_flop == pytest.approx(0.75e6)


def test_a_faster_cards_peak_never_raises_mfu():
    work = KernelWork(flop=1e9, moved_bytes=1e6, number_format="fp16", n_blocks=1000, blocks_per_sm=4)
    drawn = draw(gpu="####", work=work, unit_ns=MS)

    assert charge(drawn, card("A100-SXM4-80GB")).mfu <= charge(drawn, V100).mfu
