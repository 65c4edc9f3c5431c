import pytest
from msgspec import structs

from gpututor.cards import card
from gpututor.errors import LedgerError, TimelineError
from gpututor.ledger import Account, Ledger, charge, charge_both, rows, waits, without
from gpututor.ledger.idle import LONGEST_LAUNCH_LATENCY_NS
from gpututor.timeline import Activity, KernelWork, Label, Lane, LaneKind, Origin, Span, Timeline
from tests.draw import MS, US, draw

A = Account


def charged_us(timeline, **kwargs):
    """Accounts with time in them, in microseconds: one character of the drawing each."""
    return {a: ns / US for a, ns in charge(timeline, **kwargs).charged_ns.items() if ns}


def test_a_window_without_anything_is_unknown():
    assert charged_us(draw(gpu="....")) == {A.UNKNOWN_IDLE: 4}


@pytest.mark.parametrize(
    ("letter", "account"),
    [
        ("I", A.WAITING_FOR_INPUT),
        ("P", A.LAUNCH_OVERHEAD),
        ("D", A.LAUNCH_OVERHEAD),
        ("L", A.LAUNCH_OVERHEAD),
        ("S", A.BLOCKING_SYNC),
        ("C", A.EXPOSED_COPY),
        ("X", A.PAUSE),
        ("U", A.START_UP),
        ("W", A.EXPOSED_COMMUNICATION),
    ],
)
def test_idle_time_belongs_to_what_the_host_does(letter, account):
    assert charged_us(draw(host=letter * 4, gpu=".##.")) == {account: 2, A.BUSY_UNSPLIT: 2}


def test_host_work_under_a_kernel_costs_nothing():
    assert charged_us(draw(host="IIPPSS", gpu="######")) == {A.BUSY_UNSPLIT: 6}


def test_a_copy_under_a_kernel_costs_nothing():
    assert charged_us(draw(gpu="####..", copy="..>>>>")) == {A.BUSY_UNSPLIT: 4, A.EXPOSED_COPY: 2}


def test_a_copy_to_the_host_is_a_blocking_sync():
    assert charged_us(draw(gpu="##....", copy="..<<<<")) == {A.BUSY_UNSPLIT: 2, A.BLOCKING_SYNC: 4}


def test_a_collective_under_a_kernel_costs_nothing():
    assert charged_us(draw(gpu="####..", gpu_comm="..MMMM")) == {A.BUSY_UNSPLIT: 4, A.EXPOSED_COMMUNICATION: 2}


def test_communication_comes_before_copies():
    assert charged_us(draw(gpu_comm="MMM.", copy="..>>")) == {A.EXPOSED_COMMUNICATION: 3, A.EXPOSED_COPY: 1}


def test_the_thread_that_launches_the_next_kernel_decides():
    timeline = draw(host_main="PPPPPPPP", host_other="IIIIa...", gpu=".....aaa")

    assert charged_us(timeline) == {A.WAITING_FOR_INPUT: 4, A.LAUNCH_OVERHEAD: 1, A.BUSY_UNSPLIT: 3}


def test_a_loader_worker_does_not_explain_what_the_gpu_waits_for():
    timeline = draw(host_worker="IIIIIIII", host_main="a....b..", gpu=".aa...bb")

    assert charged_us(timeline)[A.UNKNOWN_IDLE] == 2


def test_from_launch_call_to_kernel_is_launch_overhead_whatever_the_host_does():
    assert charged_us(draw(host="aIIII", gpu="...aa")) == {A.LAUNCH_OVERHEAD: 3, A.BUSY_UNSPLIT: 2}


def test_a_launched_kernel_that_starts_much_later_waits_for_something_unknown():
    timeline = draw(host="aS..", gpu="..aa", unit_ns=MS)

    charged = charge(timeline).charged_ns

    assert charged[A.LAUNCH_OVERHEAD] == MS + LONGEST_LAUNCH_LATENCY_NS
    assert charged[A.UNKNOWN_IDLE] == MS - LONGEST_LAUNCH_LATENCY_NS


def test_the_way_to_a_kernel_is_counted_from_the_kernel_also_where_the_window_ends_before():
    timeline = draw(host="aS...", gpu="...aa", window=(0, 2), unit_ns=MS)

    charged = charge(timeline).charged_ns

    assert (charged[A.LAUNCH_OVERHEAD], charged[A.UNKNOWN_IDLE]) == (MS, MS)


