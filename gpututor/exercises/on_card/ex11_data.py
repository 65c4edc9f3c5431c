"""Exercise 11.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

N_STEPS, N_WEIGHTS, N_SPIKES = 24, 4096, 3
FIRST_SCALE = 2.0**16
RATE = 1000.0
SPIKE = 64.0  # overflows a half at any scale from 1,024 on
SEED = 11
Numbers = npt.NDArray[np.float32]


@lru_cache(maxsize=4)
def gradients(seed: int = SEED, n_weights: int = N_WEIGHTS, n_spikes: int = N_SPIKES) -> Numbers:
    """True gradients (steps, weights): some millionths, and in some steps one that is far too large."""
    dice = np.random.default_rng(seed)
    made = dice.uniform(0.5, 4.0, size=(N_STEPS, n_weights)) * dice.choice((-1e-6, 1e-6), size=(N_STEPS, n_weights))
    for step in dice.choice(N_STEPS, size=n_spikes, replace=False):
        made[step, dice.integers(n_weights)] = SPIKE
    gradients_of_steps: Numbers = made.astype(np.float32)
    return gradients_of_steps


def on_card(seed: int, n_weights: int, n_spikes: int) -> list[Any]:
    """The gradients of each step as tensors on the card."""
    import torch

    return [torch.tensor(each).to("simgpu") for each in gradients(seed, n_weights, n_spikes)]
