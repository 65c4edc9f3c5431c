"""A small convolutional network in plain torch, launched as ResNet-50 is: so small that only the host's work counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

N_BLOCKS, N_CHANNELS, SIDE, N_CLASSES = 16, 8, 4, 10  # 16 blocks as in ResNet-50; sizes that take no time


class Block(nn.Module):
    """Three convolutions with batch norms, as in ResNet's bottleneck, and the input added."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(N_CHANNELS, N_CHANNELS, 1, bias=False), nn.BatchNorm2d(N_CHANNELS)
        self.conv2, self.norm2 = nn.Conv2d(N_CHANNELS, N_CHANNELS, 3, padding=1, bias=False), nn.BatchNorm2d(N_CHANNELS)
        self.conv3, self.norm3 = nn.Conv2d(N_CHANNELS, N_CHANNELS, 1, bias=False), nn.BatchNorm2d(N_CHANNELS)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, of the input's shape."""
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.relu(self.norm2(self.conv2(out)))
        out = self.norm3(self.conv3(out))
        out += x
        result: Tensor = self.relu(out)
        return result


def network(device: str) -> nn.Sequential:
    """The network on a device."""
    blocks = [Block() for _ in range(N_BLOCKS)]
    head = nn.Linear(N_CHANNELS * SIDE * SIDE, N_CLASSES)
    return nn.Sequential(*blocks, nn.Flatten(), head).to(device)


def pictures(device: str) -> Tensor:
    """Two random pictures."""
    return torch.randn(2, N_CHANNELS, SIDE, SIDE, device=device)


def training_step(device: str) -> Callable[[], Any]:
    """One training step of the network: forward, backward, SGD."""
    net, x = network(device), pictures(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def forward(device: str, *, grad: bool) -> Callable[[], Any]:
    """One inference of the network, with or without autograd's bookkeeping."""
    net, x = network(device).eval(), pictures(device)

    def call() -> None:
        with torch.set_grad_enabled(grad):
            net(x)

    return call
