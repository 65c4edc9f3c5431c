"""What a paced run publishes, and what a reader makes of it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace

import pytest

from gpututor import live
from gpututor.live import FORGOTTEN_AFTER_S, STALE_AFTER_S, LiveCard, LiveRun

RUN = LiveRun(7, "train.py", "p3.2xlarge", 2_000, 3, 1000.0, (LiveCard("V100", 500, 1 << 30, 16 << 30),))


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))


def test_what_is_published_is_read_again():
    live.publish(RUN)

    assert live.running(now_s=1000.5) == (RUN,)


def test_the_newer_state_takes_the_place_of_the_older():
    live.publish(RUN)
    later = replace(RUN, clock_ns=3_000)
    live.publish(later)

    assert live.running(now_s=1000.0) == (later,)
    assert [path.name for path in live.folder().iterdir()] == ["7.json"]


def test_several_runs_stand_side_by_side():
    live.publish(replace(RUN, pid=9))
    live.publish(RUN)

    assert [run.pid for run in live.running(now_s=1000.0)] == [7, 9]


def test_a_run_that_fell_silent_is_not_shown():
    live.publish(RUN)

    assert live.running(now_s=1000.0 + STALE_AFTER_S + 0.1) == ()


def test_a_run_that_was_withdrawn_is_gone():
    live.publish(RUN)
    live.withdraw(7)

    assert not list(live.folder().iterdir())
    live.withdraw(7)  # a second time does nothing


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "gpututor-live", "version": 1}', '{"version": 9}'])
def test_a_damaged_file_is_passed_over(text):
    live.publish(RUN)
    (live.folder() / "8.json").write_text(text)

    assert live.running(now_s=1000.0) == (RUN,)


def test_the_file_of_another_version_is_passed_over():
    live.publish(RUN)
    path = live.folder() / "7.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))

    assert live.running(now_s=1000.0) == ()


def test_what_a_killed_run_left_is_deleted_after_a_while():
    live.publish(RUN)
    path = live.folder() / "7.json"
    old_s = time.time() - FORGOTTEN_AFTER_S - 60
    os.utime(path, (old_s, old_s))
    live.running()

    assert not path.exists()


def test_without_the_folder_nothing_runs():
    assert live.running() == ()
