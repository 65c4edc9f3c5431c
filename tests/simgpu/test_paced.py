"""The paced clock: the host is this computer. Only shares and orders within one run are stated, no times."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from gpututor.errors import ClockNotKnown
from gpututor.ledger import Account, charge
from gpututor.model import tape_file
from gpututor.model.tape import HostWork, TapeOp
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.clocks.paced import clock_of
from gpututor.timeline import COMPUTING, Activity, covered_ns
from tests.patience import in_one_of_three

N_BATCHES, BATCH = 6, 4


class Rows(Dataset):
    """Rows that take `wait_s` seconds each to read."""

    def __init__(self, wait_s):
        self.wait_s = wait_s

    def __len__(self):
        return N_BATCHES * BATCH

    def __getitem__(self, k):
        time.sleep(self.wait_s)
        return torch.zeros(64)


def train_from(wait_s, n_products):
    """Train from a real DataLoader with a real worker; the timeline from the second batch on, and the session."""
    with simulated_gpu(numerics=False, clock="paced") as sim:
        net = nn.Linear(64, 64).to("simgpu")
        big = torch.zeros(4096, 4096, device="simgpu")
        loader = iter(DataLoader(Rows(wait_s), batch_size=BATCH, num_workers=1))
        next(loader)  # the worker starts
        sim.begin_step()
        for rows in loader:
            net(rows.to("simgpu")).sum().backward()
            for _ in range(n_products):
                big @ big
            torch.simgpu.synchronize()
        sim.end_run()
        return sim.timeline(), sim


def busy_share(timeline):
    return covered_ns(timeline.on(*COMPUTING), timeline.window_ns) / timeline.duration_ns


@in_one_of_three
def test_a_slow_loader_starves_the_card_and_a_fast_one_does_not():
    slow, _ = train_from(wait_s=0.01, n_products=1)  # 40 ms to read a batch, some 10 ms for the card to work on it
    fast, _ = train_from(wait_s=0.0, n_products=4)
    slow_ledger, fast_ledger = charge(slow), charge(fast)
    idle = {a: slow_ledger.share(a) for a in Account if a is not Account.USEFUL}

    assert busy_share(slow) < 0.5 < busy_share(fast)
    assert slow_ledger.share(Account.WAITING_FOR_INPUT) > 0.5
    assert max(idle, key=idle.get) is Account.WAITING_FOR_INPUT
    assert fast_ledger.share(Account.WAITING_FOR_INPUT) < slow_ledger.share(Account.WAITING_FOR_INPUT) / 2


@in_one_of_three
def test_waiting_for_the_card_really_waits():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        big = torch.zeros(8192, 8192, device="simgpu")
        torch.simgpu.synchronize()
        began = time.perf_counter_ns()
        big @ big
        launched = time.perf_counter_ns()
        torch.simgpu.synchronize()
        ended = time.perf_counter_ns()
        kernel = list(sim.timeline().on(Activity.KERNEL))[-1]

    assert launched - began < kernel.duration_ns  # some 80 ms, while launching returns at once
    assert ended - began >= kernel.duration_ns


def test_no_kernel_starts_before_it_was_launched():
    timeline, _ = train_from(wait_s=0.0, n_products=1)
    launches = {s.launch: s for s in timeline.on(Activity.LAUNCH, Activity.COPY_CALL, Activity.SYNC)}

    assert all(s.start_ns >= launches[s.launch].start_ns for s in timeline.on(Activity.KERNEL))


def test_what_the_program_does_between_two_ops_is_python():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        x = torch.zeros(4, device="simgpu")
        x * 2
        first = len(sim.tape.entries)
        time.sleep(0.02)
        x * 2
        entries = sim.tape.entries[first:]

    assert entries[0].activity is Activity.PYTHON
    assert entries[0].long_ns >= 20_000_000
    assert [e.phase for e in entries if isinstance(e, TapeOp)] == ["paced"]


@in_one_of_three
def test_our_own_arithmetic_is_not_charged_to_the_host():
    # 2 * 512^3 floating point operations a product take the CPU milliseconds and a V100 microseconds
    with simulated_gpu(clock="paced") as sim:
        x = torch.ones(512, 512, device="simgpu")
        x @ x
        before, began = sim.host_ns, time.perf_counter_ns()
        for _ in range(10):
            x @ x
        real_ns = time.perf_counter_ns() - began

        assert sim.host_ns - before < real_ns / 2
        assert clock_of(sim).lag_ns > 0


def test_a_paced_timeline_says_so_and_is_read_from_its_tape():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        torch.zeros(4, device="simgpu") * 2
        tape = sim.tape
        timeline = sim.timeline()
    again = tape_file.from_bytes(tape_file.to_bytes(tape)).price(sim.machine)

    assert "real time" in timeline.label.host
    assert (again.spans, again.label.host) == (timeline.spans, timeline.label.host)


def test_live_clock_and_priced_tape_agree():
    with simulated_gpu(numerics=False, clock="paced") as sim:
        sim.begin_step()
        x = torch.zeros(4, device="simgpu") * 2
        x.sum().item()
        sim.end_run()
        live_ns = sim.host_ns

        assert sim.timeline().window_ns[1] == live_ns


@in_one_of_three
def test_a_compiled_function_is_charged_by_its_account_and_not_by_the_code_that_stands_for_it():
    @torch.compile
    def slow_to_run(x):
        time.sleep(0.02)
        return x * 2 + 1

    with simulated_gpu(numerics=False, clock="paced") as sim:
        x = torch.zeros(4, device="simgpu")
        slow_to_run(x)
        before = sim.host_ns
        slow_to_run(x)

        assert sim.host_ns - before < 20_000_000


def test_on_the_virtual_clock_a_loader_is_marked_and_takes_no_time():
    with simulated_gpu() as sim:
        for _ in DataLoader(Rows(0.0), batch_size=BATCH):
            pass
        marks = [e for e in sim.tape.entries if isinstance(e, HostWork) and e.activity is Activity.INPUT]

        assert {m.long_ns for m in marks} == {0}
        assert sim.host_ns == 0
        assert len(marks) == 1 + N_BATCHES + 1  # the iterator, the batches, and the end


def test_a_loader_that_ends_early_leaves_no_empty_step():
    from gpututor.simgpu.recording import tape_steps

    batches = iter(DataLoader(Rows(0.0), batch_size=BATCH))
    tape = tape_steps(lambda k: next(batches).to("simgpu").sum().item(), n_steps=100, warmup=1)

    assert tape.n_steps == N_BATCHES - 1


def test_another_clock_names_the_known_ones():
    with pytest.raises(ClockNotKnown, match='no clock is called "real"'):
        simulated_gpu(clock="real")
