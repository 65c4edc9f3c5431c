"""Each metric stands on its own: live, not supported, or failed so many times and tried again."""

from __future__ import annotations

import time

import pynvml
import pytest

from gpututor.measure.nvml import METRICS
from gpututor.measure.nvml.failures import Meaning, Refusal, refusal_of
from gpututor.measure.nvml.library import open_library
from gpututor.measure.nvml.probing import State
from tests.measure.fake_nvml.by_hand import by_hand
from tests.measure.fake_nvml.driver import uuid

# Metric, the function behind it, and what the fake answers to it when it says nothing else.
ASKED = (
    ("kernel_time_share", "nvmlDeviceGetUtilizationRates", 0.37),
    ("memory_time_share", "nvmlDeviceGetUtilizationRates", 0.12),
    ("power_w", "nvmlDeviceGetPowerUsage", 123.456),
    ("sm_clock_hz", "nvmlDeviceGetClockInfo", 1.41e9),
    ("temperature_c", "nvmlDeviceGetTemperature", 55),
    ("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration", 5),
    ("pcie_lanes", "nvmlDeviceGetCurrPcieLinkWidth", 16),
    ("power_now_w", "nvmlDeviceGetFieldValues", 123.456),
    ("kernel_time_samples_share", "nvmlDeviceGetSamples", 0.37),
    ("sm_share", "nvmlGpmSampleGet", 0.12),
    ("tensor_share", "nvmlGpmMetricsGet", 0.15),
    ("dram_share", "nvmlGpmMetricsGet", 0.2),
)
FUNCTIONS = sorted({function for _, function, _ in ASKED} | {"nvmlDeviceGetTotalEnergyConsumption"})
CODES = (1, 2, 3, 4, 6, 7, 10, 13, 17, 20, 25, 999)


@pytest.fixture(scope="module")
def healthy(built):
    """Values of a card on which all works, after two seconds of real time."""
    with built.in_place(), by_hand() as rounds:
        rounds.at(0)
        time.sleep(0.35)  # two of the driver's own samples, and a pair of the monitor's
        rounds.at(1.2)
        yield {metric: rounds.value(metric) for metric, _, _ in ASKED}


@pytest.mark.parametrize(("metric", "value"), [(metric, value) for metric, _, value in ASKED])
def test_a_healthy_card_gives(healthy, metric, value):
    assert healthy[metric] == pytest.approx(value)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_failing_call_leaves_every_other_metric(driver, function, code):
    driver.says(f"{function}={code}")
    with by_hand() as rounds:
        rounds.at(0, 0.2, 1.2)
        others = [(metric, value) for metric, asked, value in ASKED if asked != function and "Gpm" not in asked]
        others = [(metric, value) for metric, value in others if metric != "kernel_time_samples_share"]
        if code == 1:
            others = []  # the library is opened again, which takes a round of its own

        assert {metric: rounds.value(metric) for metric, _ in others} == pytest.approx(dict(others))


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_failing_call_is_never_a_number(driver, function, code):
    driver.says(f"{function}={code}")
    hit = [metric for metric, asked, _ in ASKED if asked == function]
    with by_hand() as rounds:
        rounds.at(0, 0.2, 1.2)
        reading = rounds.gpus[0].reading(1_200_000_000)

        assert all(reading.values[metric] is None for metric in hit)
        assert all(reading.reasons[metric] for metric in hit)


def test_not_supported_is_asked_once(driver):
    driver.says("nvmlDeviceGetPowerUsage=3")
    with by_hand() as rounds:
        rounds.every(until_s=20)

        assert rounds.standing("power_w").state is State.UNSUPPORTED
        assert driver.count("nvmlDeviceGetPowerUsage") == len(rounds.gpus)


def test_a_failure_is_tried_again_ever_more_seldom(driver):
    driver.says("nvmlDeviceGetPowerUsage=17")
    with by_hand() as rounds:
        asked = []
        for k in range(100):
            before = rounds.probe("power_w").n_calls
            rounds.at(k / 5)
            if rounds.probe("power_w").n_calls > before:
                asked.append(k)

        assert asked == [0, 2, 6, 14, 30, 62]  # twice the wait each time


def test_a_failure_counts_until_it_works_again(driver):
    driver.says("nvmlDeviceGetPowerUsage=17")
    with by_hand() as rounds:
        rounds.at(0, 0.4)
        assert rounds.standing("power_w").words == "failed 2 times in a row"
        driver.says()
        rounds.at(1.2)

        assert rounds.standing("power_w").state is State.LIVE
        assert rounds.value("power_w") == pytest.approx(123.456)


