"""A small network that takes the noise out of faint pictures, whose values are in volts: thousandths.

Targets that nobody has rescaled are common, and so is a loss that is a mean over every pixel of a batch. Both make
gradients small, which float32 doesn't mind.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from gpututor.jobs.shapes import draw

VOLTS = 0.002  # deviation of a clean picture's pixels
NOISE = 0.7  # of the noise's, where the clean picture's is 1
BATCH, WIDTH = 32, 12
LEARNING_RATE = 3e-3
NOTHING_LEARNED = VOLTS**2  # the mean squared error of a network that always says 0
N_PICTURES, N_HELD_OUT = 2048, 256


@lru_cache(maxsize=2)
def pairs(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """`n` noisy pictures (n, 1, 16, 16) as an amplifier gives them, and the same clean and in volts, on the CPU."""
    clean, _ = draw(n, seed)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(seed + 100))
    return clean + NOISE * noise, VOLTS * clean


class Denoiser(nn.Module):
    """Four convolutions."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, noisy: Tensor) -> Tensor:
        """Clean pictures in volts, of the same shape."""
        clean: Tensor = self.body(noisy)
        return clean
