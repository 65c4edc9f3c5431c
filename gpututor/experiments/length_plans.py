"""Which texts go into a batch together: as they come, by length, or as many as a budget of tokens allows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from enum import Enum

BATCH = 8  # texts; per_device_train_batch_size in the benchmark that the lengths are from
POOL = 20  # batches whose texts are sorted together; as in kyutai-labs/pocket-tts pull request 309

Plan = list[list[int]]
"""Batches of indices of texts, in the order in which they are trained on."""


class Way(Enum):
    """How texts become batches; the value is what a reader sees."""

    FIXED = "all to one length"
    SHUFFLED = "to the longest of the batch"
    BUCKETED = "neighbours in length together"
    TOKENS = "a budget of tokens"
    PACKED = "packed"

    @property
    def key(self) -> str:
        """Names its files."""
        return self.name.lower()


def plan(way: Way, lengths: Sequence[int], *, budget: int = 0, batch: int = BATCH, seed: int = 0) -> Plan:
    """Every text in one batch, of `batch` texts; `budget` bounds the positions of a batch in its stead, for that way.

    Fixed, shuffled and packed are the same batches, filled up differently. The others sort the texts of a pool by
    length, cut, and shuffle the batches, so that training doesn't go from short to long.
    """
    chance = random.Random(seed)
    order = list(range(len(lengths)))
    chance.shuffle(order)
    if way not in (Way.BUCKETED, Way.TOKENS):
        return [order[k : k + batch] for k in range(0, len(order), batch)]
    batches: Plan = []
    for first in range(0, len(order), POOL * batch):
        pool = sorted(order[first : first + POOL * batch], key=lambda i: lengths[i])
        if way is Way.TOKENS:
            batches += _within(budget, pool, lengths)
        else:
            batches += [pool[k : k + batch] for k in range(0, len(pool), batch)]
    chance.shuffle(batches)
    return batches


def _within(budget: int, pool: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    """Sorted texts in as few batches as have their longest times their number within the budget."""
    batch: list[int] = []
    for i in pool:  # each is the longest so far
        if batch and lengths[i] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(i)
    yield batch


def lengths_in(batches: Plan, lengths: Sequence[int]) -> list[list[int]]:
    """The lengths of each batch's texts."""
    return [[lengths[i] for i in batch] for batch in batches]


def dealt(n_ranks: int, batches: Plan, lengths: Sequence[int], *, together: bool) -> list[list[int]]:
    """Which batch each rank gets, step by step, as numbers of batches: as they come, or neighbours in length at once.

    Batches that make no whole step are left out.
    """
    order = list(range(len(batches)))
    if together:
        order.sort(key=lambda k: max(lengths[i] for i in batches[k]))
    n_steps = len(order) // n_ranks
    return [[order[step * n_ranks + rank] for step in range(n_steps)] for rank in range(n_ranks)]
