"""Switches for finding faults, as a program meets them on the simulated GPU: what they account, and what they leave."""

from __future__ import annotations

import time

import pytest
import torch
import torch.utils.deterministic
from torch import nn

from gpututor import marking
from gpututor.model.marks import BeginPause, EndPause, LaunchBlocking
from gpututor.model.tape import MODULE_CALL, BeginStep, CopyCall, HostWork, TapeOp
from gpututor.simgpu import debugging, simulated_gpu
from gpututor.simgpu.pauses import own_ns
from gpututor.timeline import Activity


@pytest.fixture
def switches_off():
    yield
    torch.autograd.set_detect_anomaly(False)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


def step(net, x):
    net(x).square().mean().backward()
    for p in net.parameters():
        p.grad = None


def entries_of(work, **session):
    with simulated_gpu(**session) as sim:
        net, x = nn.Linear(4, 2).to("simgpu"), torch.ones(3, 4).to("simgpu")
        first = len(sim.tape.entries)
        work(net, x)
        return sim.tape.entries[first:]


def waits(entries):
    return [e for e in entries if type(e) is CopyCall and e.blocking]


def kernels(entries, name):
    return [e for e in entries if type(e) is TapeOp and e.kernels and e.name == name]


# --- anomaly mode ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numerics", [True, False], ids=["computed", "by shapes"])
def test_anomaly_mode_waits_for_the_answer_to_each_gradient(numerics, switches_off):
    plain = entries_of(step, numerics=numerics)
    torch.autograd.set_detect_anomaly(True)
    found = entries_of(step, numerics=numerics)

    assert waits(plain) == []
    # mean, square, and of the linear layer weight (before and after its transpose) and bias
    assert len(waits(found)) == len(kernels(found, "_is_any_true")) == 5
    assert {e.n_bytes for e in waits(found)} == {1}


def test_without_the_search_for_nan_it_keeps_stacks_and_waits_for_nothing(switches_off):
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    found = entries_of(step)

    assert waits(found) == []
    assert found.count(MODULE_CALL) > entries_of_modules()


def entries_of_modules():
    torch.autograd.set_detect_anomaly(False)
    return entries_of(step).count(MODULE_CALL)


def test_a_stack_costs_its_frames_between_the_session_and_the_op(switches_off):
    def called(depth, x):
        return x * 2 if depth == 0 else called(depth - 1, x)

    def modules(depth):
        with simulated_gpu() as sim:
            x = torch.ones(3, requires_grad=True, device="simgpu")
            first = len(sim.tape.entries)
            called(depth, x)
            return sim.tape.entries[first:].count(MODULE_CALL)

    torch.autograd.set_detect_anomaly(True)

    # two stacks: the product's, and that of the node which will hold x's gradient
    assert modules(7) - modules(2) == 2 * 5 * debugging.CALLS_OF_A_FRAME


def test_a_nan_in_a_backward_pass_is_still_found(switches_off):
    torch.autograd.set_detect_anomaly(True)
    with simulated_gpu():
        x = torch.zeros(2, device="simgpu", requires_grad=True)
        loss = (x.sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match="returned nan values"):
            loss.backward()


def test_an_lstm_is_one_operator_to_anomaly_mode_too(switches_off):
    def lstm(net, x):
        layer = nn.LSTM(4, 4).to("simgpu")
        first.append(len(current_entries()))
        layer(x.view(3, 1, 4))

    def current_entries():
        from gpututor.simgpu.session import current

        return current.session.tape.entries

    first: list[int] = []
    torch.autograd.set_detect_anomaly(True)
    found = entries_of(lstm)

    assert 0 < found.count(MODULE_CALL) < 400  # its graph on the CPU has dozens of nodes, each with a stack


def test_outside_a_session_stacks_are_torchs_own(switches_off):
    torch.autograd.set_detect_anomaly(True)
    x = torch.zeros(2, requires_grad=True)
    y = x.sqrt()

    assert "test_debugging.py" in "".join(y.grad_fn.metadata["traceback_"])


# --- deterministic algorithms ------------------------------------------------------------------------------------


def test_deterministic_algorithms_change_what_is_launched_from_the_next_call_on(switches_off):
    def three(net, x):
        conv, y = nn.Conv2d(2, 2, 3, dilation=2).to("simgpu"), torch.ones(4, 2, 8, 8).to("simgpu")
        for switch in (False, True, False):
            torch.use_deterministic_algorithms(switch)
            torch.utils.deterministic.fill_uninitialized_memory = False
            conv(y)

    plain, other, again = kernels(entries_of(three), "convolution")

    assert plain.kernels == again.kernels
    assert len(other.kernels) > 2 * 4


