"""What many picture networks share: a convolution with its norm, squeeze and excitation, rounding of widths."""

from __future__ import annotations

from torch import Tensor, nn


def conv_norm(
    n_in: int,
    n_out: int,
    size: int | tuple[int, int] = 1,
    stride: int = 1,
    *,
    groups: int = 1,
    act: type[nn.Module] | None = nn.ReLU,
    padding: int | tuple[int, int] | None = None,
) -> nn.Sequential:
    """A convolution without bias, batch norm and, if any, an activation in place; padded to keep the size."""
    if padding is None:
        padding = size // 2 if isinstance(size, int) else (size[0] // 2, size[1] // 2)
    parts: list[nn.Module] = [
        nn.Conv2d(n_in, n_out, size, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(n_out),
    ]
    if act is not None:
        parts.append(act(inplace=True))
    return nn.Sequential(*parts)


def rounded(width: float, divisor: int = 8, least_share: float = 0.9) -> int:
    """The multiple of `divisor` next to `width`, one more where that would lose too much.

    Source: Sandler et al. 2018, arXiv 1801.04381, as TensorFlow's slim/nets/mobilenet computes it.
    """
    near = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return near + divisor if near < least_share * width else near


class SqueezeExcite(nn.Module):
    """Channels weighed by what the whole picture holds, with 1x1 convolutions, as timm writes it.

    Source: Hu et al. 2017, arXiv 1709.01507; timm/layers/squeeze_excite.py.
    """

    def __init__(
        self, width: int, squeezed: int, act: type[nn.Module] = nn.ReLU, gate: type[nn.Module] = nn.Sigmoid
    ) -> None:
        super().__init__()
        self.reduce, self.act = nn.Conv2d(width, squeezed, 1), act(inplace=True)
        self.expand, self.gate = nn.Conv2d(squeezed, width, 1), gate()

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        weighed: Tensor = x * self.gate(self.expand(self.act(self.reduce(x.mean((2, 3), keepdim=True)))))
        return weighed


class SqueezeExciteLinear(nn.Module):
    """The same with linear layers, as NVIDIA writes it; gives the weights alone, (batch, width, 1, 1).

    Source: NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets, image_classification/models/common.py.
    """

    def __init__(self, width: int, squeezed: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.reduce, self.act, self.expand = nn.Linear(width, squeezed), act(inplace=True), nn.Linear(squeezed, width)

    def forward(self, x: Tensor) -> Tensor:
        """Weights between 0 and 1."""
        weights: Tensor = self.expand(self.act(self.reduce(x.mean((2, 3))))).sigmoid()
        return weights.unsqueeze(2).unsqueeze(3)


class Head(nn.Module):
    """The mean of each channel over the picture and a linear layer: timm's "fast" pooling."""

    def __init__(self, width: int, classes: int = 1000, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout, self.out = nn.Dropout(dropout), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (batch, classes)."""
        scores: Tensor = self.out(self.dropout(x.mean((2, 3))))
        return scores
