"""Recording on a real GPU, with the GPU replaced by one whose clock we move; the real one has few tests at the end."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from gpututor.errors import NoSteps, StepFailed, WrongDevice
from gpututor.measure.cuda import Gpu, record_cuda
from gpututor.measure.nvml import Readings
from gpututor.timeline import Activity, Origin
from tests.measure.fake_gpu import FakeGpu

US = 1000


def waiting_step(gpu: FakeGpu):
    """30 µs of Python, one kernel of 20 µs, and a wait for it."""

    def step(k):
        gpu.think(30)
        gpu.launch(20)
        gpu.synchronize()
        return 1.0 / (k + 1)

    return step


def launching_step(gpu: FakeGpu):
    """10 kernels of 100 µs each, launched in 50 µs, and no wait."""

    def step(k):
        for _ in range(10):
            gpu.launch(100)

    return step


def test_only_the_steps_after_the_warm_up_are_kept():
    gpu = FakeGpu()

    recording = record_cuda(waiting_step(gpu), n_steps=4, warmup=2, gpu=gpu.as_gpu())

    assert len(recording.timeline.steps) == 4
    assert sum(1 for _ in recording.timeline.on(Activity.KERNEL)) == 4
    assert gpu.n_launches == 2 + 1 + 4  # one more while the profiler warms up


def test_a_step_lasts_as_long_as_the_host_took():
    gpu = FakeGpu()

    recording = record_cuda(waiting_step(gpu), n_steps=3, warmup=1, gpu=gpu.as_gpu())

    assert recording.timeline.steps[0].end_ns - recording.timeline.steps[0].start_ns == (30 + 5 + 20) * US


def test_losses_are_those_of_the_kept_steps():
    gpu = FakeGpu()

    recording = record_cuda(waiting_step(gpu), n_steps=2, warmup=1, gpu=gpu.as_gpu())

    assert recording.losses == (1 / 3, 1 / 4)
    assert [step.loss for step in recording.timeline.steps] == [1 / 3, 1 / 4]


def test_a_loss_given_as_a_tensor_becomes_a_number():
    gpu = FakeGpu()

    def step(k):
        gpu.launch(1)
        return torch.tensor(0.5, requires_grad=True)

    assert record_cuda(step, n_steps=1, warmup=0, gpu=gpu.as_gpu()).losses == (0.5,)


def test_the_label_says_measured_card_and_versions():
    gpu = FakeGpu()
    with_driver = Readings(driver="550.54")

    label = record_cuda(waiting_step(gpu), n_steps=1, gpu=gpu.as_gpu(with_driver)).timeline.label

    assert label.origin is Origin.MEASURED
    assert (label.card, label.n_sms) == ("V100-SXM2-16GB", 80)
    assert label.versions == (("torch", "2.13.0"), ("driver", "550.54"))


def test_work_still_running_after_the_last_step_is_inside_the_window():
    gpu = FakeGpu()

    timeline = record_cuda(launching_step(gpu), n_steps=2, warmup=0, gpu=gpu.as_gpu()).timeline

    assert max(s.end_ns for s in timeline.on(Activity.KERNEL)) <= timeline.window_ns[1]


def test_work_of_the_warm_up_is_done_before_the_window_begins():
    gpu = FakeGpu()

    timeline = record_cuda(launching_step(gpu), n_steps=2, warmup=3, gpu=gpu.as_gpu()).timeline

    assert sum(1 for _ in timeline.on(Activity.KERNEL)) == 20
    assert min(s.start_ns for s in timeline.on(Activity.KERNEL)) >= timeline.window_ns[0]


def test_a_step_that_never_waits_is_said_to():
    gpu = FakeGpu()

    notes = record_cuda(launching_step(gpu), n_steps=2, gpu=gpu.as_gpu()).notes

    assert any("never waits for the GPU" in note for note in notes)


def test_a_step_that_waits_gets_no_such_note():
    gpu = FakeGpu()

    notes = record_cuda(waiting_step(gpu), n_steps=2, gpu=gpu.as_gpu()).notes

    assert not any("never waits" in note for note in notes)


def test_a_profiler_that_slows_the_step_is_said_to_with_both_times():
    # watched: 30 + (5 + 50) + (20 + 50); before: 30 + 5 + 20 and 1 for the recorder's own wait
    gpu = FakeGpu(watching_costs_us=50)

    notes = record_cuda(waiting_step(gpu), n_steps=2, warmup=2, gpu=gpu.as_gpu()).notes

    assert any("155\N{NO-BREAK SPACE}µs while it was watched and 56" in note for note in notes)


def test_the_drivers_own_gauge_is_noted():
    gpu = FakeGpu()

    assert any("gauge stood at 25" in note for note in record_cuda(waiting_step(gpu), gpu=gpu.as_gpu()).notes)


def test_a_gauge_that_cannot_be_read_is_noted_with_the_reason():
    gpu = FakeGpu()
    silent = Readings(reasons={"kernel_time_share": "NVMLError: Not Supported"})

    notes = record_cuda(waiting_step(gpu), gpu=gpu.as_gpu(silent)).notes

    assert any("could not be read (NVMLError: Not Supported)" in note for note in notes)


def test_a_step_that_raises_is_named_with_its_own_error():
    def step(k):
        if k == 2:
            raise IndexError("no word 4,345")

    with pytest.raises(StepFailed, match="step 2 raised IndexError: no word 4,345") as caught:
        record_cuda(step, gpu=FakeGpu().as_gpu())
    assert isinstance(caught.value.__cause__, IndexError)


def test_an_error_that_the_gpu_reports_late_names_the_step_before():
    gpu = FakeGpu()

    def failing():
        raise RuntimeError("device-side assert triggered")

    gpu.synchronize = failing

    with pytest.raises(StepFailed, match="after step 0: device-side assert"):
        record_cuda(launching_step(gpu), n_steps=1, warmup=0, gpu=gpu.as_gpu())


def test_a_step_that_launches_nothing_is_asked_where_model_and_batch_are():
    gpu = FakeGpu()

    with pytest.raises(WrongDevice, match=r"launched nothing on the Tesla V100.*model and batch"):
        record_cuda(lambda k: gpu.think(10), gpu=gpu.as_gpu())


def test_a_loop_on_the_cpu_under_the_real_profiler_launches_nothing():
    def profiler(n_steps):
        return torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU],
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=n_steps, repeat=1),
        )

    here = Gpu("GPU", lambda: None, profiler, lambda name: nullcontext(), Readings)

    with pytest.raises(WrongDevice, match="launched nothing"):
        record_cuda(lambda k: torch.ones(3) + k, n_steps=2, gpu=here)


@pytest.mark.parametrize(
    ("n_batches", "words"), [(0, "before its first step"), (3, "after 3 steps, all of them warm-up")]
)
def test_a_loop_too_short_for_the_warm_up_is_refused_with_its_length(n_batches, words):
    gpu = FakeGpu()

    def step(k):
        if k == n_batches:
            raise StopIteration
        gpu.launch(1)

    with pytest.raises(NoSteps, match=words):
        record_cuda(step, warmup=3, gpu=gpu.as_gpu())


def test_a_loop_that_ends_early_is_kept_as_far_as_it_came():
    gpu = FakeGpu()
    whole = waiting_step(gpu)

    def step(k):
        if k == 5:
            raise StopIteration
        return whole(k)

    recording = record_cuda(step, n_steps=10, warmup=1, gpu=gpu.as_gpu())  # 0 and 1 warm up; 2, 3, 4 are kept

    assert len(recording.timeline.steps) == len(recording.losses) == 3
    assert any("ended after 3 of 10 steps" in note for note in recording.notes)


def test_no_steps_asked_for_is_refused():
    with pytest.raises(NoSteps, match="0 steps were asked for"):
        record_cuda(lambda k: None, n_steps=0, gpu=FakeGpu().as_gpu())


@pytest.mark.gpu
def test_a_matrix_product_on_the_real_gpu_is_one_kernel_a_step_at_least():
    a = torch.randn(1024, 1024, device="cuda")

    recording = record_cuda(lambda k: (a @ a).sum().item(), n_steps=3)

    assert len(recording.timeline.steps) == 3
    assert sum(1 for _ in recording.timeline.on(Activity.KERNEL)) >= 3


@pytest.mark.gpu
def test_a_reading_step_on_the_real_gpu_shows_its_waits():
    a = torch.randn(1024, 1024, device="cuda")

    timeline = record_cuda(lambda k: (a @ a).sum().item(), n_steps=3).timeline

    assert sum(1 for _ in timeline.on(Activity.SYNC, Activity.COPY_CALL)) >= 3
