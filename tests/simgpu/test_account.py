"""What a program does on the device is what stands on the tape and in the timeline."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gpututor import timeline_file
from gpututor.errors import MachineNotKnown, NoSteps, StepFailed
from gpututor.model import tape_file
from gpututor.model.tape import CopyCall, HostWork, Sync, TapeOp
from gpututor.simgpu import simulated_gpu
from gpututor.simgpu.recording import tape_steps
from gpututor.timeline import Activity, Origin


def entries_of(work):
    """What `work()` writes on the tape, leaving out ops without kernels and the allocator's start-up."""
    with simulated_gpu() as sim:
        work(sim)
        return [
            e for e in sim.tape.entries if not isinstance(e, HostWork) and not (isinstance(e, TapeOp) and not e.kernels)
        ]


def train_a_little(k):
    """One step of a tiny network; always the same for the same k."""
    if k == 0:
        torch.manual_seed(3)
        train_a_little.net = nn.Linear(8, 8).to("simgpu")
        train_a_little.opt = torch.optim.SGD(train_a_little.net.parameters(), lr=0.1)
    x = torch.full((2, 8), 0.1 * (k + 1)).to("simgpu")
    loss = train_a_little.net(x).square().mean()
    train_a_little.opt.zero_grad()
    loss.backward()
    train_a_little.opt.step()
    return loss.item()


def test_item_is_a_blocking_copy_of_one_number():
    found = entries_of(lambda sim: torch.ones(4, device="simgpu").sum().item())

    assert found[-1] == CopyCall("item", False, 4, False, True, "forward")


def test_a_pageable_copy_blocks_and_a_pinned_one_may_not():
    x = torch.ones(10)
    pageable = entries_of(lambda sim: x.to("simgpu", non_blocking=True))
    pinned = entries_of(lambda sim: x.pin_memory().to("simgpu", non_blocking=True))

    assert [(e.n_bytes, e.pinned, e.blocking) for e in pageable] == [(40, False, True)]
    assert [(e.n_bytes, e.pinned, e.blocking) for e in pinned] == [(40, True, False)]


def test_a_mask_makes_the_host_wait():
    def masked(sim):
        x = torch.ones(4, device="simgpu")
        x[x > 0]

    assert any(isinstance(e, Sync) for e in entries_of(masked))


def test_backward_and_optimizer_are_told_apart():
    def step(sim):
        net = nn.Linear(4, 4).to("simgpu")
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(2, 4, device="simgpu")).sum().backward()
        opt.step()

    phases = {(e.name, e.phase) for e in entries_of(step) if isinstance(e, TapeOp)}

    assert ("addmm", "forward") in phases
    assert ("mm", "backward") in phases
    assert ("_foreach_add_", "optimizer") in phases


def test_dropout_is_one_kernel_each_way():
    def drop(sim):
        x = torch.ones(64, device="simgpu", requires_grad=True)
        nn.functional.dropout(x, 0.5).sum().backward()

    names = [e.name for e in entries_of(drop) if isinstance(e, TapeOp) and "dropout" in e.name]

    assert len(names) == 2


def test_the_same_run_gives_the_same_timeline_byte_for_byte():
    first = tape_steps(train_a_little, n_steps=5, n_samples=2)
    again = tape_steps(train_a_little, n_steps=5, n_samples=2)
    from gpututor.cards import machine

    one, two = (timeline_file.to_bytes(t.price(machine("p3.2xlarge"))) for t in (first, again))

    assert one == two


def test_a_timeline_has_the_steps_their_losses_and_a_simulated_label():
    from gpututor.cards import machine

    losses = []

    def step(k):
        losses.append(train_a_little(k))
        return losses[-1]

    timeline = tape_steps(step, n_steps=4, warmup=0, n_samples=2, what="tiny").price(machine("p3.2xlarge"))

    assert [s.n_samples for s in timeline.steps] == [2, 2, 2, 2]
    assert all(a.end_ns == b.start_ns for a, b in zip(timeline.steps, timeline.steps[1:], strict=False))
    assert [s.loss for s in timeline.steps] == losses
    assert timeline.label.origin is Origin.SIMULATED
    assert timeline.label.card == "V100-SXM2-16GB"


def test_every_kernel_has_the_launch_that_started_it_and_starts_after_it():
    from gpututor.cards import machine

    timeline = tape_steps(train_a_little, n_steps=3).price(machine("p3.2xlarge"))
    launches = {s.launch: s for s in timeline.on(Activity.LAUNCH)}
    kernels = list(timeline.on(Activity.KERNEL))

    assert len(kernels) > 10
    assert all(launches[k.launch].end_ns < k.start_ns for k in kernels)


def test_live_clock_and_priced_tape_agree():
    with simulated_gpu() as sim:
        for k in range(3):
            sim.begin_step()
            train_a_little(k)
        sim.end_run()
        live_ns = sim.host_ns
        assert sim.timeline().window_ns[1] == live_ns


def test_events_measure_virtual_time():
    with simulated_gpu():
        start, end = torch.simgpu.Event(enable_timing=True), torch.simgpu.Event(enable_timing=True)
        start.record()
        x = torch.ones(1 << 20, device="simgpu")
        for _ in range(10):
            x = x * 2
        end.record()
        torch.simgpu.synchronize()

        # 10 times 8 MiB through a V100's 900 GB/s is at least 93 microseconds
        assert start.elapsed_time(end) > 0.093


def test_a_saved_tape_prices_to_the_same_timeline(tmp_path):
    from gpututor.cards import machine

    tape = tape_steps(train_a_little, n_steps=3)
    tape_file.save(tape, tmp_path / "run.tape.gz")
    loaded = tape_file.load(tmp_path / "run.tape.gz")

    assert timeline_file.to_bytes(loaded.price(machine("p3.2xlarge"))) == timeline_file.to_bytes(
        tape.price(machine("p3.2xlarge"))
    )


def test_part_of_a_tape_holds_those_steps_only():
    tape = tape_steps(train_a_little, n_steps=5)
    part = tape.steps(1, 3)

    assert part.n_steps == 2
    assert part.losses == tape.losses[1:3]


def test_a_step_that_raises_is_one_sentence_with_its_cause():
    def bad(k):
        raise ValueError("no such word")

    with pytest.raises(StepFailed, match="step 0 raised ValueError: no such word") as caught:
        tape_steps(bad)
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_empty_loader_is_one_sentence():
    batches = iter([])

    with pytest.raises(NoSteps, match="empty"):
        tape_steps(lambda k: next(batches))


def test_an_unknown_card_names_near_matches():
    with pytest.raises(MachineNotKnown, match="V100-SXM2-16GB"):
        simulated_gpu("V100-SXM2-16")
