"""Kernel time as a paced session publishes it: by counting, then once with a real session in real time."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch

from gpututor import live
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.clocks.paced import clock_of
from gpututor.simgpu.clocks.telling import TELL_EVERY_S, BusyTime


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))


# Looks are (now, end of all kernels so far, their sum); one character of a drawing is 10 ns.


def test_a_finished_kernel_counts_whole():
    assert BusyTime().look(100, 60, 50) == 50  # .#####....|


def test_a_kernel_that_runs_counts_by_half_at_its_half():
    busy = BusyTime()
    busy.look(0, 0, 0)

    assert busy.look(50, 100, 100) == 50  # #####|#####
    assert busy.look(100, 100, 100) == 100


def test_kernels_that_wait_for_their_turn_do_not_count_yet():
    busy = BusyTime()
    busy.look(0, 100, 100)  # |##########  launched ahead of time

    assert busy.look(20, 200, 200) == 20
    assert busy.look(150, 200, 200) == 150


def test_a_kernel_after_a_pause_begins_no_earlier_than_it_was_launched():
    busy = BusyTime()
    busy.look(0, 0, 0)
    busy.look(100, 0, 0)  # ..........|  nothing was launched until here

    assert busy.look(110, 120, 20) == 10  # ..........#|#


def test_kernels_with_gaps_between_them_count_by_their_share():
    busy = BusyTime()
    busy.look(0, 0, 0)

    assert busy.look(100, 200, 50) == 25  # #...#...#.|..#...#.
    assert busy.look(300, 200, 50) == 50


def test_kernels_of_two_streams_at_once_are_busy_once():
    assert BusyTime().look(100, 100, 180) == 100


def test_a_card_is_never_busier_than_the_time_that_passed():
    busy, before = BusyTime(), 0
    ends_ns = summed_ns = 0
    for now_ns in range(0, 5_000, 50):
        ends_ns = max(ends_ns, now_ns) + 70
        summed_ns += 70
        told = busy.look(now_ns, ends_ns, summed_ns)

        assert 0 <= told - before <= 50 or now_ns == 0
        before = told


def eventually(condition, within_s=10.0):
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_a_paced_session_is_seen_while_it_runs_and_gone_after():
    with simulated_gpu(numerics=False, clock="paced", what="my run") as sim:
        sim.begin_step()
        torch.zeros(1024, 1024, device="simgpu")
        assert eventually(live.running)
        (run,) = live.running()

        assert (run.pid, run.what, run.machine, run.n_steps) == (os.getpid(), "my run", "p3.2xlarge", 1)
        assert run.cards[0].name == "V100-SXM2-16GB"
        assert run.cards[0].memory_used_bytes > 1024 * 1024 * 4  # and the context beside it

    assert live.running() == ()
    assert not list(live.folder().iterdir())


def test_a_card_that_always_works_is_busy_and_one_that_rests_is_not():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        big = torch.zeros(8192, 8192, device="simgpu")
        big @ big
        torch.simgpu.synchronize()
        teller = clock_of(sim).teller
        began = teller.state()
        for _ in range(4):
            big @ big  # some 80 ms each
        torch.simgpu.synchronize()
        worked = teller.state()
        time.sleep(0.3)
        rested = teller.state()

    def share(a, b):
        return (b.cards[0].busy_ns - a.cards[0].busy_ns) / (b.clock_ns - a.clock_ns)

    assert share(began, worked) > 0.9
    assert share(worked, rested) < 0.1


def test_the_clock_goes_on_while_the_program_waits_for_the_card():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        big = torch.zeros(8192, 8192, device="simgpu")
        clock, seen = clock_of(sim), []
        watcher = threading.Timer(0.03, lambda: seen.append(clock.now_ns()))
        watcher.start()
        for _ in range(4):
            big @ big
        torch.simgpu.synchronize()
        watcher.join()

        assert 0 < seen[0] < sim.host_ns


def test_a_run_on_the_virtual_clock_publishes_nothing():
    with simulated_gpu(numerics=False):
        torch.zeros(4, device="simgpu") * 2
        time.sleep(1.5 * TELL_EVERY_S)

        assert not live.folder().exists()


def test_no_thread_is_left_behind():
    with simulated_gpu(numerics=False, clock="paced"):
        pass

    assert "gpututor-live" not in {thread.name for thread in threading.enumerate()}


def test_a_disk_without_room_ends_no_run(monkeypatch):
    tried = threading.Event()

    def full(run):
        tried.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpututor.simgpu.clocks.telling.publish", full)
    with simulated_gpu(numerics=False, clock="paced"):
        assert tried.wait(10)
        assert float((torch.zeros(4, device="simgpu") * 2).shape[0]) == 4


def test_each_card_is_told_by_itself():
    with simulated_gpu("p3.8xlarge", numerics=False, clock="paced") as sim:
        on_second = torch.zeros(4096, 4096, device="simgpu:1")
        on_second @ on_second
        torch.simgpu.synchronize(1)
        first, second, *_ = clock_of(sim).teller.state().cards

    assert first.busy_ns == 0 < second.busy_ns
