"""GhostNet: half of the channels come from cheap depthwise convolutions of the other half."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.vision.inverted import LateHead
from gpututor.workloads.vision.layers import SqueezeExcite, conv_norm, rounded
from gpututor.workloads.vision.recipes import workload

# Han et al. 2019, arXiv 1911.11907, table 1: filter, inner width, width, squeeze and excitation, stride.
BLOCKS = (
    (3, 16, 16, False, 1),
    (3, 48, 24, False, 2),
    (3, 72, 24, False, 1),
    (5, 72, 40, True, 2),
    (5, 120, 40, True, 1),
    (3, 240, 80, False, 2),
    (3, 200, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 480, 112, True, 1),
    (3, 672, 112, True, 1),
    (5, 672, 160, True, 2),
    (5, 960, 160, False, 1),
    (5, 960, 160, True, 1),
    (5, 960, 160, False, 1),
    (5, 960, 160, True, 1),
)


class Ghost(nn.Module):
    """Half of `width` from a 1x1 convolution, the other half from a 3x3 depthwise one of the first."""

    def __init__(self, width_in: int, width: int, act: type[nn.Module] | None) -> None:
        super().__init__()
        half = (width + 1) // 2
        self.width = width
        self.first = conv_norm(width_in, half, act=act)
        self.cheap = conv_norm(half, half, 3, groups=half, act=act)

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels."""
        first = self.first(x)
        return torch.cat([first, self.cheap(first)], 1)[:, : self.width, :, :]


class GhostBlock(nn.Module):
    """Two ghost modules around a depthwise convolution (where there is a stride) and squeeze and excitation."""

    def __init__(self, width_in: int, inner: int, width: int, size: int, stride: int, squeezed: bool) -> None:
        super().__init__()
        parts: list[nn.Module] = [Ghost(width_in, inner, nn.ReLU)]
        if stride > 1:
            parts += conv_norm(inner, inner, size, stride, groups=inner, act=None)
        if squeezed:
            parts.append(SqueezeExcite(inner, rounded(inner * 0.25, 4), nn.ReLU, nn.Hardsigmoid))
        self.path = nn.Sequential(*parts, Ghost(inner, width, None))
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != width:
            self.shortcut = nn.Sequential(
                *conv_norm(width_in, width_in, size, stride, groups=width_in, act=None),
                *conv_norm(width_in, width, act=None),
            )

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        seen: Tensor = self.path(x)
        seen += self.shortcut(x)
        return seen


def ghostnet() -> nn.Module:
    """GhostNet of width 1."""
    parts: list[nn.Module] = [*conv_norm(3, 16, 3, 2)]
    width_in = 16
    for size, inner, width, squeezed, stride in BLOCKS:
        parts.append(GhostBlock(width_in, inner, width, size, stride, squeezed))
        width_in = width
    return nn.Sequential(*parts, *conv_norm(width_in, 960), LateHead(960, 1280, nn.ReLU))


GHOSTNET = workload(
    "ghostnet_100",
    "GhostNet",
    "Han et al. 2019, arXiv 1911.11907, table 1; timm/models/ghostnet.py",
    lambda setting: ghostnet(),
)
