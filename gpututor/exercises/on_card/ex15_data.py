"""Exercise 15.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

N_SAMPLES, N_NUMBERS, N_HIDDEN, N_KINDS = 130, 32, 64, 10
DROPPED = 0.5
SEED = 15
Numbers = npt.NDArray[Any]


@lru_cache(maxsize=4)
def arrays(seed: int = SEED, n_samples: int = N_SAMPLES) -> tuple[Numbers, ...]:
    """Weights and biases of two layers, samples (n, numbers), and their kinds (n,) as whole numbers."""
    dice = np.random.default_rng(seed)
    sizes = ((N_HIDDEN, N_NUMBERS), (N_HIDDEN,), (N_KINDS, N_HIDDEN), (N_KINDS,), (n_samples, N_NUMBERS))
    made = [dice.normal(size=size, scale=0.4).astype(np.float32) for size in sizes]
    return (*made, dice.integers(0, N_KINDS, size=n_samples))


def on_card(seed: int, n_samples: int) -> list[Any]:
    """The same as tensors on the card."""
    import torch

    return [torch.tensor(each).to("simgpu") for each in arrays(seed, n_samples)]
