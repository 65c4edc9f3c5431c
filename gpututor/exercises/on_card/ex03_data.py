"""Exercise 3.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

import math
import random
from typing import Any

N_ROWS, N_INPUTS = 32, 5
RATE = 0.1


def rows_of_data(seed: int | None = None, n_inputs: int = N_INPUTS) -> tuple[list[list[float]], list[float]]:
    """Inputs and targets in plain numbers: drawn with a seed, smooth without one."""
    if seed is None:
        x = [[math.sin(1.7 * r + 0.9 * c) for c in range(n_inputs)] for r in range(N_ROWS)]
        return x, [math.cos(0.6 * r) for r in range(N_ROWS)]
    draw = random.Random(seed)
    x = [[round(draw.uniform(-1, 1), 3) for _ in range(n_inputs)] for _ in range(N_ROWS)]
    return x, [round(draw.uniform(-1, 1), 3) for _ in range(N_ROWS)]


def on_card(seed: int | None, n_inputs: int) -> list[Any]:
    """Inputs and targets as tensors on the card."""
    import torch

    x, y = rows_of_data(seed, n_inputs)
    return [torch.tensor(x).to("simgpu"), torch.tensor(y).view(-1, 1).to("simgpu")]
