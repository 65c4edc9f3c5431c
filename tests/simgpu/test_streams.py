"""Streams, events and cards: what may overlap, and where work lies."""

from __future__ import annotations

import pytest
import torch

from gpututor.cards import machine
from gpututor.simgpu import simulated_gpu
from gpututor.timeline import Activity, LaneKind


def kernels_by_lane(timeline):
    """Kernels of each stream, by the name of its lane."""
    found: dict[str, list] = {}
    for span in timeline.on(Activity.KERNEL):
        found.setdefault(timeline.lanes[span.lane].name, []).append(span)
    return found


def two_streams(elements):
    """One long kernel in each of two streams, launched at the same time."""
    with simulated_gpu(numerics=False) as sim:
        x, y = (torch.ones(elements, device="simgpu") for _ in range(2))
        torch.simgpu.synchronize()
        first = len(sim.tape.entries)
        other = torch.simgpu.Stream()
        x * 2
        with torch.simgpu.stream(other):
            y * 2
        sim.tape.entries = sim.tape.entries[first:]
        return kernels_by_lane(sim.timeline())


def test_a_stream_has_a_lane_of_its_own():
    assert set(two_streams(1000)) == {"default stream", "stream 1"}


def test_two_kernels_that_each_fill_the_card_take_turns():
    found = two_streams(1 << 28)

    assert found["stream 1"][0].start_ns >= found["default stream"][0].end_ns


def test_two_kernels_that_fit_together_overlap():
    # softmax of one row of 16M numbers: one block, so one SM of 80, for milliseconds
    with simulated_gpu(numerics=False) as sim:
        x, y = (torch.ones(1, 1 << 24, device="simgpu") for _ in range(2))
        other = torch.simgpu.Stream()
        torch.softmax(x, 1)
        with torch.simgpu.stream(other):
            torch.softmax(y, 1)
        found = kernels_by_lane(sim.timeline())

    assert found["stream 1"][0].start_ns < found["default stream"][-1].end_ns


def test_a_stream_that_waits_for_another_starts_after_it():
    with simulated_gpu(numerics=False) as sim:
        x = torch.ones(1, 1 << 24, device="simgpu")
        other = torch.simgpu.Stream()
        torch.softmax(x, 1)
        other.wait_stream(torch.simgpu.current_stream())
        with torch.simgpu.stream(other):
            x[0, :10] * 2
        found = kernels_by_lane(sim.timeline())

    assert found["stream 1"][0].start_ns > found["default stream"][-1].end_ns


def test_a_pinned_copy_runs_beside_kernels_and_a_pageable_one_holds_the_host():
    def copied(pinned):
        with simulated_gpu() as sim:
            x = torch.ones(1 << 22)
            x = x.pin_memory() if pinned else x
            y = torch.ones(1 << 22, device="simgpu")
            torch.simgpu.synchronize()
            side = torch.simgpu.Stream()
            with torch.simgpu.stream(side):
                torch.empty(1 << 22, device="simgpu")  # from here on the stream has cached memory
            before = sim.host_ns
            with torch.simgpu.stream(side):
                x.to("simgpu", non_blocking=True)
            after = sim.host_ns
            y * 2
            timeline = sim.timeline()
        (copy,) = timeline.on(Activity.COPY_TO_GPU)
        kernel = list(timeline.on(Activity.KERNEL))[-1]
        return after - before, kernel.start_ns < copy.end_ns

    pinned_ns, pinned_overlaps = copied(pinned=True)
    pageable_ns, pageable_overlaps = copied(pinned=False)

    assert pinned_overlaps
    assert not pageable_overlaps
    assert pageable_ns > 10 * pinned_ns


def test_work_on_a_second_card_lies_in_that_cards_lanes():
    with simulated_gpu("p3.8xlarge") as sim:
        a = torch.ones(10, device="simgpu:0") * 2
        b = torch.ones(10, device="simgpu:3") * 3
        with torch.simgpu.device(2):
            c = torch.ones(10, device="simgpu")
        timeline = sim.timeline()

    assert (a.device.index, b.device.index, c.device.index) == (0, 3, 2)
    cards = {timeline.lanes[s.lane].device for s in timeline.on(Activity.KERNEL)}
    assert cards == {0, 2, 3}
    assert sum(lane.kind is LaneKind.STREAM for lane in timeline.lanes) == 4


def test_tensors_of_two_cards_are_refused_together():
    with simulated_gpu("p3.8xlarge"), pytest.raises(RuntimeError, match="simgpu:0 and simgpu:1"):
        torch.ones(2, device="simgpu:0") + torch.ones(2, device="simgpu:1")


def test_memory_is_accounted_card_by_card():
    with simulated_gpu("p3.8xlarge") as sim:
        keep = torch.ones(1024, device="simgpu:1")
        assert [m.in_use_bytes for m in sim.memories] == [0, keep.numel() * 4, 0, 0]


def test_a_tape_of_several_cards_is_not_priced_on_one():
    from gpututor.errors import TimelineError

    with simulated_gpu("p3.8xlarge") as sim:
        torch.ones(2, device="simgpu:1")
        tape = sim.tape
    with pytest.raises(TimelineError, match="4 cards"):
        tape.price(machine("p3.2xlarge"))
