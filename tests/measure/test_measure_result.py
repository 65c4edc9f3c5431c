"""A measured loop's file, its readings, its profiler window, its place in the history, and what was expected of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpututor
from gpututor.errors import ExpectationError, MeasurementDamaged
from gpututor.history import History
from gpututor.ledger import Account
from gpututor.measure import load, readings
from gpututor.measure.devices import cpu
from gpututor.measure.keeping import entry_of
from gpututor.measure.loop import Run
from gpututor.measure.measurement import Measurement
from gpututor.measure.measurement_file import from_bytes, to_bytes
from gpututor.measure.nvml import Cost, Device, Energy, Figure, GpuSummary, Held, Sampled, Sampler, Series, Summary
from gpututor.measure.parts import Part, SplitStep
from gpututor.measure.window import Profiled, for_device
from gpututor.timeline import Activity, Label, Origin
from tests.draw import draw
from tests.measure.fake_device import MS, FakeDevice
from tests.measure.fake_gpu import FakeGpu

UUID = "GPU-1"


def measurement(n: int = 4, input_ms: int = 2, forward_ms: int = 8, **other) -> Measurement:
    """`n` equal steps of an input wait and a forward, the host's clock and the GPU's alike."""
    step_ms = input_ms + forward_ms
    steps = []
    for k in range(n):
        edges = tuple(MS * (k * step_ms + at) for at in (0, input_ms, step_ms))
        steps.append(SplitStep((Part.INPUT, Part.FORWARD), edges, edges))
    label = Label(Origin.MEASURED, "V100-SXM2-16GB", "a host", "train.py", (("torch", "2.13.0"),))
    return replace(Measurement(label, tuple(steps)), **other)


def summary(**other) -> Summary:
    """What a sampler says of one GPU that used 50 J in 2 s, 40 % of the time with a kernel."""
    device = Device(UUID, "V100")
    figures = {
        "kernel_time_share": Figure(10, 0.4, 0.1, 0.9, 0.1, 0, 0.9, 2 * 10**9),
        "power_w": Figure(10, 25.0, 20.0, 30.0, 20.0, 0, 30.0, 2 * 10**9),
        "energy_j": Figure(10, 1025.0, 1000.0, 1050.0, 1000.0, 0, 1050.0, 2 * 10**9),
        "clock_reasons": Figure(10, 4.0, 4.0, 4.0, 4.0, 0, 4.0, 2 * 10**9),
    }
    held = (Held(4, "SwPowerCap", "the power limit", True, 0.25), Held(1, "GpuIdle", "nothing to do", False, 0.5))
    gpu = GpuSummary(device, figures, {}, {"sm_clock_hz": "Not Supported"}, Energy(50.0, 2.0, "counter"), None, held)
    cost = Cost(10, 0, 0.1, 0.0004, 1e-5, 2e-5, 1000)
    return replace(Summary(0.0, 2.0, 0.2, (gpu,), cost, {}), **other)


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["loop.json", "loop.json.gz"])
def test_save_then_load_is_identity(tmp_path, name):
    found = measurement(
        pauses=((1, 2),),
        n_samples=32,
        readings={"energy_j": 5.0},
        reasons={"window": "none"},
        series={"power_w": ((1, 2), (3.0, 4.0))},
        notes=("a note",),
        window=draw(gpu="##", steps="11"),
        measured_at="2026-01-02T03:04:05+00:00",
        usd_per_hour=3.06,
        configuration={"batch": 32},
    )

    found.save(tmp_path / name)

    assert load(tmp_path / name) == found


def test_equal_measurements_give_equal_bytes():
    assert to_bytes(measurement()) == to_bytes(measurement())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "damaged measurement"),
        (b"{}", "no saved measurement"),
        (to_bytes(measurement())[:-30], "damaged measurement"),
        (b"\x1f\x8bxx", "damaged measurement"),
        (to_bytes(measurement()).replace(b'"version":1', b'"version":9'), "version 9 of the format"),
        (to_bytes(measurement()).replace(b'"input wait","forward"', b'"input wait"'), "lacks a time"),
    ],
)
def test_a_file_that_is_no_measurement_is_refused_with_what_is_wrong(data, words):
    with pytest.raises(MeasurementDamaged, match=words):
        from_bytes(data)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(MeasurementDamaged, match=r"none\.json can't be read"):
        load(tmp_path / "none.json")


def test_a_measurement_is_a_recording_like_any_other():
    recording = measurement(notes=("a note",)).recording

    assert len(recording.timeline.steps) == len(recording.losses) == 4
    assert recording.notes == ("a note",)


# --- readings -------------------------------------------------------------------------------------------------------


def test_a_samplers_summary_becomes_means_energy_and_its_own_cost():
    known, _ = readings.plain(summary())

    assert known == {
        "sampler_core_share": 0.0004,
        "kernel_time_share": 0.4,
        "power_w": 25.0,
        "energy_j": 50.0,
        "clocks_held_share": 0.25,
    }


def test_a_metric_that_a_card_lacks_is_missing_with_the_drivers_words():
    _, reasons = readings.plain(summary())

    assert reasons == {"sm_clock_hz": "Not Supported"}


def test_a_driver_without_a_gpu_gives_one_reason_and_no_number():
    known, reasons = readings.plain(summary(gpus=(), reason="the NVIDIA driver does not answer"))

    assert known == {}
    assert reasons == {"driver's samples": "the NVIDIA driver does not answer"}


class FakeSampler:
    def __init__(self, fails: bool = False) -> None:
        self.entered = self.left = 0
        self.fails = fails

    def __enter__(self):
        if self.fails:
            raise OSError("no thread")
        self.entered += 1
        return self

    def __exit__(self, *_):
        self.left += 1

    def summary(self):
        return summary()

    def sampled(self):
        return Sampled(summary(), (Series("power_w", "W", UUID, (0, 5), (20.0, 30.0)),))


def measured_with(sampler, n: int = 5, **wishes) -> Run:
    device = FakeDevice()
    wishes = {"warmup": 2, "history": False, **wishes}
    with Run(device.as_device(), sampler=sampler, **wishes) as run:
        for _ in run.steps(range(n)):
            with run.forward():
                device.launch(1)
                device.synchronize()
    return run


def test_the_sampler_works_from_after_the_warm_up_to_the_end():
    sampler = FakeSampler()

    found = measured_with(sampler).result

    assert (sampler.entered, sampler.left) == (1, 1)
    assert found.readings["energy_j"] == 50.0
    assert found.series == {"power_w": ((0, 5), (20.0, 30.0))}


def test_the_samplers_overhead_is_printed_with_the_result():
    assert "the sampler took 0.04" in str(measured_with(FakeSampler()))


def test_a_sampler_that_does_not_start_costs_its_readings_and_nothing_else():
    found = measured_with(FakeSampler(fails=True)).result

    assert len(found.steps) == 3
    assert found.reasons["driver's samples"] == "OSError: no thread"


def test_energy_is_told_for_each_step_that_was_measured():
    assert measured_with(FakeSampler(), n=7).result.energy_per_step_j == 50.0 / 5


def test_the_real_sampler_gives_readings_or_a_reason_and_never_a_zero():
    found = measured_with(Sampler()).result

    assert ("power_w" in found.readings) != ("driver's samples" in found.reasons)
    assert 0 not in {found.readings.get("power_w"), found.readings.get("energy_j")}


def test_memory_peak_is_a_reading():
    assert measured_with(None).result.readings["memory_peak_bytes"] == 3 * 2**30


# --- the window -----------------------------------------------------------------------------------------------------


def profiled(n_batches: int, n_look: int = 2, warmup: int = 1) -> Run:
    """Steps of one kernel on the fake GPU of the recorder's tests, whose profiler writes a trace."""
    gpu = FakeGpu()
    device = cpu(lambda: 1000 * gpu.host_us)
    look = Profiled(gpu.as_gpu)
    with Run(device, warmup=warmup, profile_steps=n_look, look=look, history=False) as run:
        for _ in run.steps(range(n_batches)):
            gpu.think(30)
            gpu.launch(20)
            gpu.synchronize()
    return run


