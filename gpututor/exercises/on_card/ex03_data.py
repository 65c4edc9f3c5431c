"""Exercise 3.2's inputs, the same in the judge and in the learner's process. No answer follows from them alone."""

from __future__ import annotations

import math

N_ROWS, N_INPUTS = 32, 5
RATE = 0.1


def rows_of_data() -> tuple[list[list[float]], list[float]]:
    """Inputs and targets in plain numbers."""
    x = [[math.sin(1.7 * r + 0.9 * c) for c in range(N_INPUTS)] for r in range(N_ROWS)]
    return x, [math.cos(0.6 * r) for r in range(N_ROWS)]
