"""Grading on a real cluster of three worker processes, one killed half-way: the same bytes as on this machine alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from gpututor.cli import main
from gpututor.grading import classroom, grade, pool
from tests.grading import cluster, synthetic
from tests.grading.test_grade import command, told_bytes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    synthetic.make(folder, 9, lessons=(1, 2))
    classroom.new(folder / "class", folder / "roster.csv", synthetic.DEADLINE, synthetic.TIMEZONE, lessons="1-2")
    room = classroom.read(folder / "class")
    grade.grade(folder / "submissions", room, folder / "here", pool.here(2), isolation="limits")
    return folder


def test_with_a_worker_killed_the_results_are_the_same_bytes(place):
    pytest.importorskip("distributed")
    with cluster.running(place, 3) as (address, workers):
        asked = command(place, "there", "--dask", address)
        running = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kept = place / "there" / grade.WORK
        while not list(kept.glob("*.json")):
            assert running.poll() is None, "it was over before a worker was killed"
            time.sleep(0.02)
        workers[0].kill()
        assert running.wait(timeout=120) == 0

    assert workers[0].returncode is not None
    assert told_bytes(place / "there") == told_bytes(place / "here")


def test_a_scheduler_that_isnt_there_is_one_sentence(place, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(pool, "CONNECT_S", 0.3)
    with pytest.raises(SystemExit) as ended:
        main(command(place, "nowhere", "--dask", "tcp://127.0.0.1:1")[3:])

    assert ended.value.code == 2
    assert "no dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err


def test_without_distributed_the_extra_is_named(place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit) as ended:
        main(command(place, "nowhere", "--dask", "tcp://127.0.0.1:1")[3:])

    assert ended.value.code == 2
    assert "pip install 'gpututor[dask]'" in capsys.readouterr().err
