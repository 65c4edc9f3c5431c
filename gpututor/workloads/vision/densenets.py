"""DenseNets: every layer reads what all layers before it in its block wrote."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head, conv_norm
from gpututor.workloads.vision.recipes import workload

# Huang et al. 2016, arXiv 1608.06993, table 1: layers of the four blocks, each of which adds 32 channels.
DEPTHS = {121: (6, 12, 24, 16), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}
GROWTH, NARROW = 32, 4 * 32


def norm_act(width: int) -> list[nn.Module]:
    """Batch norm and ReLU in place."""
    return [nn.BatchNorm2d(width), nn.ReLU(True)]


class Dense(nn.Module):
    """A block: each layer joins all that came before in one new tensor, as timm does without its checkpoints."""

    def __init__(self, width_in: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                *norm_act(width_in + k * GROWTH),
                nn.Conv2d(width_in + k * GROWTH, NARROW, 1, bias=False),
                *norm_act(NARROW),
                nn.Conv2d(NARROW, GROWTH, 3, padding=1, bias=False),
            )
            for k in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        """`layers` times 32 channels more."""
        seen = [x]
        for layer in self.layers:
            seen.append(layer(torch.cat(seen, 1)))
        return torch.cat(seen, 1)


def densenet(layers: int) -> nn.Module:
    """DenseNet with bottlenecks and halved widths between its blocks."""
    parts: list[nn.Module] = [*conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for k, n in enumerate(DEPTHS[layers]):
        parts.append(Dense(width, n))
        width += n * GROWTH
        if k < 3:
            parts += [*norm_act(width), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2, 2)]
            width //= 2
    return nn.Sequential(*parts, *norm_act(width), Head(width))


def _densenet(layers: int) -> Workload:
    source = "Huang et al. 2016, arXiv 1608.06993, table 1; timm/models/densenet.py"
    return workload(f"densenet{layers}", f"DenseNet-{layers}", source, lambda setting: densenet(layers), 128)


DENSENETS = tuple(_densenet(layers) for layers in DEPTHS)
