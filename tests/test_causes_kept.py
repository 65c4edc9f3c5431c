"""Causes of a run in a file: those of the run, looked for once, and gone with the file."""

from __future__ import annotations

import shutil

import pytest

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.causes import find_causes
from gpututor.causes.kept import causes_in_file
from gpututor.errors import TimelineError
from gpututor.paths import data_dir
from gpututor.replay import play_file, with_slower_host

RENTED = machine(DEFAULT_MACHINE)


@pytest.fixture
def run(tmp_path):
    return shutil.copy(data_dir() / "recordings" / "seq2seq.tape.gz", tmp_path / "run.tape.gz")


def test_they_are_those_of_the_run(run):
    played = play_file(run, RENTED)

    assert causes_in_file(run, RENTED) == find_causes(played.timeline, played.ledger)


def test_a_second_look_costs_nothing(run):
    assert causes_in_file(run, RENTED) is causes_in_file(run, RENTED)


def test_another_host_is_looked_at_anew(run):
    faster = with_slower_host(RENTED, 0.1)

    assert causes_in_file(run, RENTED) != causes_in_file(run, faster)


def test_a_file_that_went_is_told(run):
    causes_in_file(run, RENTED)
    run.unlink()

    with pytest.raises(TimelineError, match="is gone"):
        causes_in_file(run, RENTED)
