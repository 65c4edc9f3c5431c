"""Measuring the lessons' jobs on a real GPU, with a twin in its place; the real one has one test at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpututor import timeline_file
from gpututor.errors import ExperimentError, MachineBusy
from gpututor.experiments import measured
from gpututor.experiments.gauge import Workload
from gpututor.experiments.measured import Bench
from gpututor.experiments.seq2seq import WARMUP_STEPS
from gpututor.jobs.seq2seq import Seq2SeqJob
from gpututor.lab.lock import measuring
from gpututor.lab.pool import Lab
from gpututor.ledger import Account, charge
from gpututor.progress import Progress, Stopped
from gpututor.timeline import Activity, Origin
from tests.measure.fake_gpu import FakeGpu
from tests.measure.twin import KERNEL_US, machine_with_gpu

US = 1000


@pytest.fixture(autouse=True)
def own_lock(monkeypatch, tmp_path):
    """A lock that nobody else on this machine holds."""
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "lock"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    """Six sentences trained on the twin, the last four of them recorded."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch, machine_with_gpu() as bench:
        patch.setenv("GPUTUTOR_LOCK_DIR", str(folder))
        return measured.seq2seq(Progress(results_dir=folder), n_steps=6, n_kept=4, bench=bench), folder


@pytest.fixture
def timeline(run):
    return timeline_file.load(run[1] / run[0]["timeline"])


def stops_when(says: str, n_kept: int, tmp_path: Path, **numbers: int) -> dict:
    """Training on the twin by a reader who presses Stop when a certain thing happens."""
    notes = [""]
    progress = Progress(lambda k, n, note, partial: notes.append(f"{k} {note}"), lambda: says in notes[-1], tmp_path)
    with machine_with_gpu() as bench:
        return measured.seq2seq(progress, n_kept=n_kept, bench=bench, **numbers)


# --- training ------------------------------------------------------------------------------------------------------


def test_every_sentence_after_the_warm_up_has_its_row(run):
    assert len(run[0]["steps"]) == 6


def test_the_timeline_holds_the_last_sentences(run, timeline):
    assert len(timeline.steps) == run[0]["n_kept"] == 4
    assert [step.loss for step in timeline.steps] == [row[1] for row in run[0]["steps"][-4:]]


def test_the_sentences_are_those_of_a_simulated_run(run):
    job = Seq2SeqJob("cpu", seed=0, n_steps=WARMUP_STEPS + 6)
    losses = [job.step(k) for k in range(WARMUP_STEPS + 6)]

    assert [row[1] for row in run[0]["steps"]] == losses[WARMUP_STEPS:]


def test_a_row_says_how_long_the_sentence_took(run, timeline):
    walls_ns = [step.end_ns - step.start_ns for step in timeline.steps]

    assert [row[0] for row in run[0]["steps"][-4:-1]] == walls_ns[:-1]  # the last one also holds the recorder's wait


def test_the_timeline_says_measured_and_on_which_card(timeline):
    assert timeline.label.origin is Origin.MEASURED
    assert timeline.label.card == "V100-SXM2-16GB"


def test_each_op_of_the_job_is_a_kernel_of_the_ledger(timeline):
    ledger = charge(timeline)
    n_kernels = sum(1 for _ in timeline.on(Activity.KERNEL))

    assert ledger.n_kernels == n_kernels > 4 * 100
    assert ledger.busy_ns == KERNEL_US * US * n_kernels


def test_what_the_launch_calls_take_is_launch_overhead(timeline):
    ledger = charge(timeline)

    assert ledger.charged_ns[Account.LAUNCH_OVERHEAD] == 5 * US * ledger.n_kernels  # no kernel runs during a call


def test_card_notes_and_version_come_with_it(run):
    assert run[0]["gpu"] == "Tesla V100-SXM2-16GB"
    assert run[0]["torch"] == torch.__version__
    assert any("the driver's own gauge stood at 25" in note for note in run[0]["notes"])


@pytest.mark.parametrize(("n_steps", "n_kept"), [(5, 0), (5, 6)])
def test_numbers_of_steps_that_make_no_sense_are_refused(n_steps, n_kept, tmp_path):
    with pytest.raises(ExperimentError, match=f"{n_kept} of {n_steps} steps"):
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=n_steps, n_kept=n_kept)


# --- stop ----------------------------------------------------------------------------------------------------------


def test_stopped_before_the_recording_it_hands_back_nothing(tmp_path):
    with pytest.raises(Stopped):
        stops_when("1 loss", 2, tmp_path, n_steps=500)


def test_stopped_while_recording_it_keeps_the_sentences_it_has(tmp_path, monkeypatch):
    stop = []
    train = Seq2SeqJob.step

    def step(job, k):
        stop.extend([True] if k == WARMUP_STEPS + 3 else [])
        return train(job, k)

    monkeypatch.setattr(Seq2SeqJob, "step", step)
    with machine_with_gpu() as bench:
        data = measured.seq2seq(Progress(stop_asked=lambda: bool(stop), results_dir=tmp_path), n_steps=6, n_kept=4,
                                bench=bench)  # fmt: skip

    assert data["n_kept"] == 2
    assert len(timeline_file.load(tmp_path / data["timeline"]).steps) == 2


# --- what can go wrong ---------------------------------------------------------------------------------------------


