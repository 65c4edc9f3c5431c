"""How long texts are: drawn as unevenly as in a public benchmark. No torch is needed."""

from __future__ import annotations

import random
from collections.abc import Sequence

# In tokens. Source: huggingface/transformers pull request 47340, its benchmark: lognormvariate(5, 1), from 16 to 1,024.
MU, SIGMA, LEAST, MOST = 5.0, 1.0, 16, 1024


def drawn(n: int, seed: int = 0, shorter: int = 1) -> list[int]:
    """Lengths of `n` texts, divided by `shorter`.

    >>> min(drawn(1000)), max(drawn(1000)), max(drawn(1000, shorter=8))
    (16, 1024, 128)
    """
    chance = random.Random(seed)
    return [round(min(MOST, max(LEAST, chance.lognormvariate(MU, SIGMA))) / shorter) for _ in range(n)]


def rounded_up(length: int, multiple: int) -> int:
    """The next multiple.

    >>> rounded_up(100, 128), rounded_up(128, 128), rounded_up(100, 1)
    (128, 128, 100)
    """
    return -(-length // multiple) * multiple


def padding_share(batches: Sequence[Sequence[int]]) -> float:
    """The part of all positions that is padding, where each batch of lengths is filled up to its longest.

    >>> padding_share([[4, 1], [2, 2]])        # 12 positions, 9 of them words
    0.25
    """
    whole = sum(len(batch) * max(batch) for batch in batches)
    return 1 - sum(map(sum, batches)) / whole