def test_the_profilers_steps_are_between_warm_up_and_split():
    found = profiled(8).result  # 1 warm-up, 1 more for the profiler, 2 in the window, 4 split

    assert len(found.window.steps) == 2
    assert (len(found.steps), found.n_left_out) == (4, 4)


def test_the_window_has_the_kernels_of_its_steps():
    assert sum(1 for _ in profiled(8).result.window.on(Activity.KERNEL)) == 2


def test_the_best_ledger_is_that_of_the_window():
    found = profiled(8).result

    assert found.best_ledger.charged_ns == found.window_ledger.charged_ns
    assert found.window_ledger.share(Account.LAUNCH_OVERHEAD) > 0


def test_a_device_without_a_profiler_says_why_there_is_no_window():
    assert for_device(cpu()) == (None, "there is no GPU at work, so there are no kernels to look at")


# --- the history ----------------------------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path, monkeypatch) -> History:
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    monkeypatch.delenv("GPUTUTOR_HISTORY", raising=False)
    return History()


def test_a_measured_loop_is_logged_with_its_parts_as_accounts(history):
    run = measured_with(None, history=None, what="train.py", configuration={"batch": 32})

    (entry,) = history.runs()
    assert (entry.number, entry.kind, entry.name) == (run.number, "measure", "train.py")
    assert entry.configuration["batch"] == 32
    assert entry.accounts_ns == {Account.BUSY_UNSPLIT: MS}


