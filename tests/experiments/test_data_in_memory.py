"""Lesson 7's experiment: every way hands out the same batches, asks the table as often as it says, and is kept calm."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils.data import TensorDataset

from gpututor.errors import ExperimentError
from gpututor.experiments import data_in_memory, loader_loops
from gpututor.experiments.calm import calm_stretch, simulate_calmly
from gpututor.experiments.sweeps import Variant
from gpututor.jobs import in_memory
from gpututor.model import tape_file
from gpututor.model.tape import BeginStep
from gpututor.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*worker:UserWarning")
CPU = torch.device("cpu")
TABLE = {variant.key: variant for variant in data_in_memory.of_the_table()}


@pytest.fixture(autouse=True)
def _own_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))  # other tests may measure meanwhile


def losses(variant: Variant, n_steps: int = 3) -> list[float]:
    step = variant.make(CPU)
    return [float(step(k)) for k in range(n_steps)]


# --- the same batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rows-1", "batch-0", "batch-2", "index", "slice", "card"])
def test_however_the_table_is_handed_out_the_losses_are_the_same_to_the_bit(key):
    assert losses(TABLE[key]) == losses(TABLE["rows-0"])


@pytest.mark.parametrize(
    "variants",
    [
        pytest.param(data_in_memory.of_samplers()[:2], id="weighted"),
        pytest.param(data_in_memory.of_samplers()[2:], id="half of the table"),
        pytest.param(data_in_memory.of_arrays(), id="arrays"),
        pytest.param(data_in_memory.of_texts()[::2], id="texts"),
    ],
)
def test_what_is_compared_elsewhere_sees_the_same_batches_too(variants):
    assert len({tuple(losses(variant, 2)) for variant in variants}) == 1


def test_a_file_a_row_and_one_file_hold_the_same(tmp_path):
    per_row, _, whole = data_in_memory.of_files(tmp_path, n_files=300)

    assert losses(per_row) == losses(whole)
    assert len(list(tmp_path.iterdir())) == 301


def test_two_epochs_have_another_order():
    order = in_memory.Order(100)

    assert list(order) != list(order)


def test_an_epoch_has_every_row_once():
    assert sorted(in_memory.Order(100)) == list(range(100))


# --- how often the table is asked ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "n_asked"), [("rows-0", 256), ("batch-0", 0), ("rows-large", 1024)])
def test_row_by_row_asks_once_a_row_and_a_batch_at_once_never(key, n_asked, monkeypatch):
    asked = []
    one_row = TensorDataset.__getitem__
    monkeypatch.setattr(TensorDataset, "__getitem__", lambda self, k: asked.append(k) or one_row(self, k))
    losses(TABLE[key], 1)

    assert len(asked) == n_asked


def test_tokens_are_made_again_each_time_they_are_asked_for(monkeypatch):
    made = []
    real = in_memory.tokens
    monkeypatch.setattr(in_memory, "tokens", lambda text, known: made.append(text) or real(text, known))
    losses(data_in_memory.of_texts()[0], 2)

    assert len(made) == 2 * 256


def test_every_word_of_a_text_is_known():
    written, _ = in_memory.texts(20)
    known = in_memory.vocabulary()

    assert all(len(in_memory.tokens(text, known)) == in_memory.WORDS_PER_TEXT for text in written)
    assert all(word in known for text in written for word in text.split())


# --- the calm stretch ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "n_kept", "first"),
    [
        pytest.param([3, 1, 1, 3], 2, 1, id="between two disturbances"),
        pytest.param([1, 1, 1, 1], 4, 0, id="all of it"),
        pytest.param([9, 9, 9, 2], 1, 3, id="a single calm step"),
    ],
)
def test_the_stretch_that_is_kept_is_a_calm_one(steps, n_kept, first):
    marks = [sum(steps[:k]) for k in range(len(steps) + 1)]

    assert calm_stretch(marks, n_kept) == first


def test_the_luckiest_of_many_stretches_is_not_taken():
    marks = [0]
    for step in [1, *([5] * 30)]:
        marks.append(marks[-1] + step)

    assert calm_stretch(marks, 1) != 0


def kept(**more) -> tuple[dict, Path]:
    few = [TABLE["rows-0"], TABLE["batch-0"]]
    return simulate_calmly(variants=few, what="a test", n_steps=5, n_kept=lambda each: 3, n_warmup=1, **more)


def test_a_run_keeps_the_steps_that_it_says(tmp_path):
    data = kept(progress=Progress(results_dir=tmp_path))
    tape = tape_file.load(tmp_path / data["tapes"]["rows-0"])

    assert sum(isinstance(entry, BeginStep) for entry in tape.entries) == 3
    assert [len(point["losses"]) for point in data["points"]] == [5, 5]


def test_a_second_visit_gives_no_second_point(tmp_path):
    data = kept(progress=Progress(results_dir=tmp_path), again=["rows-0"])

    assert [point["key"] for point in data["points"]] == ["rows-0", "batch-0"]


def test_a_run_that_is_stopped_hands_back_what_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("gpututor.experiments.calm.TELL_EVERY", 1)
    seen = []
    data = kept(progress=Progress(lambda k, *_: seen.append(k), lambda: len(seen) > 6, tmp_path))

    assert [point["key"] for point in data["points"]] == ["rows-0"]


def test_nothing_to_run_is_said():
    with pytest.raises(ExperimentError, match="0 variants"):
        simulate_calmly(Progress(), [], what="nothing")


# --- the whole -------------------------------------------------------------------------------------------------------


def test_every_variant_that_a_page_shows_exists(tmp_path):
    every = [
        *TABLE.values(),
        *data_in_memory.of_samplers(),
        *data_in_memory.of_arrays(),
        *data_in_memory.of_texts(),
        *data_in_memory.of_files(tmp_path),
    ]
    shown = {key for group in data_in_memory.GROUPS.values() for key in group}

    assert shown | {"rows-large"} == {variant.key for variant in every}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(loader_loops, "SMALL", (64, 5, 16))
    monkeypatch.setattr(loader_loops, "WIDER", (64, 20, 16))
    monkeypatch.setattr(loader_loops, "PETASTORM_BATCH", 16)
    monkeypatch.setattr(loader_loops, "ARRAYS", (2, 4, 4, 3))


def test_a_whole_run_has_the_threads_scripts_besides(tmp_path, small, monkeypatch):
    monkeypatch.setattr(data_in_memory, "of_the_table", lambda: [TABLE["rows-0"]])
    for name in ("of_samplers", "of_arrays", "of_texts"):
        monkeypatch.setattr(data_in_memory, name, list)
    data = data_in_memory.run(Progress(results_dir=tmp_path), n_steps=2, n_warmup=1, n_file_steps=1, n_loops=1)

    assert {"by row 0", "by batch 2", "slices", "list"} <= set(data["loops"])
    assert min(data["loops"].values()) > 0


def test_each_loop_is_told_before_it_runs(small):
    told = []

    assert list(loader_loops.loops(told.append, 1)) == told
