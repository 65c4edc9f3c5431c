"""Backward passes and optimizer steps heard without a word from the loop, with torch itself."""

from __future__ import annotations

import threading

import pytest
import torch

import gpututor
from gpututor.errors import DeviceNotKnown, NoSteps
from gpututor.ledger import Account
from gpututor.measure.devices import cpu, find
from gpututor.measure.hooks import heard
from gpututor.measure.moving import moved
from gpututor.measure.parts import Part


class Heard:
    """What was heard, in order; a part's end is its word with a bar before it."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self._open: list[Part] = []

    def enter(self, part: Part) -> None:
        self._open.append(part)
        self.order.append(part.value)

    def leave(self) -> None:
        self.order.append(f"/{self._open.pop().value}")


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Linear(3, 2)


def a_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    loss = model(torch.ones(4, 3)).square().mean()
    loss.backward()
    optimizer.step()


def test_a_step_is_heard_as_backward_then_optimizer(model):
    ear = Heard()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with heard(ear.enter, ear.leave):
        a_step(model, optimizer)

    assert ear.order == ["backward", "/backward", "optimizer", "/optimizer"]


def test_a_closure_runs_inside_the_optimizer(model):
    ear = Heard()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    with heard(ear.enter, ear.leave):
        optimizer.step(closure)

    assert ear.order[:2] == ["optimizer", "backward"]
    assert ear.order[-1] == "/optimizer"


def test_nothing_is_heard_after_the_block_and_torch_is_as_before(model):
    ear = Heard()
    before = torch.autograd.backward

    with heard(ear.enter, ear.leave):
        pass
    a_step(model, torch.optim.SGD(model.parameters(), lr=0.1))

    assert ear.order == []
    assert torch.autograd.backward is before


def test_what_somebody_else_put_there_meanwhile_stays(monkeypatch):
    before = torch.autograd.backward
    with heard(lambda part: None, lambda: None):
        monkeypatch.setattr(torch.autograd, "backward", other := lambda *args, **kwargs: None)

    assert torch.autograd.backward is other
    monkeypatch.setattr(torch.autograd, "backward", before)


def test_another_thread_is_not_heard(model):
    ear = Heard()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with heard(ear.enter, ear.leave):
        thread = threading.Thread(target=a_step, args=(model, optimizer))
        thread.start()
        thread.join()

    assert ear.order == []


def test_a_backward_that_raises_is_over():
    ear = Heard()
    with heard(ear.enter, ear.leave), pytest.raises(RuntimeError):
        torch.ones(2).sum().backward()

    assert ear.order == ["backward", "/backward"]


def test_three_lines_around_a_loop_on_the_cpu_split_it(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with gpututor.measure("cpu", warmup=1, history=False) as run:
        for _ in run.steps(range(4)):
            a_step(model, optimizer)

    found = run.result
    assert len(found.steps) == 3
    assert all(found.part_ns(part) > 0 for part in (Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER))
    assert sum(found.part_ns(part) for part in Part) == pytest.approx(found.mean_step_ns)


def test_on_the_cpu_what_it_lacks_has_a_reason(model):
    with gpututor.measure("cpu", warmup=0, profile_steps=2, history=False) as run:
        list(run.steps(range(3)))

    assert set(run.result.reasons) == {"driver's samples", "window", "memory_peak_bytes"}
    assert "memory_peak_bytes" not in run.result.readings


def test_the_cpu_waiting_for_batches_is_charged_to_the_input():
    clock = iter(range(0, 10**12, 1_000_000))  # every look takes a millisecond
    with gpututor.measure(cpu(lambda: next(clock)), warmup=0, history=False) as run:
        list(run.steps(range(5)))

    assert run.result.ledger.share(Account.WAITING_FOR_INPUT) > 0.3


def test_an_unknown_device_is_refused_with_the_known_ones():
    with pytest.raises(DeviceNotKnown, match="cuda"):
        find("cudda")


@pytest.mark.parametrize("name", ["xpu", "mps", "cuda"])
def test_a_device_that_is_not_here_is_said_to(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.xpu, "is_available", lambda: False)

    with pytest.raises(DeviceNotKnown, match="device of this machine"):
        find(name)


def test_less_than_no_steps_are_refused():
    with pytest.raises(NoSteps, match="warmup=-1"):
        gpututor.measure("cpu", warmup=-1)


def test_tensors_are_moved_wherever_a_batch_holds_them():
    there = moved({"a": [torch.ones(1), 3], "b": (torch.ones(2), "text")}, "meta")

    assert there["a"][0].device.type == there["b"][0].device.type == "meta"
    assert (there["a"][1], there["b"][1]) == (3, "text")


@pytest.fixture(scope="module")
def on_simulated_card():
    """A loop on the simulated H100 with a look at two of its steps."""
    with gpututor.simulated_gpu("H100"):
        model = torch.nn.Linear(64, 64, device="simgpu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with gpututor.measure(profile_steps=2, warmup=1, history=False) as run:
            for x in run.steps([torch.ones(8, 64)] * 6, to="simgpu"):
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
    return run.result


def test_a_simulated_card_is_split_by_its_virtual_events(on_simulated_card):
    found = on_simulated_card

    assert found.label.card == "H100-SXM"
    assert (len(found.steps), found.n_left_out) == (3, 3)
    assert all(found.part_ns(p) > 0 for p in (Part.COPY, Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER))


def test_simulated_steps_repeat_exactly(on_simulated_card):
    first, *others = ({part: step.on_gpu_ns(part) for part in Part} for step in on_simulated_card.steps)

    assert all(other == first for other in others)


def test_the_look_at_a_simulated_card_has_its_kernels_and_all_accounts(on_simulated_card):
    ledger = on_simulated_card.window_ledger

    assert ledger.n_steps == 2
    assert ledger.mfu is not None
    assert ledger.charged_ns[Account.LAUNCH_OVERHEAD] > 0


def test_measuring_without_torch_loaded_is_a_name_that_can_be_called():
    assert callable(gpututor.measure)
    assert gpututor.measure is __import__("sys").modules["gpututor.measure"]
