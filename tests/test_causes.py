import pytest

from gpututor.cards import card
from gpututor.causes import RULES, Cause, Gain, find_causes
from gpututor.ledger import Account, charge
from gpututor.timeline import KernelWork, Label, Origin
from tests.draw import MS, US, draw

V100 = card("V100-SXM2-16GB")
SIMULATED = Label(Origin.SIMULATED, card="V100-SXM2-16GB")
MEASURED = Label(Origin.MEASURED, card="V100-SXM2-16GB")
FULL = {"n_blocks": 8000, "blocks_per_sm": 1, "number_format": "fp16"}
BEST = KernelWork(flop=V100.peak("fp16") * 10e-6, moved_bytes=0, **FULL)  # 10 µs at the card's best rate


def causes(timeline):
    return [f.cause for f in find_causes(timeline)]


def finding(timeline, cause):
    (one,) = (f for f in find_causes(timeline) if f.cause is cause)
    return one


def test_a_loader_that_takes_nine_tenths_of_the_step_is_the_cause():
    """pytorch/examples#387: 2.648 s a step, 2.388 s of it waiting for data; one character is 4 ms."""
    timeline = draw(host="I" * 597 + "." * 65, gpu="." * 597 + "#" * 65, steps="1" * 662, unit_ns=4 * MS)
    one = finding(timeline, Cause.WAITING_FOR_INPUT)

    assert one.share == pytest.approx(2388 / 2648)
    assert one.gain.speedup == pytest.approx(10.2, abs=0.05)
    assert one.gain.per == "step"


def test_many_small_kernels_behind_a_slow_host_are_launch_bound():
    timeline = draw(host="PDaaPDbbPDcc..", gpu="....aa..bb..cc", steps="11111111111111", label=SIMULATED)
    one = finding(timeline, Cause.LAUNCH_BOUND)

    assert one["n_kernels"] == 3
    assert one["median_kernel_ns"] == 2 * US
    assert one["host_ns"] == 4 * US
    assert one["busy_bound_share"] == 0.5


def test_one_long_wait_among_the_launches_is_pointed_at():
    timeline = draw(host="DDDDDDDDDDaPb.", gpu="...........a.b")

    assert finding(timeline, Cause.LAUNCH_BOUND)["longest_wait_ns"] == 11 * US
    assert "most of it in D" in finding(timeline, Cause.LAUNCH_BOUND).sentence


def test_evidence_is_for_one_step():
    timeline = draw(host="aS..bS..", gpu=".aa..bb.", copy="...<...<", steps="11112222")

    assert finding(timeline, Cause.BLOCKING_SYNCS)["n_syncs"] == 1


def test_a_sync_while_the_gpu_works_is_no_loss():
    """pytorch/torchtune#522: 45 ms in cudaStreamSynchronize, with the GPU busy all along."""
    timeline = draw(host="SSSSSSSSSSSSSSSSSSSS", gpu="####################", unit_ns=MS)

    assert Cause.BLOCKING_SYNCS not in causes(timeline)


def test_a_gain_is_a_bound_from_the_same_ledger():
    timeline = draw(host="SSSSSSII", gpu="......##", steps="11112222")

    assert finding(timeline, Cause.BLOCKING_SYNCS).gain == Gain(4 * US, 1 * US, "step")


def test_a_step_without_end_of_copies_is_an_exposed_copy():
    assert causes(draw(copy=">>>>>>..", gpu="......##"))[0] is Cause.EXPOSED_COPY


def test_a_collective_in_the_open_is_exposed_communication():
    assert finding(draw(gpu="##MMMM##"), Cause.EXPOSED_COMMUNICATION).share == 0.5


@pytest.mark.parametrize(("letter", "cause"), [("U", Cause.START_UP), ("X", Cause.PAUSES)])
def test_start_up_and_pauses_are_named(letter, cause):
    assert causes(draw(host=letter * 8 + "..", gpu="........##"))[0] is cause


def test_few_blocks_are_too_small_to_fill_the_card():
    work = KernelWork(flop=0, moved_bytes=0, n_blocks=8, blocks_per_sm=1, number_format="fp32")
    one = finding(draw(gpu="##########", work=work, label=SIMULATED), Cause.TOO_SMALL_TO_FILL)

    assert (one.share, one["median_blocks"], one["n_sms"]) == (0.9, 8, 80)


def test_streams_of_bytes_are_memory_bound():
    work = KernelWork(flop=9e3, moved_bytes=V100.bandwidth_bytes_per_s * 10e-6, **FULL)
    one = finding(draw(gpu="##########", work=work, label=SIMULATED), Cause.MEMORY_BOUND)

    assert one["flop_per_byte"] == pytest.approx(0.001)
    assert one["balance"] == pytest.approx(125e12 / 900e9)


def test_single_precision_where_half_is_faster_is_named():
    work = KernelWork(flop=V100.peak("fp32") * 10e-6, moved_bytes=0, n_blocks=80, blocks_per_sm=1, number_format="fp32")
    one = finding(draw(gpu="##########", work=work, label=SIMULATED), Cause.SLOWER_FORMAT)

    assert one["rate"] == V100.peak("fp32")
    assert "fp16" in one.change


