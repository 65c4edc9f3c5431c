"""Two small networks that read handwritten digits: one of ordinary convolutions, one of inverted bottlenecks.

They have as many blocks, of the same width, so that what differs is the kind of block alone.
"""

from __future__ import annotations

from torch import Tensor, nn

from gpututor.jobs.digits import KINDS
from gpututor.workloads.vision.layers import conv_norm

WIDTHS = (16, 32)  # at 8 by 8 points, and at 4 by 4
BLOCKS = 2  # in each width
WIDER = 2  # an inverted bottleneck's inner width over its own


class Plain(nn.Module):
    """Two 3x3 convolutions around a sum; `inner` channels lie between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.path = nn.Sequential(*conv_norm(width, inner, 3), *conv_norm(inner, width, 3, act=None))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        seen: Tensor = (self.path(x) + x).relu()
        return seen


class Inverted(nn.Module):
    """A 1x1 convolution that widens, a depthwise 3x3 one, a 1x1 one that narrows, a sum, as in MobileNet V2.

    Source: Sandler et al. 2018, arXiv 1801.04381, figure 3.
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            *conv_norm(width, inner, act=nn.ReLU6),
            *conv_norm(inner, inner, 3, groups=inner, act=nn.ReLU6),
            *conv_norm(inner, width, act=None),
        )

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        seen: Tensor = self.path(x) + x
        return seen


def reader(*, inverted: bool = False, inner_share: float = 1.0) -> nn.Sequential:
    """A network for pictures (batch, 1, 8, 8); `inner_share` is how much of a block's usual inner width it has."""
    parts: list[nn.Module] = [conv_norm(1, WIDTHS[0], 3)]
    for stage, width in enumerate(WIDTHS):
        if stage:
            parts.append(conv_norm(WIDTHS[stage - 1], width, 3, 2))
        usual = WIDER * width if inverted else width
        parts += [(Inverted if inverted else Plain)(width, round(inner_share * usual)) for _ in range(BLOCKS)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], KINDS))


def multiplications(net: nn.Module, picture: Tensor) -> int:
    """Multiply-adds of convolutions and linear layers for these pictures, counted while they pass through."""
    total = 0

    def count(layer: nn.Module, _given: object, made: Tensor) -> None:
        nonlocal total
        weight = layer.weight
        total += made.numel() // weight.shape[0] * weight.numel() if isinstance(weight, Tensor) else 0

    hooks = [each.register_forward_hook(count) for each in net.modules() if isinstance(each, nn.Conv2d | nn.Linear)]
    net(picture)
    for hook in hooks:
        hook.remove()
    return total