def test_two_measurements_at_once_are_one_sentence(tmp_path):
    busy = pytest.raises(MachineBusy, match=r'"Lesson 1 on the T4" .* is measuring real time')

    with measuring("Lesson 1 on the T4"), machine_with_gpu() as bench, busy:
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=2, n_kept=1, bench=bench)


def test_the_lock_is_free_again_after_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(Seq2SeqJob, "__init__", lambda *_, **__: 1 / 0)
    with machine_with_gpu() as bench, pytest.raises(ExperimentError, match="could not run the job"):
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=2, n_kept=1, bench=bench)

    with measuring("the next one"):
        pass


def test_a_profiler_that_sees_no_kernel_is_said_to(tmp_path):
    blind = Bench("cpu", FakeGpu().as_gpu())

    with pytest.raises(ExperimentError, match=r"torch\.profiler saw none of its kernels"):
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=2, n_kept=1, bench=blind)


@pytest.mark.parametrize("when", ["__init__", "step"])
def test_too_little_memory_is_said_with_who_may_hold_it(when, tmp_path, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    monkeypatch.setattr(Seq2SeqJob, when, full)
    with machine_with_gpu() as bench, pytest.raises(ExperimentError, match=r"too little free memory .* nvidia-smi"):
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=2, n_kept=1, bench=bench)


def test_a_card_that_torch_no_longer_supports_is_one_line(tmp_path, monkeypatch):
    def refuses(*_, **__):
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(Seq2SeqJob, "__init__", refuses)
    with machine_with_gpu() as bench, pytest.raises(ExperimentError, match="no kernel image is available") as caught:
        measured.seq2seq(Progress(results_dir=tmp_path), n_steps=2, n_kept=1, bench=bench)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("built_for", "environment", "words"),
    [
        (None, {}, "was built without CUDA"),
        ("12.8", {"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES hides every GPU"),
        ("12.8", {"CUDA_VISIBLE_DEVICES": "0"}, "built for 12.8, finds none; perhaps the driver is older"),
    ],
)
def test_without_a_gpu_the_reason_is_given(built_for, environment, words):
    assert words in measured._why_no_gpu(built_for, "2.13.0", environment)


def test_without_a_gpu_an_experiment_ends_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(ExperimentError, match=r"^there is no GPU to measure on: .*; the simulated card needs none$"):
        measured.seq2seq(Progress(results_dir=tmp_path))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_worker_of_kind_real_without_a_gpu_fails_with_that_sentence(tmp_path):
    lab = Lab(1)
    job = lab.run("gpututor.experiments.measured:seq2seq", kind="real", results_dir=tmp_path)
    lab.close()

    assert job.state == "failed"
    assert job.sentence.startswith("There is no GPU to measure on: ")


# --- the workloads of lesson 1 -------------------------------------------------------------------------------------


def adding(n: int):
    def make(device):
        x = torch.ones(n, device=device)
        return lambda: x + x

    return make


def too_large(device):
    raise torch.OutOfMemoryError("CUDA out of memory")


SMALL = Workload("adding", 40, adding(8))


def gauged(tmp_path, *workloads: Workload, thinned: int = 4, progress: Progress | None = None) -> dict:
    with machine_with_gpu() as bench:
        return measured.gauge(
            progress or Progress(results_dir=tmp_path), thinned=thinned, bench=bench, workloads=workloads
        )


def test_a_workload_is_recorded_with_its_share_of_launches(tmp_path):
    data = gauged(tmp_path, SMALL, thinned=4)

    kernels = timeline_file.load(tmp_path / data["timelines"]["adding"]).on(Activity.KERNEL)
    assert sum(1 for _ in kernels) == 40 // 4


def test_a_workload_that_does_not_fit_is_left_out_with_the_reason(tmp_path):
    data = gauged(tmp_path, Workload("huge", 40, too_large), SMALL)

    assert list(data["timelines"]) == ["adding"]
    assert "too little free memory" in data["left_out"]["huge"]


def test_when_nothing_fits_the_reason_is_raised(tmp_path):
    with pytest.raises(ExperimentError, match="too little free memory"):
        gauged(tmp_path, Workload("huge", 40, too_large))


def test_a_stopped_run_hands_back_the_workloads_that_it_finished(tmp_path):
    notes = [""]
    progress = Progress(lambda k, n, note, partial: notes.append(note), lambda: notes[-1] == "second", tmp_path)

    data = gauged(tmp_path, SMALL, Workload("second", 40, adding(8)), progress=progress)

    assert list(data["timelines"]) == ["adding"]


def test_no_launches_are_refused(tmp_path):
    with pytest.raises(ExperimentError, match="divided by 0"):
        gauged(tmp_path, SMALL, thinned=0)


# --- the real thing ------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_the_translator_is_measured_on_the_real_gpu(tmp_path):
    data = measured.seq2seq(Progress(results_dir=tmp_path), n_steps=20, n_kept=5)

    ledger = charge(timeline_file.load(tmp_path / data["timeline"]))
    assert ledger.n_steps == 5
    assert 0 < ledger.gpu_util_share <= 1


@pytest.mark.gpu
def test_the_workloads_are_measured_on_the_real_gpu(tmp_path):
    data = measured.gauge(Progress(results_dir=tmp_path), thinned=50)

    assert all((tmp_path / file).is_file() for file in data["timelines"].values())
