"""Lesson 19's experiment: the levers train the same model, and what is kept is what ran."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpututor.errors import ExperimentError
from gpututor.experiments import capstone
from gpututor.experiments.raised import Raised, batches
from gpututor.jobs.held_out import NAMES, loss_of
from gpututor.jobs.levers import Bits, Choices, Launch, Layers, Lengths, Reading, Schedule
from gpututor.jobs.numbering import Rows
from gpututor.jobs.rules import Rule, Way
from gpututor.progress import Progress
from gpututor.simgpu import simulated_gpu
from tools.capstone import DOCS, OURS, page

HIDDEN = 16
GOOD = replace(OURS, batch=8, most=64)


def some_rows(n=64) -> Rows:
    whole = capstone.sentences().trained
    return Rows(*(getattr(whole, name)[:n] for name in ("french", "english", "n_french", "n_english")))


def trained(choices, n_steps=3, device="cpu"):
    job = Raised(torch.device(device), choices, some_rows(), hidden=HIDDEN)
    for half in (job.encoder, job.decoder):
        half.eval()  # nothing dropped, so that ways can be compared
    for _ in range(n_steps):
        job()
    return capstone.weights_of(job)


def differ(a, b):
    return max(float(np.abs(a[name] - b[name]).max()) for name in NAMES)


def always_forced(monkeypatch):
    monkeypatch.setattr("gpututor.experiments.raised.TEACHER_FORCING", 2.0)


@pytest.mark.parametrize("batch", [1, 8])
def test_whole_sentences_teach_what_word_by_word_does(batch, monkeypatch):
    always_forced(monkeypatch)
    words = trained(Choices(batch=batch, rate=0.05))

    assert differ(words, trained(Choices(batch=batch, rate=0.05, layers=Layers.WHOLE))) < 1e-5


@pytest.mark.parametrize(("lengths", "bits"), [(each, Bits.FP32) for each in Lengths] + [(Lengths.MIXED, Bits.FP16)])
def test_a_graph_teaches_what_the_same_kernels_do_one_by_one(lengths, bits):
    plain = Choices(8, lengths, Layers.WHOLE, rule=Rule.ADAM, update=Way.FUSED, rate=0.01, bits=bits)
    found = []
    for launch in Launch:
        with simulated_gpu("p3.2xlarge"):
            found.append(trained(replace(plain, launch=launch), 4, "simgpu"))

    assert differ(*found) < (1e-5 if bits is Bits.FP32 else 1e-3)  # places filled up are rounded otherwise


def test_the_loss_from_weights_is_torchs_own(monkeypatch):
    always_forced(monkeypatch)
    job = Raised(torch.device("cpu"), Choices(batch=64, rate=0.0), some_rows(), hidden=HIDDEN)
    for half in (job.encoder, job.decoder):
        half.eval()
    loss, words = job()

    assert loss_of(capstone.weights_of(job), some_rows()) == pytest.approx(float(loss) / words, rel=1e-4)


def test_batches_of_one_length_are():
    rows = some_rows()

    for picked in batches(rows, Choices(batch=4, lengths=Lengths.ALIKE), 0):
        assert len(set(rows.n_english[picked])) == 1


def test_a_pass_sees_no_sentence_twice():
    picked = [k for batch in batches(some_rows(), Choices(batch=8), 0) for k in batch]

    assert len(picked) == len(set(picked)) == 64


def test_choices_survive_as_data():
    chosen = Choices(8, Lengths.ALIKE, Layers.WHOLE, Launch.GRAPH, Rule.ADAM, Way.FUSED, 0.003, Schedule.FALLING)

    assert Choices.from_data(json.loads(json.dumps(chosen.as_data()))) == chosen


@pytest.mark.parametrize("told", [{"batch": "many"}, {"rule": "LUCK"}, {"luck": 1}])
def test_an_unknown_choice_is_refused(told):
    with pytest.raises(ExperimentError, match="choose among"):
        Choices.from_data(told)


@pytest.mark.parametrize(
    "clashing",
    [
        Choices(launch=Launch.GRAPH),
        Choices(launch=Launch.GRAPH, layers=Layers.WHOLE, schedule=Schedule.FALLING),
        Choices(launch=Launch.GRAPH, layers=Layers.WHOLE, bits=Bits.FP16),
    ],
)
def test_what_cannot_go_together_is_a_sentence_and_no_run(clashing, tmp_path):
    made = capstone.run(Progress(results_dir=tmp_path), choices=clashing.as_data(), n_mystery=1)

    assert made["points"][1]["trouble"] == clashing.clash != ""
    assert set(made["tapes"]) == {"mystery"}


def test_the_rate_warms_up_and_falls():
    chosen = Choices(rate=1.0, schedule=Schedule.FALLING)

    assert [chosen.rate_at(k) for k in (0, 9, 19, 79)] == pytest.approx([0.05, 0.5, 1.0, 0.5])


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return capstone.run(
        Progress(results_dir=tmp_path_factory.mktemp("run")), choices=GOOD.as_data(), n_mystery=3, target=100.0
    )


def test_an_attempt_ends_when_it_is_there_or_has_seen_what_it_may(short):
    told = short["points"][1]

    assert told["reached"]
    assert (told["n_seen"], told["n_steps"], told["n_start"]) == (64, 8, 2)


def test_the_mystery_job_begins_as_in_the_training_that_was_kept(short):
    assert short["points"][0]["losses"] == pytest.approx(capstone.mystery()["losses"][:3], rel=1e-4)


def test_a_loss_that_is_read_rarely_is_known_rarely(short):
    known = [k for k, loss in enumerate(short["points"][1]["losses"]) if loss is not None]

    assert known == [0]  # of eight steps; the next would be the twenty-first


def test_the_tapes_of_start_and_usual_steps_are_kept_apart(short):
    assert set(short["tapes"]) == {"mystery", "yours", "yours-start"}


def test_nothing_that_is_held_out_is_trained_on():
    split = capstone.sentences()
    known = {tuple(row) for row in split.trained.french}

    assert not known & {tuple(row) for row in split.held_out.french}


def test_our_solution_is_the_one_that_was_kept():
    told = json.loads((capstone.folder() / "ours.json").read_text("ascii"))

    assert Choices.from_data(told["points"][1]["choices"]) == OURS
    assert told["target"] == capstone.mystery()["target"]


def test_the_page_about_our_solution_says_what_was_kept():
    assert DOCS.read_text("utf-8") == page()


def test_reading_rarely_is_what_ours_does():
    assert OURS.reading is Reading.RARELY