def test_the_innermost_span_decides():
    assert charged_us(draw(host=("PPPPPP", ".IIII.", "..CC.."), gpu="......")) == {
        A.LAUNCH_OVERHEAD: 2,
        A.WAITING_FOR_INPUT: 2,
        A.EXPOSED_COPY: 2,
    }


def test_framework_work_inside_input_is_waiting_for_input():
    assert charged_us(draw(host=("IIII", ".DP."), gpu="....")) == {A.WAITING_FOR_INPUT: 4}


def test_between_two_framework_calls_the_interpreter_runs():
    assert charged_us(draw(host="D..D", gpu="....")) == {A.LAUNCH_OVERHEAD: 4}


def test_a_long_gap_between_two_framework_calls_is_unknown():
    assert charge(draw(host="D..D", gpu="....", unit_ns=MS)).charged_ns[A.UNKNOWN_IDLE] == 2 * MS


def test_a_gap_after_input_is_not_called_python():
    assert charged_us(draw(host="I..D", gpu="....")) == {
        A.WAITING_FOR_INPUT: 1,
        A.UNKNOWN_IDLE: 2,
        A.LAUNCH_OVERHEAD: 1,
    }


@pytest.mark.parametrize(("letter", "account"), [("X", A.PAUSE), ("U", A.START_UP)])
def test_a_pause_or_start_up_owns_all_that_happens_inside(letter, account):
    assert charged_us(draw(host=(letter * 4, ".SI."), gpu="....")) == {account: 4}


def test_spans_of_one_thread_may_overlap_without_nesting():
    assert charged_us(draw(host=("IIII..", "..SSSS"), gpu="......")) == {A.WAITING_FOR_INPUT: 2, A.BLOCKING_SYNC: 4}


def test_the_part_outside_the_window_is_not_charged():
    assert charged_us(draw(host="IIIIII", gpu="##..##", window=(1, 5))) == {A.WAITING_FOR_INPUT: 2, A.BUSY_UNSPLIT: 2}


def test_a_blocking_call_that_copies_to_the_host_is_a_sync():
    host, engine = Lane(LaneKind.HOST, "main"), Lane(LaneKind.COPY, "copy")
    call = Span(0, Activity.COPY_CALL, "cpu()", 0, 10, launch=1)
    copy = Span(1, Activity.COPY_TO_HOST, "copy", 4, 8, launch=1)

    ledger = charge(Timeline((host, engine), (call, copy), (0, 10), Label(Origin.SIMULATED)))

    assert ledger.charged_ns[A.BLOCKING_SYNC] == 10


def test_waits_are_the_stretches_without_a_kernel_in_order():
    assert waits(draw(host="IISSS.", gpu="..#...", copy="...<..")) == (
        (0, 2 * US, A.WAITING_FOR_INPUT),
        (3 * US, 5 * US, A.BLOCKING_SYNC),
        (5 * US, 6 * US, A.UNKNOWN_IDLE),
    )


def test_nvidia_smi_counts_collectives_and_no_copies():
    ledger = charge(draw(gpu="##......", gpu_comm=".MMM....", copy="....>>.."))

    assert ledger.gpu_util_share == 4 / 8
    assert ledger.busy_share == 2 / 8


def test_two_gpus_and_none_chosen_is_refused():
    timeline = draw(gpu_a="##", gpu_b="..", copy_b=">>", devices={"gpu_a": 0, "copy_b": 1})

    with pytest.raises(TimelineError, match="GPUs 0 and 1"):
        charge(timeline)


def test_one_of_two_gpus_is_charged_alone():
    timeline = draw(gpu_a="##..", gpu_b="...#", devices={"gpu_a": 0, "gpu_b": 1})

    assert charge(timeline, device=1).busy_ns == 1 * US


def test_the_device_window_reaches_from_first_to_last_kernel():
    both = charge_both(draw(host="IIIIIIIIII", gpu="....####.."))

    assert (both.steps.window_ns, both.steps.busy_share) == (10 * US, 0.4)
    assert (both.device.window_ns, both.device.busy_share) == (4 * US, 1.0)


def test_windows_that_disagree_say_so():
    assert "100" in charge_both(draw(gpu="....####..")).disagreement
    assert charge_both(draw(gpu="##########")).disagreement is None


def test_steps_that_are_only_a_part_of_the_time_on_the_gpu_are_named_as_that():
    """The first kernels are those of a warm-up with long pauses, before the steps."""
    said = charge_both(draw(gpu="#....#..#####", window=(8, 13))).disagreement

    assert said.replace("\N{NO-BREAK SPACE}", " ") == (
        "in the steps the GPU is 100 % busy, from its first kernel to its last 54 %; "
        "the difference is time outside the steps"
    )


