"""Words as numbers, without torch: the marks, a table of words, and sentences as rows of one width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpututor.jobs.corpus import Pair, words_of
from gpututor.jobs.tutorial import MAX_LENGTH

START, END = 0, 1

Numbers = npt.NDArray[np.int64]


def numbered(sentences: Iterable[str]) -> dict[str, int]:
    """Each word's number, in order of first appearance; 0 and 1 are the start and the end mark."""
    number: dict[str, int] = {}
    for sentence in sentences:
        for word in words_of(sentence):
            number.setdefault(word, len(number) + 2)
    return number


@dataclass(frozen=True, slots=True)
class Rows:
    """Sentence pairs as word numbers (sentences, places), each ending in the end mark and filled up with it.

    `n_french` and `n_english` count a sentence's words, end mark included.
    """

    french: Numbers
    english: Numbers
    n_french: Numbers
    n_english: Numbers

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.french)


def rows(pairs: Sequence[Pair], french: Mapping[str, int], english: Mapping[str, int]) -> Rows:
    """The pairs as rows, with these tables of words."""
    read = [[french[word] for word in words_of(pair.french)] for pair in pairs]
    written = [[english[word] for word in words_of(pair.english)] for pair in pairs]
    lengths = (np.array([len(each) + 1 for each in side], dtype=np.int64) for side in (read, written))
    return Rows(_filled(read), _filled(written), *lengths)


def _filled(sentences: Sequence[Sequence[int]]) -> Numbers:
    table = np.full((len(sentences), MAX_LENGTH), END, dtype=np.int64)
    for row, sentence in zip(table, sentences, strict=True):
        row[: len(sentence)] = sentence
    return table
