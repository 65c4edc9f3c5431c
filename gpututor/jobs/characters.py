"""A small network that guesses the next character of English text: an LSTM, as many first projects train.

Its text is running sentences of our own. Lines end with a whole word; what is left of them is filled up, and the
filling isn't learned.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn

from gpututor.jobs.corpus import draw

LENGTH, BATCH, WIDTH = 96, 16, 256
N_SENTENCES = 800
LEARNING_RATE, MOMENTUM = 1.0, 0.9
FILLING = "_"


@lru_cache(maxsize=1)
def text() -> str:
    """Running English text."""
    return " ".join(pair.english for pair in draw(seed=9, n_pairs=N_SENTENCES))


@lru_cache(maxsize=1)
def alphabet() -> str:
    """Every character that occurs; the filling is the first."""
    return FILLING + "".join(sorted(set(text())))


def line(start: int, length: int) -> str:
    """`length` characters of the text from `start` on; a word that is cut off at the end is filling instead.

    >>> line(0, 24).rstrip("_") in text() and len(line(0, 24))
    24
    """
    whole = text()
    cut = (whole + " " + whole)[start % len(whole) :][:length]
    kept, space, _ = cut.rpartition(" ")
    return (kept if space else cut).ljust(length, FILLING)


def batches(n: int, length: int = LENGTH, batch: int = BATCH) -> list[Tensor]:
    """`n` batches of `batch` lines, each a tensor (length + 1, batch) of places in the alphabet."""
    place = {character: k for k, character in enumerate(alphabet())}
    apart = len(text()) // (n * batch)
    lines = [[place[c] for c in line(k * apart, length + 1)] for k in range(n * batch)]
    return list(torch.tensor(lines).view(n, batch, length + 1).transpose(1, 2).contiguous())


class NextCharacter(nn.Module):
    """A table of characters, one LSTM layer and a product to all characters."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.table = nn.Embedding(len(alphabet()), width // 4)
        self.layer = nn.LSTM(width // 4, width)
        self.out = nn.Linear(width, len(alphabet()))

    def forward(self, characters: Tensor) -> Tensor:
        """Scores (length, batch, alphabet) of what comes after each of `characters`, (length, batch)."""
        scores: Tensor = self.out(self.layer(self.table(characters))[0])
        return scores
