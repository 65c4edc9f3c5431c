from __future__ import annotations

import pytest

from gpututor.measure.nvml import clock_reasons
from gpututor.watch.meaning import Verdict, clocks_sentence, utilization_sentence, verdict
from gpututor.watch.source import Cpu
from tests.watch.made import BUSY_CPU, IDLE_CPU, cpu_of, gpu, simulated


def plain(text):
    return text.replace("\u00a0", " ")


def test_utilization_says_how_often_and_not_how_full():
    assert plain(utilization_sentence(gpu(0.25))) == (
        "A kernel ran 25 % of the time; that says nothing of how full the card was."
    )


def test_where_busy_sms_are_counted_the_sentence_says_how_full():
    assert plain(utilization_sentence(gpu(1.0, sm_busy_share=0.04))) == (
        "A kernel ran all the time; on average 4.0 % of the SMs were busy."
    )


def test_no_kernel_is_told_from_no_reading():
    unknown = gpu(None, reasons={"kernel_time_share": "Not Supported, code 3"})

    assert utilization_sentence(gpu(0.0)) == "No kernel ran."
    assert utilization_sentence(unknown) == "Utilization is not known: Not Supported, code 3."


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        pytest.param(0, "and nothing holds them", id="nothing"),
        pytest.param(0x4, "the power limit is reached", id="power"),
        pytest.param(0x44, "and the card halved its clocks or more because of heat", id="two reasons"),
        pytest.param(0x1, "nothing runs, so the clocks are low", id="idle"),
        pytest.param(0x8000, "newer than this list", id="a bit of tomorrow"),
    ],
)
def test_clocks_say_in_words_why_they_are_where_they_are(mask, words):
    assert words in clocks_sentence(gpu(clock_reasons=clock_reasons(mask)))


def test_clocks_are_given_against_their_highest():
    assert "1500 of at most 2000 MHz" in plain(clocks_sentence(gpu()))


@pytest.mark.parametrize(
    ("share", "cpu", "expected"),
    [
        pytest.param(0.1, BUSY_CPU, Verdict.LOADER, id="CPU busy, GPU idle: the loader"),
        pytest.param(0.9, BUSY_CPU, Verdict.GPU_BUSY, id="both busy"),
        pytest.param(0.9, IDLE_CPU, Verdict.GPU_BUSY, id="only the GPU is busy"),
        pytest.param(0.1, IDLE_CPU, Verdict.BOTH_IDLE, id="both idle"),
        pytest.param(0.1, cpu_of(1.0), Verdict.ONE_CORE, id="one core: reading or launching"),
        pytest.param(None, BUSY_CPU, Verdict.UNKNOWN, id="GPU not read"),
        pytest.param(0.1, Cpu(8), Verdict.UNKNOWN, id="CPU not read"),
    ],
)
def test_who_waits_for_whom(share, cpu, expected):
    assert verdict(gpu(share), cpu) is expected


def test_two_busy_workers_are_a_loader_though_most_cores_are_free():
    cpu = cpu_of(1.0, 0.95, 0.95, n_usable=64, pids=(10, 11, 12), parents=(1, 10, 10))

    assert verdict(gpu(0.1), cpu) is Verdict.LOADER


def test_two_busy_programs_that_are_not_one_anothers_children_are_no_loader():
    cpu = cpu_of(1.0, 0.95, n_usable=64, pids=(10, 11), parents=(1, 1))

    assert verdict(gpu(0.1), cpu) is Verdict.ONE_CORE


def test_a_single_core_that_is_busy_can_be_launching_as_well():
    assert verdict(gpu(0.1), cpu_of(1.0, n_usable=1)) is Verdict.ONE_CORE


def test_the_cores_that_simulate_a_card_are_not_counted_as_loading():
    cpu = cpu_of(3.5, n_usable=4, pids=(7,))

    assert verdict(gpu(0.1), cpu) is Verdict.LOADER
    assert verdict(simulated(0.1, pid=7), cpu) is Verdict.ONE_CORE
