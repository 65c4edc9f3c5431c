"""Jobs that one card, several cards of one process, or several processes train: the same batch, the same learning.

In a process of torch.distributed each takes its share of every batch; elsewhere the process takes all of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gpututor.jobs.shapes import SmallNet, draw

F = nn.functional
BATCH, N_STEPS, RATE = 64, 64, 3e-3  # of the small network: pictures of all cards together
N_PICTURES, N_HELD_OUT = 4096, 1024
N_WORDS = 50257  # of GPT-2's table


@dataclass(frozen=True, slots=True)
class Way:
    """How a job is spread: `data_parallel` cards in one process, or the processes there are, with DDP's options.

    `bucket_mb` is how many megabytes of gradients travel together, None for torch's own. A step has `n_micro`
    backward passes; unless `every`, gradients are exchanged after the last one only.
    """

    data_parallel: int = 1
    bucket_mb: float | None = None
    n_micro: int = 1
    every: bool = False


PLAIN = Way()


def place() -> tuple[int, int]:
    """This process's rank, and how many there are; (0, 1) outside of torch.distributed."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def spread(net: nn.Module, way: Way, device: torch.device) -> nn.Module:
    """The network on its device, or on several as `way` says."""
    net = net.to(device)
    if way.data_parallel > 1:
        return nn.DataParallel(net, device_ids=list(range(way.data_parallel)))
    if place()[1] == 1:
        return net
    ids = None if device.type == "cpu" else [device.index or 0]
    return nn.parallel.DistributedDataParallel(net, device_ids=ids, bucket_cap_mb=way.bucket_mb)


def train_once(net: nn.Module, optimizer: torch.optim.Optimizer, way: Way, loss_of: Callable[[int], Tensor]) -> Tensor:
    """One step of the optimizer after `way.n_micro` backward passes; `loss_of(m)` is the loss of part m.

    Gives the mean of the parts' losses, left on the device.
    """
    optimizer.zero_grad()
    losses = []
    for m in range(way.n_micro):
        waits = way.every or m == way.n_micro - 1 or not hasattr(net, "no_sync")
        with contextlib.nullcontext() if waits else net.no_sync():  # type: ignore[operator]  # DDP has it
            loss = loss_of(m).mean() / way.n_micro
            loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
    optimizer.step()
    return losses[0] if len(losses) == 1 else torch.stack(losses).sum()


class WithLoss(nn.Module):
    """A network of words that gives its loss, so that DataParallel brings numbers back and no scores of words."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, ids: Tensor, following: Tensor) -> Tensor:
        """The mean loss of the words that follow, (1,)."""
        return F.cross_entropy(self.net(ids).view(-1, N_WORDS), following.view(-1)).view(1)


def gpt2(sequences: int, length: int, way: Way, device: torch.device) -> Callable[[int], Tensor]:
    """A training step of GPT-2's smallest form in fp32, with AdamW.

    `sequences` are those of this process in one backward pass.
    """
    from gpututor.workloads.language.gpt2 import Gpt2

    torch.manual_seed(0)
    with device:  # else half a gigabyte of numbers is drawn on the host first
        net = spread(WithLoss(Gpt2()), way, device)
    optimizer = torch.optim.AdamW(net.parameters())
    ids = torch.randint(0, N_WORDS, (sequences, length), device=device)
    return lambda _k: train_once(net, optimizer, way, lambda _m: net(ids, ids))


def alexnet(pictures: int, way: Way, device: torch.device) -> Callable[[int], Tensor]:
    """A training step of AlexNet in its form for one card, with SGD.

    Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks".
    """
    channels = ((3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1))
    layers: list[nn.Module] = []
    with device:
        for k, (n_in, n_out, size, stride, padding) in enumerate(channels):
            layers += [nn.Conv2d(n_in, n_out, size, stride, padding), nn.ReLU(inplace=True)]
            layers += [nn.MaxPool2d(3, 2)] if k in (0, 1, 4) else []
        layers += [nn.Flatten(), nn.Dropout(), nn.Linear(256 * 36, 4096), nn.ReLU(inplace=True)]
        layers += [nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000)]
    return of_pictures(nn.Sequential(*layers), pictures, way, device)


def resnet50(pictures: int, way: Way, device: torch.device) -> Callable[[int], Tensor]:
    """A training step of ResNet-50, with SGD."""
    from gpututor.workloads.vision.resnets import ResNet50

    with device:
        net = ResNet50()
    return of_pictures(net, pictures, way, device)


def of_pictures(net: nn.Module, pictures: int, way: Way, device: torch.device) -> Callable[[int], Tensor]:
    """A training step of a network for ImageNet on so many random pictures in this process."""
    net = spread(net, way, device)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    shown = torch.randn(pictures, 3, 224, 224, device=device)
    kinds = torch.randint(0, 1000, (pictures,), device=device)
    return lambda _k: train_once(net, optimizer, way, lambda _m: F.cross_entropy(net(shown), kinds))


class Learning:
    """The small network on drawn shapes, really trained; whatever the way, each step sees the same pictures.

    `batch` is that of all processes and all parts together.
    """

    def __init__(self, way: Way, batch: int, device: torch.device) -> None:
        torch.manual_seed(0)
        self.way, self.batch, self.device = way, batch, device
        self.own = SmallNet()
        self.net = spread(self.own, way, device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=RATE)
        pictures, kinds = draw(N_PICTURES)
        order = torch.randperm(N_PICTURES, generator=torch.Generator().manual_seed(1))
        self.pictures, self.kinds, self.order = pictures.to(device), kinds.to(device), order.to(device)

    def __call__(self, k: int) -> Tensor:
        """Train on batch number `k`; gives the loss of this process's share."""
        rank, n_ranks = place()
        share = self.batch // n_ranks // self.way.n_micro

        def loss_of(m: int) -> Tensor:
            first = (k * self.batch + (m * n_ranks + rank) * share) % N_PICTURES
            chosen = self.order[first : first + share]
            return F.cross_entropy(self.net(self.pictures[chosen]), self.kinds[chosen])

        return train_once(self.net, self.optimizer, self.way, loss_of)

    def held_out(self) -> float:
        """The loss on pictures that it never saw."""
        pictures, kinds = draw(N_HELD_OUT, seed=1)
        with torch.no_grad():
            return float(F.cross_entropy(self.own(pictures.to(self.device)), kinds.to(self.device)))


def learning(way: Way, batch: int, device: torch.device) -> Any:
    """`Learning`, as the step of a sweep."""
    return Learning(way, batch, device)
