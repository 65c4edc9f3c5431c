"""A detached tensor shares values with the one it came from, and never its size."""

from __future__ import annotations

import pytest
import torch

from gpututor.simgpu import simulated_gpu

CHANGES = {
    "t_": lambda y: y.t_(),
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "resize_": lambda y: y.resize_(5, 5),
    "set_": lambda y: y.set_(torch.ones(7, device=y.device)),
    "out=": lambda y: torch.add(torch.ones(4, 4, device=y.device), 1, out=y),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_size_in_place_leaves_the_original_as_the_cpu_leaves_it(change):
    on_cpu = torch.arange(6.0).reshape(2, 3)
    change(on_cpu.detach())
    with simulated_gpu():
        x = torch.arange(6.0).reshape(2, 3).to("simgpu")
        change(x.detach())
        assert torch.equal(x.cpu(), on_cpu)


def test_what_is_written_into_a_detached_tensor_is_in_the_original():
    with simulated_gpu():
        x = torch.zeros(3, device="simgpu")
        x.detach().add_(1)
        assert x.tolist() == [1, 1, 1]
