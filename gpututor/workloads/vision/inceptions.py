"""Inception V3: four branches in each block, for pictures of 299x299 pixels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gpututor.workloads.vision.layers import Head, conv_norm
from gpututor.workloads.vision.recipes import workload

F = nn.functional
Size = int | tuple[int, int]
Branch = Sequence[tuple[Size, int, int]]  # (filter, width, stride) of each convolution
WIDE, TALL = (1, 7), (7, 1)


def branch(width_in: int, sizes: Branch) -> nn.Sequential:
    """Convolutions one after the other; those with a stride aren't padded."""
    parts: list[nn.Module] = []
    for size, width, stride in sizes:
        parts.append(conv_norm(width_in, width, size, stride, padding=0 if stride > 1 else None))
        width_in = width
    return nn.Sequential(*parts)


class Fork(nn.Module):
    """A 1x3 and a 3x1 convolution of the same input, joined."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.across, self.down = conv_norm(width, width, (1, 3)), conv_norm(width, width, (3, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Twice the channels."""
        return torch.cat([self.across(x), self.down(x)], 1)


class Mixed(nn.Module):
    """Branches side by side, joined with one that pools: the mean and a convolution, or the greatest without one."""

    def __init__(self, width_in: int, branches: Sequence[nn.Module], pooled: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.pooled = conv_norm(width_in, pooled) if pooled else None

    def forward(self, x: Tensor) -> Tensor:
        """All branches' channels."""
        seen = [one(x) for one in self.branches]
        if self.pooled is not None:
            seen.append(self.pooled(F.avg_pool2d(x, 3, 1, 1)))
        else:
            seen.append(F.max_pool2d(x, 3, 2))
        return torch.cat(seen, 1)


def _mixed(width_in: int, *branches: Branch, pooled: int = 0) -> Mixed:
    return Mixed(width_in, [branch(width_in, sizes) for sizes in branches], pooled)


def _five(width_in: int, pooled: int) -> Mixed:
    thrice = [(1, 64, 1), (3, 96, 1), (3, 96, 1)]
    return _mixed(width_in, [(1, 64, 1)], [(1, 48, 1), (5, 64, 1)], thrice, pooled=pooled)


def _seven(inner: int) -> Mixed:
    once: Branch = [(1, inner, 1), (WIDE, inner, 1), (TALL, 192, 1)]
    twice: Branch = [(1, inner, 1), (TALL, inner, 1), (WIDE, inner, 1), (TALL, inner, 1), (WIDE, 192, 1)]
    return _mixed(768, [(1, 192, 1)], once, twice, pooled=192)


def _nine(width_in: int) -> Mixed:
    forked = [branch(width_in, sizes).append(Fork(384)) for sizes in ([(1, 384, 1)], [(1, 448, 1), (3, 384, 1)])]
    return Mixed(width_in, [branch(width_in, [(1, 320, 1)]), *forked], 192)


def inception_v3() -> nn.Module:
    """Inception V3 without its auxiliary classifier.

    Source: Szegedy et al. 2015, arXiv 1512.00567, table 1 and figures 5 to 7 and 10; timm/models/inception_v3.py.
    """
    smaller = _mixed(288, [(3, 384, 2)], [(1, 64, 1), (3, 96, 1), (3, 96, 2)])
    smallest = _mixed(768, [(1, 192, 1), (3, 320, 2)], [(1, 192, 1), (WIDE, 192, 1), (TALL, 192, 1), (3, 192, 2)])
    return nn.Sequential(
        conv_norm(3, 32, 3, 2, padding=0),
        conv_norm(32, 32, 3, padding=0),
        conv_norm(32, 64, 3),
        nn.MaxPool2d(3, 2),
        conv_norm(64, 80),
        conv_norm(80, 192, 3, padding=0),
        nn.MaxPool2d(3, 2),
        *(_five(192, 32), _five(256, 64), _five(288, 64)),
        smaller,
        *(_seven(inner) for inner in (128, 160, 160, 192)),
        smallest,
        *(_nine(1280), _nine(2048)),
        Head(2048),
    )


INCEPTION_V3 = workload(
    "inception_v3",
    "Inception V3",
    "Szegedy et al. 2015, arXiv 1512.00567; timm/models/inception_v3.py",
    lambda setting: inception_v3(),
    128,
    {"side": 299},
)