def test_on_a_card_without_a_faster_format_single_precision_is_no_fault():
    pascal = card("GTX 1080 Ti")
    work = KernelWork(flop=pascal.peak("fp32") * 10e-6, moved_bytes=0, n_blocks=2800, blocks_per_sm=1)
    timeline = draw(gpu="##########", work=work)

    assert Cause.SLOWER_FORMAT not in [f.cause for f in find_causes(timeline, charge(timeline, pascal))]


def test_padding_is_named():
    work = KernelWork(flop=BEST.flop, useful_flop=BEST.flop / 2, moved_bytes=0, **FULL)
    one = finding(draw(gpu="##########", work=work, label=SIMULATED), Cause.RECOMPUTE_AND_PADDING)

    assert one["wasted_share"] == pytest.approx(0.5)


def test_a_busy_full_and_fast_gpu_has_nothing_wrong():
    (only,) = find_causes(draw(gpu="##########", work=BEST, label=SIMULATED))

    assert only.cause is Cause.NONE_FOUND
    assert only["busy_share"] == 1


def test_two_causes_come_with_the_larger_first():
    timeline = draw(host="IIIIISSSXX", gpu="........##")

    assert causes(timeline)[:2] == [Cause.WAITING_FOR_INPUT, Cause.BLOCKING_SYNCS]


def test_a_wait_below_the_threshold_is_not_named():
    timeline = draw(host="I" * 4 + "." * 96, gpu="." * 4 + "#" * 96)

    assert Cause.WAITING_FOR_INPUT not in causes(timeline)


def test_without_a_kernel_nothing_else_is_said():
    assert causes(draw(host="IIIIIIII", gpu="........")) == [Cause.CANNOT_TELL]


def test_idle_time_without_a_host_cannot_be_explained():
    one = finding(draw(gpu="#...#...", label=MEASURED), Cause.CANNOT_TELL)

    assert (one.account, one.share) == (Account.UNKNOWN_IDLE, 0.75)


def test_idle_time_that_is_mostly_unexplained_is_said_as_soon_as_it_is_worth_naming():
    one = finding(draw(gpu="#########.", label=MEASURED), Cause.CANNOT_TELL)

    assert one.share == 0.1


def test_one_measured_step_is_too_few_to_tell():
    timeline = draw(host="IIII....", gpu="....####", steps="11111111", label=MEASURED)

    assert causes(timeline)[0] is Cause.CANNOT_TELL
    assert finding(timeline, Cause.WAITING_FOR_INPUT).confidence.words == "a guess"


def test_one_simulated_step_is_enough():
    timeline = draw(host="IIII....", gpu="....####", steps="11111111", label=SIMULATED)

    assert finding(timeline, Cause.WAITING_FOR_INPUT).confidence.words == "sure"
    assert Cause.CANNOT_TELL not in causes(timeline)


def test_a_step_that_never_syncs_makes_the_timer_suspect():
    timeline = draw(host="abcd......", gpu=".aabbccdd.", steps="1122......", window=(0, 4))
    one = finding(timeline, Cause.TIMER_SUSPECT)

    assert one["overrun_ns"] == 5 * US
    assert "synchronize" in one.change


def test_one_step_of_a_steady_queue_raises_no_alarm():
    timeline = draw(host="abcdef......", gpu="..aabbccddee", steps="111122223333", window=(4, 8))

    assert Cause.TIMER_SUSPECT not in causes(timeline)


def test_a_window_without_steps_is_nobodys_clock():
    assert Cause.TIMER_SUSPECT not in causes(draw(host="abcd......", gpu=".aabbccdd.", window=(0, 4)))


def test_more_flop_than_the_peak_makes_the_timer_suspect():
    impossible = KernelWork(flop=10 * BEST.flop, moved_bytes=0, **FULL)

    assert causes(draw(gpu="##########", work=impossible, label=SIMULATED))[0] is Cause.TIMER_SUSPECT


def test_a_tiny_job_is_told_that_the_cpu_may_be_the_right_place():
    tiny = KernelWork(flop=1_000, moved_bytes=0, **FULL)
    timeline = draw(host="PDaaPDbb..", gpu="....aa..bb", steps="1111111111", work=tiny, label=SIMULATED)
    one = finding(timeline, Cause.LAUNCH_BOUND)

    assert one["cpu_ns"] == pytest.approx(2_000 / 74)
    assert "compare with the CPU" in one.change


def test_a_finding_reads_as_one_sentence():
    sentence = finding(draw(host="IIII....", gpu="....####", steps="11111111"), Cause.WAITING_FOR_INPUT).sentence
    begin = "The GPU waits for input: 50 % of the time (the GPU idles 4.00 µs a step for it"

    assert sentence.replace("\u00a0", " ").startswith(begin)


@pytest.mark.parametrize(("n", "words"), [(1, "1 sync a step"), (3, "3 syncs a step")])
def test_counts_are_in_words_of_their_number(n, words):
    timeline = draw(host="S." * n + ".", gpu=".." * n + "#", steps="1" * (2 * n + 1))

    assert words in finding(timeline, Cause.BLOCKING_SYNCS).sentence


def test_rules_say_nothing_about_another_gpu():
    timeline = draw(gpu_a="##########", gpu_b="#.........", devices={"gpu_a": 0, "gpu_b": 1}, label=MEASURED)
    ledger = charge(timeline, device=0)

    assert [f.cause for f in find_causes(timeline, ledger)] == [Cause.NONE_FOUND]


def test_each_rule_is_documented():
    assert all(rule.__doc__ for rule in RULES)
