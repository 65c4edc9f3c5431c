"""Lesson 2's experiment: what it hands back when it ends, and when it is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpututor.errors import ExperimentError
from gpututor.experiments.seq2seq import train
from gpututor.model import tape_file
from gpututor.model.tape import BeginStep
from gpututor.progress import Progress, Stopped


def stopped_after(n_steps: int, folder: Path) -> Progress:
    """A reader who presses Stop once so many steps were reported."""
    seen = []
    return Progress(lambda k, *_: seen.append(k), lambda: seen[-1] >= n_steps, folder)


def n_steps_kept(folder: Path) -> int:
    return sum(isinstance(entry, BeginStep) for entry in tape_file.load(folder / "seq2seq.tape.gz").entries)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return train(Progress(results_dir=folder), n_steps=5, n_kept=3), folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("stopped")
    return train(stopped_after(2, folder), n_steps=500, n_kept=3), folder


def test_every_step_is_told(whole):
    assert len(whole[0]["steps"]) == 5


def test_the_tape_keeps_the_last_steps_only(whole):
    assert n_steps_kept(whole[1]) == 3


def test_the_tapes_losses_are_those_of_its_steps(whole):
    data, folder = whole

    assert tape_file.load(folder / data["tape"]).losses == [row[-1] for row in data["steps"][-3:]]


def test_a_stopped_run_hands_back_the_steps_it_did(stopped):
    assert len(stopped[0]["steps"]) == 2


def test_a_stopped_run_still_writes_its_tape(stopped):
    assert stopped[0]["tape"] == "seq2seq.tape.gz"
    assert n_steps_kept(stopped[1]) == 2


def test_a_stopped_run_did_what_a_whole_one_did_until_then(whole, stopped):
    assert [row[-1] for row in stopped[0]["steps"]] == [row[-1] for row in whole[0]["steps"][:2]]


def test_stopped_before_its_first_step_it_hands_back_nothing(tmp_path):
    progress = stopped_after(0, tmp_path)

    with pytest.raises(Stopped):
        train(progress, n_steps=500)

    assert progress.partial is None


def test_no_steps_are_refused(tmp_path):
    with pytest.raises(ExperimentError, match="0 steps were asked for"):
        train(Progress(results_dir=tmp_path), n_steps=0)