def test_a_device_window_without_kernels_is_refused():
    with pytest.raises(TimelineError, match="no kernel ran"):
        charge(draw(copy=">>"), window="device")


def test_throughput_counts_the_samples_of_the_steps():
    ledger = charge(draw(gpu="##########", steps="1111122222", n_samples=8, unit_ns=MS))

    assert ledger.samples_per_s == 16 / 10e-3


def test_an_epoch_costs_its_hours_times_the_price():
    ledger = charge(draw(gpu="##########", steps="1111122222", n_samples=5, unit_ns=MS))  # 1,000 samples a second

    assert ledger.usd_per_epoch(3_600_000, usd_per_hour=3.06) == pytest.approx(3.06)


def test_without_steps_there_is_no_throughput_but_a_reason():
    ledger = charge(draw(gpu="##"))

    assert ledger.samples_per_s is None
    assert "samples" in ledger.reasons["samples_per_s"]


def test_without_an_account_the_window_is_shorter_by_it():
    ledger = charge(draw(host="IIIIII..", gpu="......##"))

    assert without(ledger, A.WAITING_FOR_INPUT).window_ns == 2 * US
    assert without(ledger, A.WAITING_FOR_INPUT).busy_share == 1


def test_without_everything_nothing_is_left():
    with pytest.raises(LedgerError, match="nothing is left"):
        without(charge(draw(host="II", gpu="..")), A.WAITING_FOR_INPUT)


def test_accounts_that_do_not_add_up_are_refused():
    with pytest.raises(LedgerError, match="3 ns of a window of 4 ns"):
        Ledger(4, {A.PAUSE: 3}, Label(Origin.SIMULATED), 0, 0, 0)


def test_the_waterfall_falls_from_wall_time_to_mfu():
    v100 = card("V100-SXM2-16GB")
    half = KernelWork(flop=v100.peak("fp16") * 1e-6, moved_bytes=0, n_blocks=40, number_format="fp16")
    lines = rows(charge(draw(host="IIIIII..", gpu="......##", work=half), v100))

    assert [(r.name, r.end_share) for r in lines] == [
        ("wall", 1),
        ("waiting_for_input", 0.25),
        ("busy", 0.25),
        ("too_few_blocks", 0.125),
        ("sm_fill", 0.125),
        ("mfu", 0.125),
    ]


def test_a_gauge_without_numbers_is_none_with_a_reason():
    known = KernelWork(flop=1.0, moved_bytes=1.0, n_blocks=80, blocks_per_sm=1, number_format="fp32")
    blind = structs.replace(known, flop=None)
    ledger = charge(draw(gpu="#.#.#", work=[known, blind, known]), card("V100-SXM2-16GB"))
    (mfu,) = (r for r in rows(ledger) if r.name == "mfu")

    assert ledger.mfu is None
    assert mfu.share is None
    assert mfu.reason.startswith("1 of 3 kernels don't say their FLOP")


def test_kernels_that_say_their_flop_give_a_bound_for_the_mfu():
    v100 = card("V100-SXM2-16GB")
    half = KernelWork(flop=v100.top_peak_flop_per_s * 1e-6 / 2, moved_bytes=1.0, n_blocks=80, blocks_per_sm=1)
    blind = structs.replace(half, flop=None)
    ledger = charge(draw(gpu="#.##", work=[half, blind], unit_ns=1000), v100)
    (mfu,) = (r for r in rows(ledger) if r.name == "mfu")

    assert ledger.mfu is None
    assert ledger.mfu_at_least == pytest.approx(0.5 / 4)  # half the peak for 1 of 4 µs
    assert mfu.reason.endswith("the others make it at least 12\N{NO-BREAK SPACE}%")


def test_without_any_flop_there_is_no_bound_either():
    blind = KernelWork(n_blocks=80, blocks_per_sm=1)

    assert charge(draw(gpu="#.", work=[blind]), card("V100-SXM2-16GB")).mfu_at_least is None


def test_a_ledger_prints_as_its_waterfall_with_the_reason_for_each_missing_gauge():
    text = str(charge(draw(host="PPaaaa..", gpu="......aa", label=Label(Origin.MEASURED, "some card"))))

    lines = [" ".join(line.split()) for line in text.replace("\u00a0", " ").splitlines()]
    assert lines[:4] == ["Measured some card", "wall time 100 %", "launch overhead 75 %", "busy 25 %"]
    assert any(line.startswith("MFU not known (") for line in lines)
