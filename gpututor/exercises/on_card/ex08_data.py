"""Exercise 8.2's inputs, the same in the judge, in the learner's process and on the card."""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH, RATE = 128, 1e-3


def pictures_of(n_batches: int, batch: int, side: int, seed: int) -> list[Any]:
    """Batches of bytes (batch, 3, side, side) on the host."""
    dice = np.random.default_rng(seed)
    return [dice.integers(0, 256, (batch, 3, side, side), dtype=np.uint8) for _ in range(n_batches)]


def weights_of(side: int, seed: int) -> Any:
    """Weights (numbers of a picture, `WIDTH`) in fp32."""
    dice = np.random.default_rng(seed)
    return dice.standard_normal((3 * side * side, WIDTH), dtype=np.float32) / side


def on_card(side: int, seed: int) -> list[Any]:
    """The weights as a tensor on the card."""
    import torch

    return [torch.from_numpy(weights_of(side, seed)).to("simgpu")]
