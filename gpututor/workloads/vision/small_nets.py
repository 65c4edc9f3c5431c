"""SqueezeNet and ShuffleNet V2, as torchvision has them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head, conv_norm
from gpututor.workloads.vision.recipes import workload

IANDOLA = "Iandola et al. 2016, arXiv 1602.07360, table 1; torchvision/models/squeezenet.py"
MA = "Ma et al. 2018, arXiv 1807.11164, table 5; torchvision/models/shufflenetv2.py"


class Fire(nn.Module):
    """A narrow 1x1 convolution, and a 1x1 and a 3x3 one of its output side by side."""

    def __init__(self, width_in: int, narrow: int, each: int) -> None:
        super().__init__()
        self.narrow = nn.Sequential(nn.Conv2d(width_in, narrow, 1), nn.ReLU(True))
        self.one = nn.Sequential(nn.Conv2d(narrow, each, 1), nn.ReLU(True))
        self.three = nn.Sequential(nn.Conv2d(narrow, each, 3, padding=1), nn.ReLU(True))

    def forward(self, x: Tensor) -> Tensor:
        """Twice `each` channels."""
        x = self.narrow(x)
        return torch.cat([self.one(x), self.three(x)], 1)


FIRES = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))


def squeezenet(version: str) -> nn.Module:
    """SqueezeNet "1_0", or "1_1" that pools sooner."""
    first, size, pooled_before = (96, 7, (0, 3, 7)) if version == "1_0" else (64, 3, (0, 2, 4))
    parts: list[nn.Module] = [nn.Conv2d(3, first, size, 2), nn.ReLU(True)]
    width_in = first
    for k, (narrow, each) in enumerate(FIRES):
        if k in pooled_before:
            parts.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        parts.append(Fire(width_in, narrow, each))
        width_in = 2 * each
    last = [nn.Dropout(), nn.Conv2d(512, 1000, 1), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, *last)


class Shuffled(nn.Module):
    """Half of the channels pass by, or with a stride both halves are worked on; then the halves are interleaved."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        half = width // 2
        self.by_side: nn.Module | None = None
        if stride > 1:
            self.by_side = nn.Sequential(
                *conv_norm(width_in, width_in, 3, stride, groups=width_in, act=None), *conv_norm(width_in, half)
            )
        n_in = width_in if stride > 1 else half
        self.path = nn.Sequential(
            *conv_norm(n_in, half), *conv_norm(half, half, 3, stride, groups=half, act=None), *conv_norm(half, half)
        )

    def forward(self, x: Tensor) -> Tensor:
        """`width` channels, and the size divided by the stride."""
        if self.by_side is None:
            kept, worked = x.chunk(2, dim=1)
            joined = torch.cat((kept, self.path(worked)), 1)
        else:
            joined = torch.cat((self.by_side(x), self.path(x)), 1)
        batch, width, height, across = joined.shape
        return joined.view(batch, 2, width // 2, height, across).transpose(1, 2).contiguous().view(joined.shape)


def shufflenet_v2(widths: tuple[int, int, int], last: int = 1024) -> nn.Module:
    """ShuffleNet V2 with these widths of its three stages."""
    parts: list[nn.Module] = [*conv_norm(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    width_in = 24
    for n, width in zip((4, 8, 4), widths, strict=True):
        for k in range(n):
            parts.append(Shuffled(width_in, width, 1 if k else 2))
            width_in = width
    return nn.Sequential(*parts, *conv_norm(width_in, last), Head(last))


def _squeezenet(version: str) -> Workload:
    return workload(f"squeezenet{version}", "SqueezeNet", IANDOLA, lambda setting: squeezenet(version), 512)


SMALL_NETS = (
    _squeezenet("1_0"),
    _squeezenet("1_1"),
    workload(
        "shufflenet_v2_x1_0",
        "ShuffleNet V2",
        MA,
        lambda setting: shufflenet_v2((116, 232, 464)),
        512,
    ),
)
