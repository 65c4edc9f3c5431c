"""Gradients averaged as apex does it: real means, buckets in the order of the backward pass, none for the unused."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn

from gpututor.model.exchange import RanksExchange
from gpututor.simgpu.cards.distributed import launch
from gpututor.workloads.apex_parallel import ApexParallel, buckets_of

MACHINE = "p3.8xlarge"
WIDTH = 8


def device():
    return torch.device("simgpu", torch.simgpu.current_device())


class Net(nn.Module):
    """Two layers that are used and one that is not."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.unused = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.second(self.first(x))


def gradients(rank, n_steps, least):
    """The last step's gradients of the network, on a batch that only this rank has."""
    dist.init_process_group("nccl")
    net = ApexParallel(Net().to(device()), least)
    torch.manual_seed(rank)
    x = torch.randn(5, WIDTH)
    for _ in range(n_steps):
        net.zero_grad()
        net(x.to(device())).square().mean().backward()
    return [None if p.grad is None else p.grad.cpu() for p in net.parameters()]


def alone(rank):
    net = Net()
    torch.manual_seed(rank)
    net(torch.randn(5, WIDTH)).square().mean().backward()
    return [p.grad for p in net.parameters()]


@pytest.mark.parametrize("n_steps", [1, 2])
@pytest.mark.parametrize("least", [1, 10_000_000])
def test_every_rank_gets_the_mean_of_all_gradients(n_steps, least):
    run = launch(gradients, MACHINE, 2, args=(n_steps, least))

    wanted = [None if a is None else (a + b) / 2 for a, b in zip(alone(0), alone(1), strict=True)]
    for found in run.results:
        for ours, right in zip(found, wanted, strict=True):
            assert (ours is None) == (right is None)
            assert ours is None or torch.allclose(ours, right, atol=1e-6)


def n_reduced(run):
    return [e.n_bytes for e in run.tapes.tapes[0].entries if type(e) is RanksExchange and e.kind == "all_reduce"]


def test_one_bucket_holds_all_that_has_a_gradient():
    n_used = 2 * (WIDTH * WIDTH + WIDTH)

    assert n_reduced(launch(gradients, MACHINE, 2, args=(1, 10_000_000))) == [4 * n_used]


def test_buckets_go_as_soon_as_they_are_full():
    entries = launch(gradients, MACHINE, 2, args=(2, 1)).tapes.tapes[0].entries
    reduced = [k for k, e in enumerate(entries) if type(e) is RanksExchange and e.kind == "all_reduce"]

    assert len(reduced) == 2 * 4  # in each step one for each parameter with a gradient
    first, second = reduced[:4], reduced[4:]
    assert first[-1] - first[0] < second[-1] - second[0]  # the first step learns the order and sends at its end


def test_a_bucket_closes_when_it_has_enough_and_formats_stay_apart():
    single = [nn.Parameter(torch.zeros(n)) for n in (3, 4, 5, 2)]
    half = nn.Parameter(torch.zeros(6, dtype=torch.float16))

    found = buckets_of([single[0], half, *single[1:]], 7)

    assert [[p.numel() for p in bucket] for bucket in found] == [[3, 4], [5, 2], [6]]
