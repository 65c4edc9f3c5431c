"""Two real processes by torchrun and gloo: the losses of one, ears for this computer only, nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest
import torch.distributed as dist

from gpututor.errors import ExperimentError
from gpututor.experiments import torchrun
from gpututor.progress import Progress, Stopped

N_STEPS = 6
GONE_WITHIN_S = 10.0

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")


def family() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if torchrun_in(each)]


def torchrun_in(process: psutil.Process) -> bool:
    try:
        return any("torch.distributed.run" in word or torchrun.CHILD in word for word in process.cmdline())
    except psutil.Error:
        return False


def ears() -> set[str]:
    """Addresses on which torchrun or its processes listen now."""
    found = set()
    for process in family():
        try:
            found |= {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    heard: set[str] = set()
    seen: set[int] = set()

    def tell(k, n, note, partial):
        heard.update(ears())
        seen.update(each.pid for each in family())

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path_factory.mktemp("lock")))
        data = torchrun.measure(Progress(tell), n_steps=N_STEPS, n_warmup=1)
    return data, heard, seen


def test_two_processes_have_the_losses_of_one(ran):
    one, two = (point["losses"] for point in ran[0]["points"])

    assert len(one) == N_STEPS + 1
    assert two == pytest.approx(one, abs=1e-5)


def test_both_took_time_and_say_on_what(ran):
    data = ran[0]

    assert all(point["step_ns"] > 0 for point in data["points"])
    assert data["device"] == "cpu"
    assert [point["label"] for point in data["points"]] == ["1 process", "2 processes, gloo"]


def test_they_listen_on_this_computer_only(ran):
    assert ran[1] == {"127.0.0.1"}


def test_nothing_of_them_is_left(ran):
    assert len(ran[2]) >= 5  # torchrun twice, one process, two processes
    assert family() == []


def test_a_stop_ends_all_of_them():
    def stop() -> bool:
        return len(family()) >= 3  # torchrun and both of its processes

    with pytest.raises(Stopped):
        torchrun.train(Progress(stop_asked=stop), 2, 10_000, 0, "gloo", 0, 10_000)

    assert family() == []


def test_a_job_that_fails_is_told_with_its_last_words():
    with pytest.raises(ExperimentError, match=r"failed .exit code 1.*last words: .*no-such-backend"):
        torchrun.train(Progress(), 1, 1, 0, "no-such-backend", 0, 1)


def test_a_process_ends_when_its_parent_is_gone():
    child = "from gpututor.experiments.torchrun_child import end_with_parent as f; import time; f(); time.sleep(60)"
    parent = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid, flush=True)\n"
    parent += "import time; time.sleep(2)"
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, text=True, check=True, env=os.environ)
    pid, ends_s = int(done.stdout), time.monotonic() + GONE_WITHIN_S

    while psutil.pid_exists(pid) and time.monotonic() < ends_s:
        time.sleep(0.1)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
