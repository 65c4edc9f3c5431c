"""ResNet-20 for pictures of 32x32, as the first experiments with mixed precision often train."""

from __future__ import annotations

from torch import Tensor, nn

from gpututor.workloads.vision.layers import conv_norm
from gpututor.workloads.vision.resnets import Basic

WIDTHS = (16, 32, 64)
BLOCKS = 3  # in each width
KINDS = 10  # CIFAR-10's


class ResNet20(nn.Module):
    """Nineteen 3x3 convolutions and a linear layer.

    Where the width doubles, the sum passes through a 1x1 convolution; He et al. fill up with zeros.
    Source: He et al. 2015, arXiv 1512.03385, section 4.2: 0.27 million parameters.
    """

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = [conv_norm(3, WIDTHS[0], 3)]
        width_in = WIDTHS[0]
        for stage, width in enumerate(WIDTHS):
            for k in range(BLOCKS):
                parts.append(Basic(width_in, width, 2 if stage and not k else 1))
                width_in = width
        self.body = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width_in, KINDS))

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, kinds) of `pictures` (batch, 3, 32, 32)."""
        scores: Tensor = self.body(pictures)
        return scores
