"""ConvNeXt: depthwise 7x7 convolutions with a transformer's norms and feed-forward part."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.recipes import workload

F = nn.functional
# Liu et al. 2022, arXiv 2201.03545, section 3 (blocks and widths of the four stages).
SIZES = {
    "tiny": ((3, 3, 9, 3), (96, 192, 384, 768)),
    "small": ((3, 3, 27, 3), (96, 192, 384, 768)),
    "base": ((3, 3, 27, 3), (128, 256, 512, 1024)),
}


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of (batch, channels, height, width)."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """A depthwise convolution, then norm and two linear layers on each pixel; timm's form with `conv_mlp=False`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        seen = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        fed: Tensor = self.narrow(F.gelu(self.widen(seen))).permute(0, 3, 1, 2)
        return fed.mul(self.scale.reshape(1, -1, 1, 1)) + x


class PooledHead(nn.Module):
    """Mean over the picture, norm and a linear layer."""

    def __init__(self, width: int, classes: int = 1000) -> None:
        super().__init__()
        self.norm, self.out = ChannelNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        scores: Tensor = self.out(self.norm(x.mean((2, 3), keepdim=True)).flatten(1))
        return scores


def convnext(size: str) -> nn.Module:
    """ConvNeXt of size "tiny", "small" or "base"."""
    blocks, widths = SIZES[size]
    parts: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
    for stage, (n, width) in enumerate(zip(blocks, widths, strict=True)):
        if stage:
            parts += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, 2)]
        parts += [Block(width) for _ in range(n)]
    return nn.Sequential(*parts, PooledHead(widths[-1]))


def _convnext(size: str) -> Workload:
    source = "Liu et al. 2022, arXiv 2201.03545, section 3; timm/models/convnext.py"
    return workload(f"convnext_{size}", f"ConvNeXt {size}", source, lambda setting: convnext(size), 128)


CONVNEXTS = tuple(_convnext(size) for size in SIZES)
