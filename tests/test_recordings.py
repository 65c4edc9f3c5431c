"""The recordings that come with the course: small, described, and good to be priced."""

from __future__ import annotations

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.paths import data_dir
from gpututor.recordings import read
from gpututor.recordings.kept import MOST_BYTES as MOST_MEASURED_BYTES
from gpututor.replay import play_file

RECORDINGS = sorted((data_dir() / "recordings").iterdir())
TAPES = [path for path in RECORDINGS if path.name.endswith(".tape.gz")]
MOST_BYTES = 60_000  # a few steps; what is longer belongs to a run of the reader's own

each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
each_tape = pytest.mark.parametrize("path", TAPES, ids=lambda path: path.name)


def test_the_front_pages_run_is_there():
    assert "seq2seq.tape.gz" in {path.name for path in RECORDINGS}


@each_recording
def test_a_recording_is_small(path):
    assert path.stat().st_size < (MOST_BYTES if path in TAPES else MOST_MEASURED_BYTES)


@each_recording
def test_a_recording_says_how_it_was_made(path):
    sources = (data_dir() / "SOURCES.md").read_text(encoding="utf-8")

    assert f"`recordings/{path.name}`" in sources


def test_what_was_measured_on_real_gpus_belongs_to_a_description():
    described = {path for each in read(data_dir() / "recordings") for path in each.files}

    assert described == set(RECORDINGS) - set(TAPES)


@each_tape
def test_a_tape_can_be_played_and_has_a_few_steps(path):
    played = play_file(path, machine(DEFAULT_MACHINE))

    assert 2 <= played.ledger.n_steps <= 3
    assert played.ledger.n_kernels > 100
