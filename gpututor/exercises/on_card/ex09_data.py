"""Exercise 9.2's inputs, the same in the judge and in the learner's process. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

N_STEPS, N_ROWS, N_INPUTS, N_KINDS = 40, 128, 24, 6
RATE, UNLABELLED_SHARE = 0.5, 0.25
TENSORS = "tensors"  # what stands in the place of a log whose numbers were left on the card
Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=1)
def rows_of_data() -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Rows (steps, rows, inputs) and their kinds (steps, rows), -1 without a label; the same at every call."""
    draws = np.random.default_rng(9)
    x = np.round(draws.normal(size=(N_STEPS, N_ROWS, N_INPUTS)), 3)
    kinds = (x @ draws.normal(size=(N_INPUTS, N_KINDS))).argmax(-1)
    return x, np.where(draws.random(kinds.shape) < UNLABELLED_SHARE, -1, kinds)
