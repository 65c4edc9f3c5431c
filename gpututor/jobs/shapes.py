"""A small data set that needs no download: ten kinds of shapes, drawn with random place, size and light, and noise.

Hard enough that a small network has to learn for some epochs, small enough that a laptop's processor does it in
seconds. Drawn with a generator of its own, so the same numbers come out everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

KINDS = ("disc", "ring", "square", "frame", "plus", "cross", "bar", "pole", "triangle", "pair")
NOISE = 0.3  # standard deviation, where a shape's own light is 0.5 to 1 above its ground

Rule = Callable[[Tensor, Tensor], Tensor]

# Where each shape is, from coordinates relative to its middle in units of its size: |u|, |v| <= 1 is its box.
_RULES: tuple[Rule, ...] = (
    lambda u, v: u * u + v * v <= 1,
    lambda u, v: (u * u + v * v <= 1) & (u * u + v * v >= 0.36),
    lambda u, v: (u.abs() <= 0.9) & (v.abs() <= 0.9),
    lambda u, v: (torch.maximum(u.abs(), v.abs()) <= 0.95) & (torch.maximum(u.abs(), v.abs()) >= 0.6),
    lambda u, v: (torch.minimum(u.abs(), v.abs()) <= 0.3) & (torch.maximum(u.abs(), v.abs()) <= 1),
    lambda u, v: ((u.abs() - v.abs()).abs() <= 0.35) & (torch.maximum(u.abs(), v.abs()) <= 1),
    lambda u, v: (v.abs() <= 0.35) & (u.abs() <= 1),
    lambda u, v: (u.abs() <= 0.35) & (v.abs() <= 1),
    lambda u, v: (v >= -0.8) & (v <= 0.9) & (u.abs() <= (v + 0.8) / 1.7),
    lambda u, v: ((u.abs() - 0.65) ** 2 + v * v) <= 0.14,
)


def draw(n: int, seed: int = 0, side: int = 16) -> tuple[Tensor, Tensor]:
    """`n` pictures (n, 1, side, side) in fp32, of mean 0 and deviation 1, and each one's kind (n,), on the CPU.

    >>> pictures, kinds = draw(4, side=12)
    >>> tuple(pictures.shape), pictures.dtype, tuple(kinds.shape), int(kinds.max()) < len(KINDS)
    ((4, 1, 12, 12), torch.float32, (4,), True)
    """
    dice = torch.Generator().manual_seed(seed)

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(n, 1, 1, generator=dice)

    kinds = torch.randint(0, len(KINDS), (n,), generator=dice)
    size = between(0.22, 0.4) * side
    x, y = between(0.35, 0.65) * side, between(0.35, 0.65) * side
    light = between(0.5, 1.0)
    at = torch.arange(side) + 0.5
    u, v = (at.view(1, 1, side) - x) / size, (at.view(1, side, 1) - y) / size
    u, v = u.expand(n, side, side), v.expand(n, side, side)
    pictures = torch.zeros(n, side, side)
    for kind, rule in enumerate(_RULES):
        chosen = kinds == kind
        pictures[chosen] = rule(u[chosen], v[chosen]).float() * light[chosen]
    pictures += NOISE * torch.randn(n, side, side, generator=dice)
    pictures -= pictures.mean()
    return (pictures / pictures.std()).unsqueeze(1), kinds


class SmallNet(nn.Module):
    """Three convolutions and a linear layer: `width` channels, then twice and twice as many."""

    def __init__(self, width: int = 16, kinds: int = len(KINDS)) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * width, kinds),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores (batch, kinds)."""
        scores: Tensor = self.body(pictures)
        return scores
