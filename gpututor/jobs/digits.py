"""Real pictures that come with the course: digits that people wrote by hand, scanned, 8 by 8 points each.

The test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning
Repository, CC BY 4.0): 1,797 digits by 13 writers. Each point counts the dark ones among 16 of the scan.
"""

from __future__ import annotations

import gzip
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from gpututor.paths import data_dir

FILE = "digits.csv.gz"
KINDS, SIDE, DARKEST = 10, 8, 16.0
N_LEARNED = 1297  # the first ones; the other 500 are never learned from


@lru_cache(maxsize=1)
def digits() -> tuple[Tensor, Tensor]:
    """All pictures (1797, 1, 8, 8) with values from 0 to 1, in the file's order, and which digit each is, on the CPU.

    >>> pictures, kinds = digits()
    >>> tuple(pictures.shape), int(kinds.max())
    ((1797, 1, 8, 8), 9)
    """
    with gzip.open(data_dir() / FILE, "rt", encoding="ascii") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    pictures = torch.from_numpy(table[:, :-1].copy()).view(-1, 1, SIDE, SIDE) / DARKEST
    return pictures, torch.from_numpy(table[:, -1].astype(np.int64))


def to_learn() -> tuple[Tensor, Tensor]:
    """The pictures that networks learn from."""
    pictures, kinds = digits()
    return pictures[:N_LEARNED], kinds[:N_LEARNED]


def unseen() -> tuple[Tensor, Tensor]:
    """The pictures that they are asked about afterwards."""
    pictures, kinds = digits()
    return pictures[N_LEARNED:], kinds[N_LEARNED:]
