"""Copies from the host into another number format: which side converts decides what crosses the link."""

from __future__ import annotations

import pytest
import torch

from gpututor.model.tape import CopyCall, HostWork, TapeOp
from gpututor.simgpu import simulated_gpu

N = 1000


def across(source: torch.Tensor, *asked, **kwargs):
    """What a copy to the card put on the tape, by kind, and what arrived."""
    with simulated_gpu() as sim:
        torch.ones(1, device="simgpu")  # the card's memory is asked for here, and not below
        first = len(sim.tape.entries)
        arrived = source.to("simgpu", *asked, **kwargs)
        entries = sim.tape.entries[first:]
        return {kind: [e for e in entries if type(e) is kind] for kind in (CopyCall, HostWork, TapeOp)}, arrived.cpu()


def kernels(seen) -> list[str]:
    return [op.name for op in seen[TapeOp] if op.kernels]


def test_without_a_new_format_the_bytes_cross_as_they_are():
    seen, _ = across(torch.ones(N, dtype=torch.uint8))

    assert [copy.n_bytes for copy in seen[CopyCall]] == [N]
    assert (seen[HostWork], kernels(seen)) == ([], [])


def test_a_blocking_copy_converts_on_the_host_and_sends_what_comes_out():
    seen, _ = across(torch.ones(N, dtype=torch.uint8), torch.float32)

    assert [copy.n_bytes for copy in seen[CopyCall]] == [4 * N]
    assert [work.name for work in seen[HostWork]] == ["conversion on the host"]
    assert kernels(seen) == []


def test_pinning_the_source_does_not_help_it():
    seen, _ = across(torch.ones(N, dtype=torch.uint8).pin_memory(), torch.float32)

    assert [copy.pinned for copy in seen[CopyCall]] == [False]


def test_a_non_blocking_copy_sends_bytes_and_converts_on_the_card():
    seen, _ = across(torch.ones(N, dtype=torch.uint8).pin_memory(), torch.float32, non_blocking=True)

    assert [(copy.n_bytes, copy.pinned, copy.blocking) for copy in seen[CopyCall]] == [(N, True, False)]
    assert kernels(seen) == ["copy_"]
    assert seen[HostWork] == []


@pytest.mark.parametrize("non_blocking", [False, True])
def test_the_values_are_the_same_either_way(non_blocking):
    source = torch.arange(N, dtype=torch.int64)
    _, arrived = across(source, torch.float32, non_blocking=non_blocking)

    assert torch.equal(arrived, source.float())


def test_one_fp64_tensor_makes_the_kernel_fp64():
    with simulated_gpu() as sim:
        single, double = torch.ones(N, device="simgpu"), torch.ones(N, dtype=torch.float64, device="simgpu")
        first = len(sim.tape.entries)
        single - double
        single - 1.0
        formats = [k.number_format for e in sim.tape.entries[first:] if type(e) is TapeOp for k in e.kernels]

    assert formats == ["fp64", "fp32"]
