"""Devices with events as torch offers them, played by modules of our own: nothing here needs a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gpututor.measure.devices import find
from gpututor.measure.loop import measure
from gpututor.measure.parts import Part
from gpututor.measure.readings import sampler_for

TICK_MS = 2.5


class FakeEvent:
    """An event that is reached at once; each one is recorded 2.5 ms after the one before."""

    n_recorded = 0

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.stream: object = None

    def record(self, stream: object = None) -> None:
        FakeEvent.n_recorded += 1
        self.at_ms, self.stream = TICK_MS * FakeEvent.n_recorded, stream

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: FakeEvent) -> float:
        return later.at_ms - self.at_ms


PROPERTIES = SimpleNamespace(name="Tesla V100-SXM2-16GB", multi_processor_count=80, uuid="123")
CALLS = {
    "is_available": lambda: True,
    "current_device": lambda: 1,
    "get_device_properties": lambda index: PROPERTIES,
    "synchronize": lambda index: None,
    "max_memory_allocated": lambda index: 1000 + index,
    "current_stream": lambda index: f"stream of {index}",
    "is_current_stream_capturing": lambda: False,
    "Event": FakeEvent,
}


@pytest.fixture(params=["cuda", "xpu"])
def kind(request, monkeypatch) -> str:
    for name, call in CALLS.items():
        monkeypatch.setattr(getattr(torch, request.param), name, call, raising=False)
    return request.param


def test_marks_lie_in_the_current_stream_of_the_device_that_is_measured(kind):
    assert find(f"{kind}:3").mark().stream == "stream of 3"
    assert find(kind).mark().stream == "stream of 1"


def test_milliseconds_of_events_become_whole_nanoseconds(kind):
    device = find(kind)

    assert device.between_ns(device.mark(), device.mark()) == 2_500_000


def test_the_card_has_the_name_of_our_table(kind):
    assert (find(kind).card, find(kind).n_sms) == ("V100-SXM2-16GB", 80)


def test_a_whole_loop_is_split_by_the_events(kind):
    with measure(kind, warmup=0, sampler=False, history=False) as run:
        for _ in run.steps(range(3)):
            with run.forward():
                pass

    assert run.result.part_ns(Part.FORWARD) == 2_500_000
    assert run.result.readings["memory_peak_bytes"] == 1001


def test_the_drivers_sampler_is_for_nvidias_cards(monkeypatch):
    for name, call in CALLS.items():
        monkeypatch.setattr(torch.cuda, name, call, raising=False)
    monkeypatch.setattr(torch.version, "hip", "6.4")

    sampler, why = sampler_for(find("cuda"))

    assert sampler is None
    assert "NVML reads NVIDIA's GPUs" in why
    assert ("ROCm", "6.4") in find("cuda").versions


def test_a_gpu_of_apple_has_events_and_no_memory_peak(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps.event, "Event", FakeEvent)
    device = find("mps")

    assert device.between_ns(device.mark(), device.mark()) == 2_500_000
    assert device.memory_peak_bytes() == (None, "torch keeps no peak of the memory on MPS, only what is held now")


def test_a_gpu_is_taken_where_there_is_one_and_no_simulated_one_at_work(kind, monkeypatch):
    if kind == "xpu":
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert find().kind == kind


@pytest.mark.gpu
def test_a_loop_on_the_real_gpu_is_split_and_its_parts_add_up():
    model = torch.nn.Linear(1024, 1024, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with measure("cuda", profile_steps=3, history=False) as run:
        for x in run.steps([torch.randn(64, 1024)] * 20, to="cuda"):
            model(x).square().mean().backward()
            optimizer.step()

    found = run.result
    assert sum(found.part_ns(part) for part in Part) == pytest.approx(found.mean_step_ns)
    assert all(found.part_ns(part) > 0 for part in (Part.COPY, Part.FORWARD, Part.BACKWARD, Part.OPTIMIZER))
    assert len(found.window.steps) >= 3
