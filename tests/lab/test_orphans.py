"""When the process that owns a lab is gone, nothing of the lab stays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OWNER = """
import os, sys
from gpututor.lab import job
from gpututor.lab.pool import Lab
job.BACKUP_S = 0.2
experiment, params = {experiment!r}, {params!r}
def tell(report):
    if report.partial:
        print(report.partial["worker"], report.partial["child"], flush=True)
lab = Lab(1, allowed=["experiments_for_tests"], torch=False)
lab.warm()
print(lab.worker_pids[0], flush=True)
if experiment:
    lab.run(experiment, params, on_progress=tell, limits=job.Limits(budget_s={budget_s}, grace_s=0.2))
else:
    sys.stdin.read()
"""


@pytest.fixture
def owner():
    """Starts a process that owns a lab; it is killed at the end of the test at the latest."""
    started = []

    def start(experiment="", params=None, budget_s=60.0):
        script = OWNER.format(experiment=experiment, params=params or {}, budget_s=budget_s)
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_an_idle_worker_ends_with_its_owner(owner, gone):
    process = owner()
    worker = int(process.stdout.readline())
    process.kill()

    assert gone(worker)


def test_a_worker_ends_with_its_owner_in_the_middle_of_a_loop(owner, gone):
    process = owner("experiments_for_tests:starts_a_child")
    process.stdout.readline()
    worker, _ = map(int, process.stdout.readline().split())
    process.kill()

    assert gone(worker)


def test_what_a_worker_started_ends_with_its_owner(owner, gone):
    process = owner("experiments_for_tests:starts_a_child")
    process.stdout.readline()
    _, child = map(int, process.stdout.readline().split())
    process.kill()

    assert gone(child)


def test_a_worker_that_holds_the_interpreter_ends_after_its_own_limit(owner, gone, eventually, tmp_path):
    mark = tmp_path / "began"
    process = owner("experiments_for_tests:holds_the_interpreter", {"mark": str(mark)}, budget_s=1.0)
    worker = int(process.stdout.readline())
    eventually(mark.exists)
    process.kill()

    assert gone(worker)


def test_a_worker_ends_when_its_owner_ends_normally(owner, gone):
    process = owner()
    worker = int(process.stdout.readline())
    process.communicate()

    assert gone(worker)


def test_a_fork_of_the_owner_does_not_end_its_workers(own_lab):
    own_lab.run("experiments_for_tests:who_am_i")
    (worker,) = own_lab._workers._idle
    own_lab._pid = os.getpid() + 1  # as it looks from a fork
    own_lab.close()
    own_lab._pid = os.getpid()

    assert worker.alive
