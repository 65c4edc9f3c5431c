"""The training with pauses and the jobs beside it, on the CPU: what they compute, write and leave behind."""

from __future__ import annotations

import gc

import pytest
import torch
import torch.utils.deterministic

from gpututor.jobs import switches
from gpututor.jobs.growing import WAYS, GrowingTraining
from gpututor.jobs.pausing import EPOCHS, HISTOGRAMS, N_BINS, Epochs, PausedTraining

CPU = torch.device("cpu")


@pytest.fixture
def trained():
    made = []

    def train(manner, n_steps=2, every=2, **named):
        job = PausedTraining(Epochs("", "", manner, every, **named), CPU)
        made.append(job)
        for k in range(n_steps):
            job(k)
        return job

    yield train
    for job in made:
        job.done()


def test_both_manners_end_with_the_same_weights_and_the_same_held_out_loss(trained):
    found, tidy = trained("found", reads=True), trained("tidy")

    assert list(found.numbers()) == list(tidy.numbers())
    assert found.held_losses[2] == pytest.approx(tidy.held_losses[2], rel=1e-5)


@pytest.mark.parametrize("manner", ["found", "tidy"])
def test_a_checkpoint_holds_what_the_training_has(trained, manner):
    job = trained(manner)
    job.noted()  # waits for the writer
    kept = torch.load(job._path)

    assert [torch.equal(a, b) for a, b in zip(kept, job._state(), strict=True)] == [True] * len(kept)
    assert len(kept) == 3 * sum(1 for _ in job.net.parameters())


def test_both_manners_count_the_same_weights(trained):
    found, tidy = (trained(manner, parts=(HISTOGRAMS,)).drawn for manner in ("found", "tidy"))

    assert [int(each.sum()) for each in found] == [int(each.sum()) for each in tidy]
    assert {len(each) for each in tidy} == {N_BINS}


def test_it_pauses_after_as_many_steps_as_it_is_told(trained):
    assert sorted(trained("tidy", n_steps=7, every=3).held_losses) == [3, 6]


def test_its_files_are_gone_afterwards(trained):
    job = trained("found")
    folder = job._path.parent
    job.done()

    assert not folder.exists()


def test_the_lessons_epochs_have_names_of_their_own():
    assert [each.key for each in EPOCHS] == ["silent", "found", "often", "tidy"]


@pytest.mark.parametrize("way", ["all", "last"])
def test_a_mean_is_that_of_all_losses(way):
    job = GrowingTraining(way, CPU)
    losses = [float(job(k)) for k in range(5)]
    job.done()

    assert job.noted()["mean"] == pytest.approx(sum(losses) / 5)


def test_a_report_has_a_line_for_each_step():
    job = GrowingTraining("report", CPU)
    for k in range(4):
        job(k)
    text = job.report.read_text()
    job.done()

    assert text.count("<tr>") == 4
    assert set(WAYS) == {"all", "report", "last"}


@pytest.mark.parametrize("switch", sorted(set(switches.SWITCHES) - {"emptied"}))
def test_a_switch_is_off_again_after_its_step(switch):
    seen = []

    def step(_k):
        seen.append((torch.is_anomaly_enabled(), torch.are_deterministic_algorithms_enabled()))

    switches.Switched(step, switch)(0)

    assert seen == [(switch == "anomaly", switch in ("deterministic", "unfilled"))]
    assert not torch.is_anomaly_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_frozen_objects_are_given_back():
    job = switches.Collecting(CPU, n_samples=10, frozen=True)
    assert gc.get_freeze_count() > 0
    job.done()

    assert gc.get_freeze_count() == 0
