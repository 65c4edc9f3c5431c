"""What the harness of exercise 16.2 and its judge share: numbers, and how they are dealt to ranks and parts."""

from __future__ import annotations

import random

N_RANKS, N_PARTS, N_ROWS, N_INPUTS = 2, 4, 6, 5
RATE = 0.1
SEED = 16

Rows = tuple[list[list[float]], list[float]]


def dealt(seed: int = SEED) -> list[list[Rows]]:
    """Inputs and targets, by rank and part: `dealt()[rank][part]` is a pair of rows of inputs and their targets."""
    dice = random.Random(seed)

    def part() -> Rows:
        x = [[round(dice.gauss(0, 1), 3) for _ in range(N_INPUTS)] for _ in range(N_ROWS)]
        return x, [round(row[0] - 2 * row[1] + dice.gauss(0, 0.3), 3) for row in x]

    return [[part() for _ in range(N_PARTS)] for _ in range(N_RANKS)]