def test_a_metric_that_stops_working_loses_its_value_at_once(driver):
    with by_hand() as rounds:
        rounds.at(0)
        driver.says("nvmlDeviceGetPowerUsage=17")
        rounds.at(0.2)

        assert rounds.value("power_w") is None
        assert len(rounds.standing("power_w").column.entries()[0]) == 1


def test_a_failure_is_noted_once_for_each_gpu_metric_and_code(driver):
    driver.says("0.nvmlDeviceGetPowerUsage=17;1.nvmlDeviceGetPowerUsage=17;1.nvmlDeviceGetTemperature=3")
    with by_hand() as rounds:
        rounds.every(until_s=30)

        told = [(note.uuid, note.metric, note.code) for note in rounds.notes.values() if note.code]
        assert sorted(told) == [
            (uuid(0), "power_w", 17),
            (uuid(1), "power_w", 17),
            (uuid(1), "temperature_c", 3),
        ]


def test_a_slow_call_takes_at_most_a_twentieth_of_the_time(driver):
    driver.says("nvmlDeviceGetPowerUsage.us=30000;count=1")
    with by_hand() as rounds:
        rounds.every(until_s=6)

        assert rounds.probe("power_w").n_calls in range(6, 12)  # 30 ms in 0.6 s or more; 31 times without a bound


@pytest.mark.parametrize(
    ("said", "metric"),
    [
        ("power_mw=0", "power_w"),
        ("power_mw=4294967295", "power_w"),
        ("util=4294967295", "kernel_time_share"),
        ("clock=0", "sm_clock_hz"),
        ("gen=0", "pcie_gen"),
    ],
)
def test_a_value_that_cannot_be_is_none(driver, said, metric):
    driver.says(said)
    with by_hand() as rounds:
        rounds.at(0, 0.2)

        assert rounds.value(metric) is None
        assert "which can't be" in rounds.why(metric)


def test_utilization_of_zero_is_zero(driver):
    driver.says("util=0")
    with by_hand() as rounds:
        assert rounds.at(0).value("kernel_time_share") == 0


def test_an_older_driver_is_asked_under_older_names(built_old):
    with built_old.in_place(), by_hand() as rounds:
        rounds.at(0)

        assert rounds.value("clock_reasons") == 4
        assert rounds.value("memory_used_bytes") == (10240 + 512) * 2**20  # the older call counts the reserved part


def test_an_older_binding_is_asked_under_older_names(driver, monkeypatch):
    for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlMemory_v2", "nvmlDeviceGetFieldValues"):
        monkeypatch.delattr(pynvml, name)
    with by_hand() as rounds:
        rounds.at(0)

        assert rounds.value("clock_reasons") == 4
        assert rounds.value("memory_used_bytes") == (10240 + 512) * 2**20
        assert rounds.standing("power_now_w").state is State.UNSUPPORTED


def test_an_older_binding_speaks_in_bytes(driver, monkeypatch):
    for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlSystemGetDriverVersion", "nvmlDeviceGetHandleByUUID"):
        monkeypatch.setattr(pynvml, name, getattr(pynvml, name).__wrapped__)
    with by_hand() as rounds:
        assert rounds.at(0).value("power_w") == pytest.approx(123.456)
        assert rounds.gpus[0].device.name == "NVIDIA H100 80GB HBM3"
        assert rounds.versions["driver"] == "580.00.01"


def test_the_old_package_that_hides_the_binding_is_named(driver, monkeypatch):
    from importlib import metadata

    monkeypatch.setattr(pynvml, "__path__", ["pynvml"], raising=False)
    monkeypatch.setattr(metadata, "version", lambda name: {"pynvml": "11.5.0", "nvidia-ml-py": "13.615.71"}[name])
    with by_hand() as rounds:
        assert rounds.versions["nvidia-ml-py"] == "11.5.0 of pynvml"


def test_an_older_driver_has_no_monitor(built_old):
    with built_old.in_place(), by_hand() as rounds:
        rounds.at(0, 0.2)

        assert rounds.standing("sm_share").state is State.UNSUPPORTED


@pytest.mark.parametrize("gpm", [0, 2], ids=["says no", "says yes and fails"])
def test_the_monitor_is_believed_after_a_real_pair(driver, gpm):
    driver.says(f"gpm={gpm}")
    with by_hand() as rounds:
        rounds.every(until_s=3)

        assert rounds.standing("sm_share").state is State.UNSUPPORTED
        assert rounds.standing("sm_share").column.n == 0


