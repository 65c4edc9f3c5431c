"""The sampler as a program uses it: a thread that comes and goes, answers that are data, and no harm done."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from gpututor.errors import GpuNotKnown, MetricNotKnown, RecordDamaged, SettingNotPossible
from gpututor.measure.nvml import Figure, Sampler, load, save
from gpututor.measure.nvml.watched import energy_of, held_of
from tests.measure.fake_nvml.by_hand import by_hand
from tests.measure.fake_nvml.driver import uuid

QUICK_S = 0.02


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "gpututor-nvml"]


def until(condition, wait_s=5.0):
    """Wait for what another thread brings about."""
    end = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_values_are_there_when_the_block_begins(driver):
    with Sampler(QUICK_S) as sampler:
        first, second = sampler.latest()

    assert first.values["power_w"] == pytest.approx(123.456)
    assert second.device.uuid == uuid(1)


def test_a_series_grows_with_time(driver):
    with Sampler(QUICK_S) as sampler:
        until(lambda: len(sampler.series("power_w").values) >= 5)
    series = sampler.series("power_w")

    assert set(series.values) == {123.456}
    assert list(series.times_ns) == sorted(set(series.times_ns))
    assert (series.unit, series.uuid) == ("W", uuid(0))


def test_a_series_is_found_by_place_or_uuid(driver):
    driver.says("1.power_mw=50000")
    with Sampler(QUICK_S) as sampler:
        assert sampler.series("power_w", 1).values == sampler.series("power_w", uuid(1)).values

    assert set(sampler.series("power_w", 1).values) == {50}


def test_names_that_are_not_known_are_refused(driver):
    with Sampler(QUICK_S) as sampler:
        with pytest.raises(MetricNotKnown, match="power_w"):
            sampler.series("power")
        with pytest.raises(GpuNotKnown, match="GPU-aa"):
            sampler.series("power_w", 2)


@pytest.mark.parametrize("interval_s", [0, -1, 0.001, float("nan")])
def test_an_interval_that_loads_the_machine_is_refused(interval_s):
    with pytest.raises(SettingNotPossible, match=r"0\.01 s or more"):
        Sampler(interval_s)


def test_no_thread_is_left_when_the_block_ends(driver):
    with Sampler(QUICK_S) as sampler:
        assert len(threads()) == 1

    assert not threads()
    assert not sampler.running


def test_no_thread_is_left_when_the_block_raises(driver):
    with pytest.raises(ZeroDivisionError), Sampler(QUICK_S):
        _ = 1 / 0

    assert not threads()


def test_the_library_is_closed_when_the_block_ends(driver):
    with Sampler(QUICK_S):
        assert driver.n_open == 1

    assert driver.n_open == 0


def test_a_sampler_that_nobody_holds_ends_its_thread(driver):
    Sampler(QUICK_S).start()
    gc.collect()

    until(lambda: not threads())


def test_starting_twice_makes_one_thread(driver):
    with Sampler(QUICK_S) as sampler:
        sampler.start()

        assert len(threads()) == 1


def test_stopping_twice_is_nothing(driver):
    sampler = Sampler(QUICK_S).start()

    assert sampler.stop()
    assert sampler.stop()


def test_a_sampler_can_be_started_again(driver):
    sampler = Sampler(QUICK_S)
    for _ in range(2):
        with sampler:
            assert sampler.latest()[0].values["power_w"]


def test_the_energy_of_a_run_is_the_counters_difference(driver):
    driver.says("count=1;power_mw=400000")
    with Sampler(QUICK_S) as sampler:
        time.sleep(0.3)
    energy = sampler.summary().gpus[0].energy

    assert energy.how == "the card's own counter"
    assert energy.energy_j == pytest.approx(400 * energy.seconds, abs=0.5)
    assert energy.seconds >= 0.25  # the last round asks once more, however seldom it is asked


def test_without_a_counter_energy_is_power_times_time(driver):
    driver.says("count=1;power_mw=400000;nvmlDeviceGetTotalEnergyConsumption=3")
    with Sampler(QUICK_S) as sampler:
        until(lambda: len(sampler.series("power_w").values) > 3)
    energy = sampler.summary().gpus[0].energy

    assert "no counter" in energy.how
    assert energy.energy_j == pytest.approx(400 * energy.seconds)


def test_without_power_energy_is_none_with_a_reason(driver):
    driver.says("count=1;nvmlDeviceGetTotalEnergyConsumption=3;nvmlDeviceGetPowerUsage=3")
    with Sampler(QUICK_S) as sampler:
        pass
    gpu = sampler.summary().gpus[0]

    assert gpu.energy is None
    assert "Not Supported" in gpu.energy_reason


def test_reasons_for_the_clocks_have_their_share():
    held = held_of({0x4: 2, 0x44: 1, 0x1000: 1})

    assert [(each.name, each.share) for each in held] == [
        ("power limit", 0.75),
        ("too hot (card)", 0.25),
        ("bit 0x1000", 0.25),
    ]


def test_a_counter_that_began_anew_is_not_subtracted():
    began_anew = {"energy_j": Figure(2, 50, 1, 99, 99, 0, 1, 10**9)}

    assert "neither a counter" in energy_of(began_anew, lambda name: "reset")


def test_reasons_for_the_clocks_are_in_words(driver):
    driver.says("reasons=0x41")
    with Sampler(QUICK_S) as sampler:
        clocks = sampler.latest()[0].clocks

    assert [reason.name for reason in clocks] == ["idle", "too hot (card)"]
    assert [reason.slows for reason in clocks] == [False, True]


def test_versions_and_cost_are_told(driver):
    with Sampler(QUICK_S) as sampler:
        until(lambda: sampler.summary().cost.n_rounds > 5)
    summary = sampler.summary()

    assert summary.versions["driver"] == "580.00.01"
    assert summary.versions["nvidia-ml-py"]
    assert 0 < summary.cost.cpu_share < 1
    assert 0 < summary.cost.mean_s <= summary.cost.longest_s


def test_a_value_too_old_is_not_believed(driver):
    with by_hand() as rounds:
        rounds.at(0)
        reading = rounds.gpus[0].reading(int(2e9))

    assert reading.values["power_w"] is None
    assert reading.reasons["power_w"] == "the last value is 2.0 s old"


# --- the driver hangs, or is lost ---


def test_a_driver_that_hangs_does_not_hold_up_the_program(driver):
    driver.says("nvmlDeviceGetName.us=400000;count=1")
    began = time.monotonic()
    sampler = Sampler(QUICK_S)
    sampler.start(wait_s=0.05)

    assert time.monotonic() - began < 0.3
    assert sampler.reason == "the driver has not answered yet"
    assert not sampler.stop(wait_s=0.05)
    until(lambda: not threads())


def test_a_lost_gpu_is_lost_for_good_and_leaves_the_other(driver):
    with Sampler(QUICK_S) as sampler:
        driver.says("0.lost=1")
        until(lambda: sampler.summary().gpus[0].lost)
        driver.says()
        time.sleep(5 * QUICK_S)
        lost, kept = sampler.latest()

        assert lost.values["power_w"] is None
        assert "only a restart of the machine" in lost.reasons["power_w"]
        assert kept.values["power_w"] == pytest.approx(123.456)
    assert driver.n_asked_after_loss == 0


def test_a_gpu_that_comes_later_is_not_taken_for_the_lost_one(driver):
    driver.says("lost=1;count=1")
    with Sampler(QUICK_S) as sampler:
        until(lambda: not sampler.running)

    assert sampler.reason


def test_a_library_that_was_closed_by_others_is_opened_again(driver):
    with Sampler(QUICK_S) as sampler:
        driver.forget()
        n = len(sampler.series("power_w").values)
        until(lambda: len(sampler.series("power_w").values) > n + 2)

        assert sampler.latest()[0].values["power_w"] == pytest.approx(123.456)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_fork_does_not_wait_for_a_call_that_hangs(driver):
    with Sampler(QUICK_S) as sampler:
        driver.says("nvmlDeviceGetPowerUsage.us=700000")
        n = driver.count("nvmlDeviceGetPowerUsage")
        until(lambda: driver.count("nvmlDeviceGetPowerUsage") > n)
        began = time.monotonic()
        assert in_child(lambda: "forked" in sampler.reason) == "True"

        assert time.monotonic() - began < 0.6
        driver.says()


def test_a_machine_without_room_for_a_thread_is_a_sentence(driver, monkeypatch):
    def full(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    with Sampler(QUICK_S) as sampler:
        assert "can't start new thread" in sampler.reason

    assert not sampler.running


def test_a_gpu_that_cannot_be_opened_again_is_tried_later(driver):
    with by_hand() as rounds:
        rounds.at(0)
        driver.forget()
        driver.says("0.nvmlDeviceGetHandleByUUID=17")
        rounds.at(0.2, 0.4)
        assert rounds.value("power_w") is None
        assert "can't be opened" in rounds.why("power_w")
        assert rounds.value("power_w", gpu=1) == pytest.approx(123.456)
        driver.says()
        rounds.at(1.4)

        assert rounds.value("power_w") == pytest.approx(123.456)


def test_a_driver_that_went_away_is_tried_later(driver):
    with by_hand() as rounds:
        rounds.at(0)
        driver.forget()
        driver.says("nvmlInitWithFlags=9")
        rounds.at(0.2, 0.4)
        assert "not loaded" in rounds.why("power_w")
        driver.says()
        rounds.at(0.8, 1.4)

        assert rounds.value("power_w") == pytest.approx(123.456)


def test_a_fault_of_ours_is_a_sentence(driver, monkeypatch):
    from gpututor.measure.nvml.rounds import Rounds

    monkeypatch.setattr(Rounds, "round", lambda *a, **k: 1 / 0)
    with Sampler(QUICK_S) as sampler:
        until(lambda: not sampler.running)

    assert "ZeroDivisionError" in sampler.reason


# --- no driver at all ---


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a driver here")  # noqa: PTH110
def test_without_a_driver_the_sampler_says_why():
    with Sampler(QUICK_S) as sampler:
        assert "no NVIDIA driver is installed" in sampler.reason

    assert sampler.latest() == ()
    assert sampler.series("power_w").reason == sampler.reason
    assert sampler.summary().gpus == ()
    assert not sampler.running


def test_a_sampler_that_was_not_started_says_so():
    sampler = Sampler()

    assert sampler.reason == sampler.summary().reason == "the sampler was not started"


# --- fork ---


def in_child(function):
    """What the function returns in a forked child, as text."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            said = str(function())
        except BaseException as error:  # noqa: BLE001
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_forked_child_has_no_readings_until_it_starts_the_sampler(driver):
    with Sampler(QUICK_S) as sampler:
        assert "forked" in in_child(lambda: sampler.reason)
        assert in_child(sampler.stop) == "True"
        assert in_child(lambda: sampler.start().latest()[0].values["power_w"]) == "123.456"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_many_forks_beside_a_busy_sampler_all_answer(driver):
    with Sampler(0.01) as sampler:
        for _ in range(30):
            assert in_child(lambda: Sampler(0.01).start().latest()[0].values["power_w"]) == "123.456"

        assert sampler.running


