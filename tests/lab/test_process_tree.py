"""Processes and what they use, read from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpututor.lab import process_tree
from gpututor.lab.process_tree import below, held_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
FAMILY = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print('born', flush=True); sys.stdin.read()"


@pytest.fixture
def parent():
    """A process that has one child."""
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdin=-1, stdout=-1) as process:
        process.stdout.readline()
        yield process.pid
        for each in reversed(below(process.pid)):
            os.kill(each.pid, 9)


@pytest.fixture(params=["the system's list", "every process"])
def _either_way(request, monkeypatch):
    def read_anew(pid):
        return process_tree._by_parent()(pid)

    if request.param == "every process":
        monkeypatch.setattr(process_tree, "_children_of", read_anew)


@pytest.mark.usefixtures("_either_way")
def test_a_process_comes_before_its_child(parent):
    first, second = below(parent)

    assert (first.pid, second.parent) == (parent, parent)


def test_a_process_that_is_gone_has_nobody_below_it():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert below(process.pid) == []


def test_own_processor_time_is_what_python_says():
    (me, *_) = below(os.getpid())

    assert me.own_cpu_s == pytest.approx(sum(os.times()[:2]), abs=0.1)


def test_pages_shared_with_others_count_in_parts():
    (me, *_) = below(os.getpid())

    assert 0 < held_bytes(me) <= me.resident_bytes * 1.1  # it is read a moment later