def test_two_samples_of_the_monitor_lie_a_tenth_of_a_second_apart(driver):
    with by_hand() as rounds:
        rounds.at(0, 30, 60)  # hardly any time by the pair's own clock

        assert rounds.value("sm_share") is None
        assert driver.count("nvmlGpmMetricsGet") == 0


def test_a_share_of_the_monitor_that_cannot_be_is_none(driver):
    driver.says("gpm_share=-50")
    with by_hand() as rounds:
        rounds.at(0)
        time.sleep(0.13)
        rounds.at(0.2)

        assert rounds.value("sm_share") is None
        assert "which can't be" in rounds.why("sm_share")


def test_one_metric_of_the_monitor_may_be_missing(driver):
    driver.says("gpm5=3")
    with by_hand() as rounds:
        rounds.at(0)
        time.sleep(0.13)  # a pair has a clock of its own
        rounds.at(0.2)

        assert rounds.standing("tensor_share").state is State.UNSUPPORTED
        assert rounds.value("sm_share") == pytest.approx(0.12)


def test_the_first_second_of_a_driver_that_starts_with_us_is_left_out(driver):
    driver.says("persistence=0;ecc=1")
    with by_hand() as rounds:
        rounds.at(0, 0.2, 0.8)
        assert rounds.standing("kernel_time_share").column.n == 0
        assert "ECC memory is cleaned" in rounds.why("kernel_time_share")

        assert rounds.at(1.0).value("kernel_time_share") == pytest.approx(0.37)


def test_an_hour_of_sampling_takes_less_than_twenty_megabytes(driver):
    import psutil

    driver.says("count=1")
    with by_hand() as rounds:
        rounds.every(until_s=60)
        before = psutil.Process().memory_info().rss
        rounds.at(*(60 + k / 5 for k in range(5 * 3600)))

        assert psutil.Process().memory_info().rss - before < 20e6
        assert len(rounds.standing("power_w").column.entries()[0]) > 17_000  # an hour of one GPU is kept whole


def test_a_pattern_of_work_has_the_mean_of_its_busy_share(driver):
    driver.says("count=1;util=100;busy_ms=500;idle_ms=500")
    with by_hand() as rounds:
        began_ns = time.time_ns() - 10 * 10**9
        rounds.round(10 * 10**9, began_ns)
        figure = rounds.standing("kernel_time_samples_share").column.figure()

        assert figure.n in {59, 60, 61}  # 10 s in steps of 1/6 s
        assert figure.highest == 1


def test_each_sample_of_the_driver_is_taken_once(driver):
    with by_hand() as rounds:
        began_ns = time.time_ns() - 10 * 10**9
        for now_s in (10, 20, 30):  # hardly any time by the driver's own clock
            rounds.round(now_s * 10**9, began_ns)
        times, _ = rounds.standing("kernel_time_samples_share").column.entries()

    assert len(times) == len(set(times)) in range(59, 64)


def test_a_library_that_another_process_opened_is_not_closed(driver):
    library = open_library()
    library.pid += 1
    library.close()
    assert driver.n_open == 1

    library.pid -= 1
    library.close()
    assert driver.n_open == 0


def test_every_metric_is_asked_by_exactly_one_question(driver):
    with by_hand() as rounds:
        names = [metric for probe in rounds.gpus[0].probes for metric in probe.question.metrics]

        assert sorted(names) == sorted(METRICS)


def test_no_setter_and_no_slow_call_is_in_the_loop(driver):
    with by_hand() as rounds:
        rounds.every(until_s=5)

    for function in (
        "nvmlDeviceGetPcieThroughput",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetFanSpeed",
    ):
        assert driver.count(function) == 0


class Unhashable(Exception):
    """As the binding's own: it compares by its code, so that it has no hash."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None

    def __str__(self):
        raise RuntimeError("the driver has no words")


def test_an_error_without_words_keeps_its_code():
    assert refusal_of(Unhashable(10)) == Refusal(10, "Unhashable", Meaning.TRY_AGAIN)


@pytest.mark.parametrize("error", [AttributeError("no such name"), TypeError("no such argument"), ImportError("gone")])
def test_what_a_binding_lacks_is_not_asked_again(error):
    assert refusal_of(error).meaning is Meaning.NOT_HERE
