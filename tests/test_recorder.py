"""One call records on whatever GPU there is, says which, and refuses in one sentence what can't be recorded."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor.errors import CardNotKnown, DeviceNotKnown, MachineNotKnown, NoSteps, StepFailed, WrongDevice
from gpututor.jobs.seq2seq import Seq2SeqJob
from gpututor.recorder import find_device, record, record_loop
from gpututor.timeline import Activity, Origin

MS = 1_000_000


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    """As on most machines, whatever this one has."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def model():
    device = find_device("simgpu").device
    return nn.Linear(8, 8).to(device)


def reading_step(model):
    x = torch.ones(4, 8, device="simgpu")
    return lambda k: model(x).sum().item()


def launching_step(model):
    x = torch.ones(4, 8, device="simgpu")

    def step(k):
        model(x)

    return step


def test_without_a_gpu_the_simulated_one_is_used_and_said(model):
    recording = record(reading_step(model), n_steps=2)

    assert recording.timeline.label.origin is Origin.SIMULATED
    assert recording.notes[0] == "no GPU found here, so this is a simulated V100-SXM2-16GB on p3.2xlarge"


def test_the_machine_may_be_named_by_its_card(model):
    recording = record(reading_step(model), device="simgpu", n_steps=1, machine="A100-SXM4-80GB")

    assert recording.timeline.label.card == "A100-SXM4-80GB"


def test_kept_steps_have_their_losses(model):
    recording = record(lambda k: (reading_step(model)(k), float(k))[1], n_steps=3, warmup=2)

    assert recording.losses == (2.0, 3.0, 4.0)
    assert len(recording.timeline.steps) == 3


def test_a_simulated_recording_has_its_tape_for_other_machines(model):
    recording = record(reading_step(model), n_steps=2)

    assert recording.tape is not None
    assert recording.tape.n_steps == 2


def test_a_step_that_never_waits_is_said_to(model):
    notes = record(launching_step(model), n_steps=2).notes

    assert any("never waits for the GPU" in note for note in notes)


def test_a_step_that_waits_gets_no_such_note(model):
    notes = record(reading_step(model), n_steps=2).notes

    assert not any("never waits" in note for note in notes)


def test_a_step_that_raises_is_named_with_its_own_error(model):
    def step(k):
        model(torch.ones(4, 9, device="simgpu"))

    with pytest.raises(StepFailed, match=r"step 0 raised RuntimeError: .*shape"):
        record(step)


def test_a_model_left_on_the_cpu_is_refused_before_the_first_step():
    calls = []

    with pytest.raises(WrongDevice, match=r"parameters on cpu, .* recorded on simgpu .*model\.to\('simgpu'\)"):
        record(calls.append, model=nn.Linear(2, 2))
    assert calls == []


def test_one_of_two_models_left_on_the_cpu_is_refused(model):
    with pytest.raises(WrongDevice, match="parameters on cpu"):
        record(lambda k: None, model=(model, nn.Linear(2, 2)))


def test_a_step_on_the_cpu_launches_nothing():
    layer = nn.Linear(8, 8)

    with pytest.raises(WrongDevice, match="launched nothing on the simulated V100-SXM2-16GB"):
        record(lambda k: layer(torch.ones(4, 8)).sum().item())


@pytest.mark.parametrize("device", ["cpu", "gpu", "tpu:0", "cuda:one", "cuda:", "auto:1"])
def test_a_device_that_cannot_be_recorded_is_refused_with_those_that_can(device):
    with pytest.raises(DeviceNotKnown, match=f'no device to record on is called "{device}"'):
        record(lambda k: None, device=device)


def test_an_unknown_machine_is_refused_with_near_names():
    with pytest.raises((MachineNotKnown, CardNotKnown), match=r"p3\.2xlarge"):
        record(lambda k: None, machine="p3.2xlagre")


def test_no_steps_asked_for_is_refused():
    with pytest.raises(NoSteps, match="0 steps were asked for"):
        record(lambda k: None, n_steps=0)


# --- loops over a loader --------------------------------------------------------------------------------------------


def batches(n):
    return [torch.ones(4, 8) for _ in range(n)]


def loop_step(model):
    return lambda batch: model(batch.to("simgpu")).sum().item()


def test_an_empty_loader_is_refused(model):
    with pytest.raises(NoSteps, match="is the loader empty"):
        record_loop([], loop_step(model))


def test_a_loader_that_ends_in_warm_up_is_refused(model):
    with pytest.raises(NoSteps, match="warm-up"):
        record_loop(batches(2), loop_step(model), warmup=3)


def test_a_loader_that_ends_early_is_kept_as_far_as_it_came(model):
    recording = record_loop(batches(5), loop_step(model), n_steps=10, warmup=3)

    assert len(recording.timeline.steps) == 2
    assert any("ended after 2 of 10 steps" in note for note in recording.notes)


def test_a_batch_takes_as_long_to_load_as_stated(model):
    timeline = record_loop(batches(5), loop_step(model), n_steps=2, batch_ns=3 * MS).timeline

    assert sum(s.duration_ns for s in timeline.on(Activity.INPUT)) == 2 * 3 * MS


def test_a_loader_without_a_stated_time_is_said_to_take_none(model):
    notes = record_loop(batches(5), loop_step(model), n_steps=2).notes

    assert any("pass batch_ns" in note for note in notes)


# --- the asker's job ------------------------------------------------------------------------------------------------


def test_the_translators_losses_on_the_simulated_gpu_are_the_cpus_exactly():
    on_cpu = Seq2SeqJob("cpu", seed=0)
    expected = [on_cpu.step(k) for k in range(8)]
    job = Seq2SeqJob(find_device("simgpu").device, seed=0)

    assert record(job.step, n_steps=8, warmup=0, n_samples=1, model=job.models).losses == tuple(expected)


def test_the_same_job_gives_the_same_timeline_twice():
    def once():
        job = Seq2SeqJob(find_device("simgpu").device, seed=0)
        return record(job.step, n_steps=3, warmup=1, n_samples=1).timeline

    assert once() == once()
