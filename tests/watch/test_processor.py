from __future__ import annotations

import os
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from gpututor.watch import processor
from gpututor.watch.processor import Psutil, usable_cores
from tests.watch.made import Clock


class Times(NamedTuple):
    user: float
    system: float
    idle: float
    iowait: float
    guest: float


class FakePsutil:
    """psutil with counters that a test sets: cores as (busy, idle) seconds, processes by number."""

    def __init__(self):
        self.cores = [(0.0, 0.0)]
        self.processes = {}

    def cpu_times(self, percpu):
        return [Times(user=busy, system=0.0, idle=idle, iowait=0.0, guest=busy) for busy, idle in self.cores]

    def virtual_memory(self):
        return SimpleNamespace(total=100, available=60)

    def process_iter(self, names):
        for pid, (user, seconds) in self.processes.items():
            times = SimpleNamespace(user=seconds, system=0)
            info = {"username": user, "name": f"job{pid}", "ppid": 1, "cpu_times": times}
            yield SimpleNamespace(pid=pid, info=info)

    def Process(self, pid=None):  # noqa: N802  # psutil's name
        return SimpleNamespace(username=lambda: "me", cmdline=lambda: ["python"])


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(processor, "own_cores", tuple)
    return FakePsutil()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cpu(fake, clock):
    return Psutil(fake, clock_s=clock)


def test_the_first_look_has_no_shares_and_says_why(cpu):
    first = cpu.read()

    assert (first.busy_share, first.own_busy_cores) == (None, None)
    assert "a share needs two" in first.reasons["busy_share"]


def test_a_core_is_busy_for_what_it_did_not_idle(fake, cpu):
    fake.cores = [(0, 0), (0, 0)]
    cpu.read()
    fake.cores = [(1, 3), (4, 0)]
    found = cpu.read()

    assert found.core_shares == (0.25, 1.0)
    assert found.busy_share == pytest.approx(0.625)


def test_counters_that_stood_still_give_no_share(cpu):
    cpu.read()

    assert cpu.read().busy_share is None


def test_only_the_cores_that_we_may_use_are_counted(fake, clock, monkeypatch):
    monkeypatch.setattr(processor, "own_cores", lambda: (1,))
    cpu = Psutil(fake, clock_s=clock)
    fake.cores = [(0, 0), (0, 0)]
    cpu.read()
    fake.cores = [(4, 0), (1, 3)]

    assert cpu.read().busy_share == 0.25


def test_the_busiest_of_this_users_processes_come_first(fake, clock, cpu):
    fake.processes = {10: ("me", 0.0), 11: ("me", 0.0), 12: ("you", 0.0), os.getpid(): ("me", 0.0)}
    cpu.read()
    clock.now_s += 2.0
    fake.processes = {10: ("me", 1.0), 11: ("me", 2.0), 12: ("you", 2.0), os.getpid(): ("me", 2.0)}
    found = cpu.read()

    assert [(p.pid, p.busy_cores) for p in found.busiest] == [(11, 1.0), (10, 0.5)]
    assert found.own_busy_cores == 1.5


def test_processes_are_looked_at_less_often_than_cores(fake, clock, cpu):
    fake.processes = {10: ("me", 0.0)}
    cpu.read()
    clock.now_s += 2.0
    fake.processes = {10: ("me", 2.0)}
    cpu.read()
    clock.now_s += 1.0
    fake.processes = {10: ("me", 2.0)}

    assert cpu.read().own_busy_cores == 1.0


def test_a_process_that_just_came_waits_for_its_second_look(fake, clock, cpu):
    cpu.read()
    clock.now_s += 2.0
    fake.processes = {10: ("me", 50.0)}

    assert cpu.read().busiest == ()


def test_used_memory_is_what_no_program_could_have(cpu):
    found = cpu.read()

    assert (found.memory_used_bytes, found.memory_total_bytes) == (40, 100)


def test_a_system_that_tells_nothing_is_no_error(fake, cpu, monkeypatch):
    def refuses(*_, **__):
        raise PermissionError("not yours")

    for name in ("cpu_times", "virtual_memory", "process_iter"):
        monkeypatch.setattr(fake, name, refuses)
    found = cpu.read()

    assert (found.busy_share, found.memory_used_bytes, found.own_busy_cores) == (None, None, None)
    assert set(found.reasons.values()) == {"not yours"}


@pytest.mark.parametrize(
    ("text", "cores"),
    [("150000 100000", 2), ("50000 100000", 1), ("900000 100000", 8), ("max 100000", 8), ("", 8)],
)
def test_a_containers_limit_lowers_the_cores_that_count(tmp_path, monkeypatch, text, cores):
    monkeypatch.setattr(processor, "own_cores", lambda: tuple(range(8)))
    (tmp_path / "cpu.max").write_text(text)

    assert usable_cores(tmp_path / "cpu.max") == cores


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["python", "train.py", "--lr", "1"], "python train.py"),
        (["python", "-u", "/home/me/train.py"], "python train.py"),
        (["python", "-m", "my.module"], "python my.module"),
        (["python", "-c", "print()"], "python"),
    ],
)
def test_an_interpreter_is_called_by_its_script(fake, cpu, monkeypatch, words, title):
    monkeypatch.setattr(fake, "Process", lambda pid: SimpleNamespace(cmdline=lambda: words))

    assert cpu._title(1, "python") == title


def test_the_real_one_reads_this_machine():
    cpu = Psutil()
    cpu.read()
    sum(range(2_000_000))
    found = cpu.read()

    assert found.n_usable >= 1
    assert found.memory_total_bytes > found.memory_used_bytes > 0
    assert found.busy_share is None or 0 <= found.busy_share <= 1
