"""Exercise 9.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

N_STEPS, N_ROWS, N_INPUTS, N_KINDS = 40, 128, 24, 6
RATE, UNLABELLED_SHARE = 0.5, 0.25
SEED = 9
TENSORS = "tensors"  # what stands in the place of a log whose numbers were left on the card
Numbers = npt.NDArray[np.float64]
Sizes = tuple[int, int, int]
"""Rows of a batch, inputs, kinds."""


@lru_cache(maxsize=4)
def rows_of_data(seed: int = SEED, sizes: Sizes = (N_ROWS, N_INPUTS, N_KINDS)) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Rows (steps, rows, inputs) and their kinds (steps, rows), -1 without a label; the same at every call."""
    n_rows, n_inputs, n_kinds = sizes
    draws = np.random.default_rng(seed)
    x = np.round(draws.normal(size=(N_STEPS, n_rows, n_inputs)), 3)
    kinds = (x @ draws.normal(size=(n_inputs, n_kinds))).argmax(-1)
    return x, np.where(draws.random(kinds.shape) < UNLABELLED_SHARE, -1, kinds)


def on_card(seed: int, n_rows: int, n_inputs: int, n_kinds: int) -> list[Any]:
    """Rows and kinds, batch by batch, as tensors on the card."""
    import torch

    xs, ys = rows_of_data(seed, (n_rows, n_inputs, n_kinds))
    pairs = zip(xs, ys, strict=True)
    return [each.to("simgpu") for x, y in pairs for each in (torch.tensor(x, dtype=torch.float32), torch.tensor(y))]