@pytest.mark.parametrize("off", ["argument", "environment"])
def test_nothing_is_logged_where_it_is_not_wanted(history, monkeypatch, off):
    monkeypatch.setenv("GPUTUTOR_HISTORY", "0" if off == "environment" else "1")

    measured_with(None, history=False if off == "argument" else None)

    assert history.runs() == ()


# --- expected -------------------------------------------------------------------------------------------------------


def test_a_slower_input_than_another_measurement_is_named_with_an_experiment():
    found = measurement(input_ms=6).expect(measurement(input_ms=2))

    (outside,) = found.outside
    assert outside.account is Account.WAITING_FOR_INPUT
    assert "loader alone" in outside.experiment.what


def test_two_measurements_by_marks_compare_what_is_inside_parts_as_one_line():
    found = measurement(forward_ms=16).expect(measurement(forward_ms=8))

    assert [v.name for v in found.outside] == ["forward, backward, optimizer"]
    assert "gaps between kernels" in found.text


def test_without_a_history_nobody_can_tell(history):
    with pytest.raises(ExpectationError, match="cannot tell: the history has 0 runs"):
        measurement().expect()


def test_with_three_runs_before_it_the_history_says_what_to_expect(history):
    for _ in range(3):
        history.log(entry_of(measurement()))

    found = measurement(input_ms=6).expect()

    assert found.step.band.expected == 10 * MS
    assert [v.account for v in found.outside] == [Account.WAITING_FOR_INPUT]


def test_a_run_that_was_logged_is_not_among_those_before_it(history):
    for _ in range(3):
        history.log(entry_of(measurement()))
    history.log(entry_of(measurement(input_ms=6)))

    assert measurement(input_ms=6).expect().step.band.expected == 10 * MS


def test_a_predicted_timeline_can_be_what_is_expected():
    predicted = draw(host="II........", gpu="..########", steps="1111111111", unit_ns=MS)

    assert measurement().expect(predicted).outside == ()


def test_expect_takes_the_run_as_it_was_measured():
    run = measured_with(None)

    assert gpututor.expect(run, run).outside == ()


def test_expect_refuses_what_was_not_measured():
    with pytest.raises(ExpectationError, match="int was given"):
        gpututor.expect(3)


def test_the_profiler_is_no_explanation_where_none_was_on():
    found = measurement(forward_ms=30).expect(measurement())

    (outside,) = found.outside
    assert not any("profiler" in why for why in outside.explanations)


def test_held_clocks_are_the_first_explanation_where_they_were_seen():
    found = measurement(forward_ms=30, readings={"clocks_held_share": 0.4}).expect(measurement())

    assert found.outside[0].explanations[0].startswith("the clock was lower")


def test_the_result_prints_its_parts_and_reasons():
    text = str(measurement(reasons={"energy_j": "Not Supported"})).replace("\N{NO-BREAK SPACE}", " ")

    assert "4 steps, median 10.0 ms" in text
    assert "input wait           2.00 ms      20 %" in text
    assert "not known: energy_j (Not Supported)" in text


def test_the_module_loads_what_it_saved(tmp_path):
    measurement().save(tmp_path / "a.json")

    assert gpututor.measure.load(tmp_path / "a.json") == measurement()
