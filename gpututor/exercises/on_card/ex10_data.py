"""Exercise 10.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

N_BATCHES, N_ROWS, N_INPUTS, RATE = 24, 6, 4, 0.02
SEED = 10
Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=4)
def rows_of_data(seed: int = SEED, n_batches: int = N_BATCHES, n_inputs: int = N_INPUTS) -> tuple[Numbers, Numbers]:
    """Inputs (batches, rows, inputs) and targets (batches, rows)."""
    dice = np.random.default_rng(seed)
    x = np.round(dice.normal(size=(n_batches, N_ROWS, n_inputs)), 3)
    if n_inputs == N_INPUTS and seed == SEED:
        wanted = np.array([1.0, -2.0, 0.5, 0.0])
    else:
        x, wanted = x * (N_INPUTS / n_inputs) ** 0.5, np.round(dice.normal(size=n_inputs), 1)
    return x, np.round(x @ wanted + 0.3 * dice.normal(size=(n_batches, N_ROWS)), 3)


def on_card(seed: int, n_batches: int, n_inputs: int) -> list[Any]:
    """Inputs and targets, batch by batch, as tensors on the card."""
    import torch

    def tensor(values: Numbers) -> Any:
        return torch.tensor(values, dtype=torch.float32)

    pairs = zip(*rows_of_data(seed, n_batches, n_inputs), strict=True)
    return [each.to("simgpu") for x, y in pairs for each in (tensor(x), tensor(y).view(-1, 1))]
