"""One measurement of real time on a machine at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpututor.errors import MachineBusy
from gpututor.lab.lock import measuring, who_measures

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from gpututor.lab.lock import measuring
with measuring("lesson 02"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture
def other():
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def try_it():
    with measuring("mine"):
        return True


def test_the_lock_is_free_at_first():
    assert try_it()


def test_the_lock_is_free_again_after_the_block():
    try_it()

    assert try_it()


def test_the_lock_is_free_again_after_an_error():
    with pytest.raises(KeyError), measuring("fails"):
        raise KeyError

    assert try_it()


def test_another_process_that_measures_is_named(other):
    with pytest.raises(MachineBusy, match=rf'"lesson 02" \(process {other.pid}, since \d\d:\d\d:\d\d UTC\)'):
        try_it()


def test_the_sentence_says_what_to_do(other):
    with pytest.raises(MachineBusy, match="wait until it ends, or use virtual time"):
        try_it()


def test_a_killed_holder_leaves_the_lock_free(other):
    other.kill()
    other.wait()

    assert try_it()


def test_a_killed_holder_is_not_named(other):
    other.kill()
    other.wait()

    assert who_measures() is None


def test_waiting_for_the_lock_gets_it(other):
    threading.Timer(0.2, other.kill).start()

    with measuring("mine", timeout_s=10):
        assert who_measures().pid == os.getpid()


def test_waiting_has_an_end(other):
    began_s = time.monotonic()
    with pytest.raises(MachineBusy), measuring("mine", timeout_s=0.2):
        pass

    assert time.monotonic() - began_s >= 0.2


def test_two_threads_of_one_process_exclude_each_other():
    with measuring("mine"), pytest.raises(MachineBusy):
        try_it()


def test_a_holder_without_a_note_is_still_a_holder(other, tmp_path):
    for note in (tmp_path / "locks").glob("*.json"):
        note.write_text("not a note")

    with pytest.raises(MachineBusy, match="another measurement of real time is running"):
        try_it()


def test_a_lock_that_cannot_be_opened_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "file"))

    with pytest.raises(MachineBusy, match="set GPUTUTOR_LOCK_DIR to a folder"):
        try_it()
