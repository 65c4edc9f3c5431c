"""Stacks of plain convolutions: AlexNet and VGG."""

from __future__ import annotations

from torch import Tensor, nn

from gpututor.workloads.setting import Workload
from gpututor.workloads.vision.layers import Head
from gpututor.workloads.vision.recipes import workload

# Simonyan and Zisserman 2014, arXiv 1409.1556, table 1: 3x3 convolutions in each of five stages.
DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)


class Vgg(nn.Module):
    """VGG with its wide layers as convolutions, as in timm: a 7x7 one and a 1x1 one of 4096 channels.

    Source: timm/models/vgg.py (its dropout is off in benchmark.py).
    """

    def __init__(self, layers: int, norms: bool) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        width_in = 3
        for n, width in zip(DEPTHS[layers], WIDTHS, strict=True):
            for _ in range(n):
                parts.append(nn.Conv2d(width_in, width, 3, padding=1))
                parts += [nn.BatchNorm2d(width), nn.ReLU(True)] if norms else [nn.ReLU(True)]
                width_in = width
            parts.append(nn.MaxPool2d(2, 2))
        self.body = nn.Sequential(*parts)
        self.wide = nn.Sequential(nn.Conv2d(512, 4096, 7), nn.ReLU(True), nn.Conv2d(4096, 4096, 1), nn.ReLU(True))
        self.head = Head(4096)

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        scores: Tensor = self.head(self.wide(self.body(pictures)))
        return scores


def alexnet() -> nn.Module:
    """AlexNet as torchvision has it: the net for one card.

    Source: Krizhevsky 2014, arXiv 1404.5997; torchvision/models/alexnet.py.
    """
    sizes = ((3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False), (384, 256, 3, 1, 1, False))
    parts: list[nn.Module] = []
    for n_in, n_out, size, stride, padding, pooled in (*sizes, (256, 256, 3, 1, 1, True)):
        parts += [nn.Conv2d(n_in, n_out, size, stride, padding), nn.ReLU(True)]
        parts += [nn.MaxPool2d(3, 2)] if pooled else []
    wide: list[nn.Module] = []
    for n_in in (256 * 6 * 6, 4096):
        wide += [nn.Dropout(), nn.Linear(n_in, 4096), nn.ReLU(True)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(6), nn.Flatten(), *wide, nn.Linear(4096, 1000))


def _vgg(layers: int, norms: bool) -> Workload:
    what = f"VGG-{layers}{' with batch norm' if norms else ''}"
    source = "Simonyan and Zisserman 2014, arXiv 1409.1556, table 1; timm/models/vgg.py"
    return workload(f"vgg{layers}{'_bn' if norms else ''}", what, source, lambda setting: Vgg(layers, norms), 128)


VGGS = tuple(_vgg(layers, norms) for layers in DEPTHS for norms in (False, True))
ALEXNET = workload("alexnet", "AlexNet", "Krizhevsky 2014, arXiv 1404.5997", lambda setting: alexnet(), 512)
