"""Exercise 5.2's inputs, the same in the judge and on the card. No answer follows from them alone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

BATCH, WIDTH = 3, 6
Numbers = npt.NDArray[np.float64]


@lru_cache(maxsize=16)
def drawn(
    n_gates: int, batch: int = BATCH, width: int = WIDTH, seed: int = 0
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Weights of the input and of the state (gates, width, width), a word and a state; the same at every call."""
    draws = np.random.default_rng([seed, n_gates] if seed else n_gates)
    shapes = ((n_gates, width, width), (n_gates, width, width), (batch, width), (batch, width))
    w_in, w_rec, word, state = (np.round(draws.normal(size=shape), 3) for shape in shapes)
    return w_in, w_rec, word, state


def on_card(n_gates: int, batch: int, width: int, seed: int) -> list[Any]:
    """The matrices of the input one by one, those of the state, a word and a state, as tensors on the card."""
    import torch

    w_in, w_rec, word, state = drawn(n_gates, batch, width, seed)
    return [torch.tensor(each, dtype=torch.float32).to("simgpu") for each in (*w_in, *w_rec, word, state)]
