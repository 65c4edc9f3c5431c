"""Exercise 12.2's inputs, the same in the judge and in the learner's process. No answer follows from them alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

N_TENSORS, N_UPDATES, RATE, MOMENTUM = 240, 3, 0.1, 0.9
Numbers = npt.NDArray[np.float64]


def sizes(n_tensors: int = N_TENSORS) -> list[int]:
    """How many numbers each tensor holds: two to nine."""
    return [2 + k * k % 8 for k in range(n_tensors)]


def numbers(n_tensors: int = N_TENSORS, seed: int = 12) -> tuple[Numbers, Numbers]:
    """The parameters (all of them, one tensor's after the other's), and the gradients of each update."""
    dice = np.random.default_rng(seed)
    n = sum(sizes(n_tensors))
    return np.round(dice.normal(size=n), 3), np.round(dice.normal(size=(N_UPDATES, n)), 3)
