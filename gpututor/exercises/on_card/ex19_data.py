"""Exercise 19.2's sentences, the same in the judge and on the card. Which are held out is the judge's secret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpututor.jobs.corpus import draw
from gpututor.jobs.numbering import Rows, numbered, rows

HIDDEN = 64  # a quarter of the tutorial's, so that a training takes seconds on a laptop
N_TRAINED, N_UNSEEN = 2_000, 1_000  # sentences to train on, and those among which some are held out
SEED = 19


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences for one seed, and the sizes of both tables of words."""

    trained: Rows
    unseen: Rows
    n_french: int
    n_english: int


@lru_cache(maxsize=2)
def text(seed: int = SEED) -> Text:
    """The sentences of a seed: another one has others, and numbers its words otherwise."""
    pairs = draw(seed, N_TRAINED + N_UNSEEN)
    french, english = numbered(pair.french for pair in pairs), numbered(pair.english for pair in pairs)
    trained, unseen = (rows(part, french, english) for part in (pairs[:N_TRAINED], pairs[N_TRAINED:]))
    return Text(trained, unseen, len(french) + 2, len(english) + 2)


def on_card(seed: int = SEED) -> list[Any]:
    """The sentences to train on as tensors (sentences, places) on the card: French, then English."""
    import torch

    trained = text(seed).trained
    return [torch.from_numpy(each.copy()).to("simgpu") for each in (trained.french, trained.english)]