# --- files ---


def test_saved_and_loaded_is_the_same(driver, tmp_path):
    driver.says("1.nvmlDeviceGetPowerUsage=17;1.nvmlDeviceGetTemperature=3")
    with Sampler(QUICK_S) as sampler:
        until(lambda: len(sampler.series("power_w").values) > 3)
    sampled = sampler.sampled()
    save(sampled, tmp_path / "run.jsonl")

    assert load(tmp_path / "run.jsonl") == sampled


def test_a_run_without_a_gpu_can_be_saved(tmp_path):
    sampled = Sampler().sampled()
    save(sampled, tmp_path / "run.jsonl")

    assert load(tmp_path / "run.jsonl") == sampled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("{}\n", "line 1"),
        ('{"format":"gpututor-timeline","version":1}\n', "line 1"),
        ("[1]\n", "line 1"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, text, said):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(RecordDamaged, match=said):
        load(path)


def test_a_file_that_was_cut_short_names_the_line(driver, tmp_path):
    with Sampler(QUICK_S) as sampler:
        pass
    path = tmp_path / "run.jsonl"
    save(sampler.sampled(), path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(RecordDamaged, match="cut short"):
        load(path)


# --- as the loader finds it ---


def run_beside(environ, code):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.strip()


def test_the_loader_finds_the_driver_by_itself(built):
    code = """
        from gpututor.measure.nvml import Sampler, find_gpus
        print(*find_gpus().names)
        Sampler().start()  # and the program ends without stopping it
    """

    assert run_beside(built.environ("count=1;name=Tesla T4"), code) == "Tesla T4"


@pytest.mark.gpu
def test_on_a_real_card_torch_and_the_driver_mean_the_same_gpu():
    import torch

    torch.cuda.init()
    with Sampler() as sampler:
        time.sleep(1.5)
        reading = sampler.latest()[0]

    assert reading.device.uuid.endswith(str(torch.cuda.get_device_properties(0).uuid))
    assert reading.device.name == torch.cuda.get_device_properties(0).name
    assert reading.values["kernel_time_share"] is not None or reading.reasons["kernel_time_share"]


@pytest.mark.gpu
def test_on_a_real_card_a_busy_gpu_is_seen_busy():
    import torch

    a = torch.randn(4096, 4096, device="cuda")
    with Sampler() as sampler:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for _ in range(20):
                a @ a
            torch.cuda.synchronize()
    share = sampler.summary().gpus[0].kernel_time_share

    assert share is None or share > 0.5
