"""Exercise 10.2's inputs, the same in the judge and in the learner's process. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

N_BATCHES, N_ROWS, N_INPUTS, RATE = 24, 6, 4, 0.02
Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=1)
def rows_of_data() -> tuple[Numbers, Numbers]:
    """Inputs (batches, rows, inputs) and targets (batches, rows)."""
    dice = np.random.default_rng(10)
    x = np.round(dice.normal(size=(N_BATCHES, N_ROWS, N_INPUTS)), 3)
    return x, np.round(x @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * dice.normal(size=(N_BATCHES, N_ROWS)), 3)
