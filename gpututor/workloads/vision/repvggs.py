"""RepVGG while it trains: a 3x3 and a 1x1 convolution and the input itself side by side, each with its own norm."""

from __future__ import annotations

from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head, conv_norm
from gpututor.workloads.vision.recipes import workload

# Ding et al. 2021, arXiv 2101.03697, tables 2 and 3: blocks and widths of the stages after the first.
SIZES = {
    "repvgg_a2": ((2, 4, 14, 1), (96, 192, 384, 1408)),
    "repvgg_b0": ((4, 6, 16, 1), (64, 128, 256, 1280)),
    "repvgg_b1": ((4, 6, 16, 1), (128, 256, 512, 2048)),
}


class Block(nn.Module):
    """Three branches that could be one convolution, added and cut at zero."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.three, self.one = (
            conv_norm(width_in, width, 3, stride, act=None),
            conv_norm(width_in, width, 1, stride, act=None),
        )
        self.itself = nn.BatchNorm2d(width) if width_in == width and stride == 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        seen = self.one(x) + self.three(x)
        if self.itself is not None:
            seen = seen + self.itself(x)
        return nn.functional.relu(seen, inplace=True)


def repvgg(name: str) -> nn.Module:
    """A RepVGG by timm's name, its branches not yet made one."""
    blocks, widths = SIZES[name]
    width_in = min(64, widths[0])
    parts: list[nn.Module] = [Block(3, width_in, 2)]
    for n, width in zip(blocks, widths, strict=True):
        for k in range(n):
            parts.append(Block(width_in, width, 1 if k else 2))
            width_in = width
    return nn.Sequential(*parts, Head(width_in))


def _repvgg(name: str) -> Workload:
    source = "Ding et al. 2021, arXiv 2101.03697; timm/models/byobnet.py without --reparam"
    return workload(name, f"{name}", source, lambda setting: repvgg(name))


REPVGGS = tuple(_repvgg(name) for name in SIZES)