def test_cudnn_alone_can_be_asked_and_fills_nothing(switches_off):
    def both(net, x):
        conv, y = nn.Conv2d(2, 2, 3).to("simgpu"), torch.ones(4, 2, 8, 8).to("simgpu")
        conv(y)
        torch.backends.cudnn.deterministic = True
        conv(y)

    try:
        first, second = kernels(entries_of(both), "convolution")
    finally:
        torch.backends.cudnn.deterministic = False

    assert first.kernels == second.kernels


def test_new_memory_is_filled_and_left_alone_where_a_program_says_so(switches_off):
    def empty(net, x):
        torch.use_deterministic_algorithms(True)
        torch.empty(100, device="simgpu")
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.empty(100, device="simgpu")

    assert len(kernels(entries_of(empty), "empty")) == 1


# --- launches that wait ------------------------------------------------------------------------------------------


def test_cuda_launch_blocking_is_read_when_a_session_begins(monkeypatch):
    plain = entries_of(step)
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with simulated_gpu() as sim:
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "0")
        sim.begin_step()
        step(nn.Linear(4, 2).to("simgpu"), torch.ones(3, 4).to("simgpu"))

        assert sim.tape.entries[0] == LaunchBlocking()
        assert sim.tape.entries[1:3] == [BeginStep(), LaunchBlocking()]  # steps may be cut out
    assert LaunchBlocking() not in plain


def test_a_program_whose_launches_wait_finds_the_card_idle(monkeypatch):
    def behind():
        with simulated_gpu("p3.2xlarge", numerics=False) as sim:
            x = torch.ones(4000, 4000, device="simgpu")
            for _ in range(5):
                x = x * 2
            queue = sim.player.queue
            return max(queue.stream_ns) - queue.host_ns

    assert behind() > 0
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert behind() <= 0


# --- a profiler --------------------------------------------------------------------------------------------------


def test_a_profiler_lets_operators_take_longer_while_it_records():
    def work(net, x):
        for _ in range(50):
            torch.add(x, x)

    def recorded(net, x):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True):
            work(net, x)
        work(net, x)

    assert entries_of(work).count(MODULE_CALL) == 0
    assert entries_of(recorded).count(MODULE_CALL) == int(50 * 0.21)


# --- pauses ------------------------------------------------------------------------------------------------------


def test_a_pause_stands_on_the_tape_around_what_is_done_in_it():
    def work(net, x):
        with torch.no_grad(), marking.pause("validation"):
            net(x)

    found = entries_of(work)

    assert (found[0], found[-1]) == (BeginPause("validation"), EndPause())


def test_what_the_host_really_does_is_charged_at_its_real_time():
    def work(net, x):
        with marking.pause("checkpoint", host_only=True):
            time.sleep(0.02)

    (found,) = entries_of(work)

    assert type(found) is HostWork
    assert (found.activity, found.name) == (Activity.PAUSE, "checkpoint")
    assert found.long_ns >= 20_000_000


def test_time_in_which_others_had_the_processor_is_left_out(tmp_path):
    waited = tmp_path / "schedstat"
    waited.write_text("0 0 1\n")
    plain_ns = own_ns(waited)
    waited.write_text("0 5000000000 2\n")

    assert own_ns(waited) < plain_ns - 4_000_000_000


@pytest.mark.parametrize("told", ["", "7", "a b c"])
def test_without_such_a_count_the_plain_clock_is_taken(tmp_path, told):
    waited = tmp_path / "schedstat"
    waited.write_text(told)

    before_ns = time.perf_counter_ns()

    assert before_ns <= own_ns(waited) <= own_ns(tmp_path / "gone") <= time.perf_counter_ns()


def test_outside_a_session_a_pause_is_only_run():
    done = []
    with marking.pause("log", host_only=True):
        done.append(1)

    assert done == [1]


# --- a card that lets views be plain -----------------------------------------------------------------------------


def test_a_slice_of_a_plain_tensor_is_plain_under_inference_mode():
    with simulated_gpu():
        x = torch.arange(6.0, device="simgpu")
        with torch.inference_mode():
            part = x[2:4]

        assert not part.is_inference()
        assert part.tolist() == [2.0, 3.0]
