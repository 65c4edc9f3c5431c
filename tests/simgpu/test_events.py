"""Streams and events answer as CUDA's do: nesting, timing, asking, refusing."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu

BIG = 1 << 26


def busy(stream=None):
    """Give a stream some milliseconds of work."""
    with torch.simgpu.stream(stream):
        torch.zeros(BIG, device="simgpu") * 2


def test_nested_stream_contexts_go_back_one_by_one():
    with simulated_gpu():
        outer, inner = torch.simgpu.Stream(), torch.simgpu.Stream()
        found = []
        with torch.simgpu.stream(outer):
            with torch.simgpu.stream(inner), torch.simgpu.stream(outer):
                found.append(torch.simgpu.current_stream() is outer)
            found.append(torch.simgpu.current_stream() is outer)
        found.append(torch.simgpu.current_stream() is torch.simgpu.default_stream())

    assert found == [True, True, True]


def test_a_stream_entered_twice_is_left_twice():
    with simulated_gpu():
        stream = torch.simgpu.Stream()
        with stream:
            with stream:
                pass
            inside = torch.simgpu.current_stream()
        after = torch.simgpu.current_stream()

    assert inside is stream
    assert after is not stream


def test_a_stream_of_another_card_makes_that_card_the_current_one_meanwhile():
    with simulated_gpu("p3.8xlarge"):
        stream = torch.simgpu.Stream(device=2)
        with torch.simgpu.stream(stream):
            inside = torch.simgpu.current_device()
        after = torch.simgpu.current_device()

    assert (inside, after) == (2, 0)


def test_no_stream_changes_nothing():
    with simulated_gpu():
        before = torch.simgpu.current_stream()
        with torch.simgpu.stream(None):
            assert torch.simgpu.current_stream() is before


def test_asking_an_event_again_and_again_comes_to_an_end():
    with simulated_gpu(numerics=False):
        event = torch.simgpu.Event()
        busy()
        event.record()
        assert not event.query()
        n = 1
        while not event.query():
            n += 1

    assert n > 1


def test_an_event_that_was_never_recorded_is_reached():
    with simulated_gpu():
        event = torch.simgpu.Event()
        event.synchronize()
        event.wait()

        assert event.query()


@pytest.mark.parametrize(
    ("timing", "record", "words"),
    [
        pytest.param(False, True, "enable_timing=True", id="made without timing"),
        pytest.param(True, False, "must be recorded", id="not recorded"),
        pytest.param(True, True, "must be completed", id="not reached yet"),
    ],
)
def test_elapsed_time_refuses_what_cuda_refuses(timing, record, words):
    with simulated_gpu(numerics=False):
        begin, end = (torch.simgpu.Event(enable_timing=timing) for _ in range(2))
        if record:
            begin.record()
            busy()
            end.record()
        with pytest.raises(RuntimeError, match=words):
            begin.elapsed_time(end)


def test_what_needs_other_processes_or_libraries_is_refused_with_a_way_out():
    with simulated_gpu():
        with pytest.raises(NotImplementedError, match="without interprocess=True"):
            torch.simgpu.Event(interprocess=True)
        with pytest.raises(NotImplementedError, match=r"torch\.simgpu\.Stream"):
            torch.simgpu.ExternalStream(1)


def test_device_free_streams_and_events_are_classes_of_ours():
    with simulated_gpu(numerics=False) as sim:
        stream, event = torch.Stream(device="simgpu"), torch.Event(device="simgpu")
        event.record(stream)

        class Sub(torch.Event):
            """Other code makes subclasses of it."""

        assert isinstance(Sub(), torch.simgpu.Event)
        assert stream.stream_id == sim.machine.n_cards


def test_torch_accelerator_speaks_of_the_simulated_card():
    with simulated_gpu("p3.8xlarge"):
        acc = torch.accelerator
        stream = torch.simgpu.Stream()
        acc.set_stream(stream)
        with acc.device_index(3):
            inside = acc.current_device_index()
        acc.synchronize()

        assert (acc.device_count(), inside, acc.current_device_index()) == (4, 3, 0)
        assert acc.current_stream() is stream
        assert torch.float16 in acc.get_device_capability()["supported_dtypes"]
        assert acc.Graph is torch.simgpu.CUDAGraph


def test_memory_used_in_another_stream_is_not_given_out_before_that_stream_is_done():
    with simulated_gpu(numerics=False) as sim:
        other = torch.simgpu.Stream()
        x = torch.empty(BIG, device="simgpu")
        piece = x.block.piece
        busy(other)
        x.record_stream(other)
        del x

        assert sim.memory.is_waiting(piece)
