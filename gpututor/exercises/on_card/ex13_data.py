"""Exercise 13.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

SEED, N_INSIDE, N_KEPT = 13, 32, 16
BATCH, N_IN, N_OUT, SIDE, FILTER = 2, 8, 8, 10, 3
Numbers = npt.NDArray[np.float32]


@lru_cache(maxsize=4)
def arrays(seed: int = SEED, n_inside: int = N_INSIDE) -> tuple[Numbers, Numbers, Numbers]:
    """Pictures, and the weights of two 3x3 convolutions with `n_inside` channels between them."""
    dice = np.random.default_rng(seed)
    pictures = dice.normal(size=(BATCH, N_IN, SIDE, SIDE)).astype(np.float32)
    strength = dice.uniform(0.2, 1.0, size=(n_inside, 1, 1, 1))
    first = (strength * dice.normal(size=(n_inside, N_IN, FILTER, FILTER))).astype(np.float32)
    second = dice.normal(size=(N_OUT, n_inside, FILTER, FILTER)).astype(np.float32)
    return pictures, first, second


def on_card(seed: int, n_inside: int) -> list[Any]:
    """Pictures and weights as tensors on the card."""
    import torch

    return [torch.tensor(each).to("simgpu") for each in arrays(seed, n_inside)]
