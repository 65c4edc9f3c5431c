"""RegNets: grouped convolutions in stages whose widths come from a straight line."""

from __future__ import annotations

import math

from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head, SqueezeExcite, conv_norm
from gpututor.workloads.vision.recipes import workload

# Radosavovic et al. 2020, arXiv 2003.13678, tables 8 and 9 (their configurations in pycls): first width, slope, step,
# channels in a group, blocks.
SIZES = {
    "regnetx_008": (56, 35.73, 2.28, 16, 16),
    "regnetx_016": (80, 34.01, 2.25, 24, 18),
    "regnetx_032": (88, 26.31, 2.25, 48, 25),
    "regnetx_080": (80, 49.56, 2.88, 120, 23),
    "regnety_008": (56, 38.84, 2.4, 16, 14),
    "regnety_016": (48, 20.71, 2.65, 24, 27),
    "regnety_032": (80, 42.63, 2.66, 24, 21),
    "regnety_080": (192, 76.82, 2.19, 56, 17),
}


def widths_of(first: int, slope: float, step: float, group: int, blocks: int) -> list[int]:
    """The width of each block: the line's value, moved to the next power of `step`, to 8 and to whole groups."""
    widths = []
    for k in range(blocks):
        power = round(math.log((first + slope * k) / first) / math.log(step))
        width = round(first * step**power / 8) * 8
        of_group = min(group, width)
        widths.append(round(width / of_group) * of_group)
    return widths


class Block(nn.Module):
    """1x1, grouped 3x3 and 1x1 convolutions of one width around a sum; RegNetY weighs the channels."""

    def __init__(self, width_in: int, width: int, stride: int, group: int, squeezed: bool) -> None:
        super().__init__()
        parts = [*conv_norm(width_in, width), *conv_norm(width, width, 3, stride, groups=width // min(group, width))]
        if squeezed:
            parts.append(SqueezeExcite(width, round(width_in * 0.25)))
        self.path = nn.Sequential(*parts, *conv_norm(width, width, act=None))
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or width_in != width:
            self.shortcut = conv_norm(width_in, width, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        return nn.functional.relu(self.path(x) + self.shortcut(x))


def regnet(name: str) -> nn.Module:
    """A RegNet by timm's name."""
    group = SIZES[name][3]
    parts: list[nn.Module] = [*conv_norm(3, 32, 3, 2)]
    width_in = 32
    for width in widths_of(*SIZES[name]):
        parts.append(Block(width_in, width, 1 if width == width_in else 2, group, name.startswith("regnety")))
        width_in = width
    return nn.Sequential(*parts, Head(width_in))


def _regnet(name: str) -> Workload:
    source = "Radosavovic et al. 2020, arXiv 2003.13678, tables 8 and 9; timm/models/regnet.py"
    return workload(name, f"{name}", source, lambda setting: regnet(name))


REGNETS = tuple(_regnet(name) for name in SIZES)
