"""The batches that GNMT trains on: WMT16 English-German, in buckets by length.

NVIDIA's sampler sorts pairs of up to 50 tokens into five buckets of ten by the longer side, draws each batch from one
bucket and pads both sides to the longest of the batch. With 128 pairs and more the longest nearly always has all
the bucket allows, so a bucket has one shape, whatever the batch.

Source: NVIDIA/DeepLearningExamples PyTorch/Translation/GNMT at 729963d: seq2seq/data/sampler.py (BucketingSampler),
seq2seq/data/dataset.py (lengths without the two marks of begin and end), train.py (50 tokens, 5 buckets, pinned).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Source and target tokens of one pair, by bucket, as the trainer counts them: the source with both marks, the target
# with one. Source: lambdal/deeplearning-benchmark at aa5addb, pytorch/results: the lines "TRAIN … Time … Tok/s …" of 41
# logs of one card give time times rate over batch, five values sharp to 0.1; all pairs together average 47.7.
TOKENS_PER_PAIR = (13.4, 27.2, 45.1, 62.9, 81.7)
LONGEST = (11, 21, 31, 41, 50)  # positions with both marks: 9 + 2, 19 + 2, …, and at most 50
# How often each bucket comes in a round: the same logs have 5, 24, 34, 25 and 13 of 100 batches. Six batches stand for
# them, the few of the shortest bucket counted to the next; 48.2 tokens a pair on average.
ROUND = (2, 1, 3, 2, 4, 1)


@dataclass(frozen=True, slots=True)
class Batch:
    """Token numbers (position, pair) of both sides, the lengths of the sources, and how many tokens count."""

    source: Tensor
    target: Tensor
    source_lengths: Tensor
    target_lengths: Tensor
    n_tokens: float


def batch_of(bucket: int, n_pairs: int) -> Batch:
    """A batch of the bucket in the host's memory; lengths fall evenly from the longest, as sorted batches do."""
    n_tokens = TOKENS_PER_PAIR[bucket] * n_pairs
    longest = LONGEST[bucket]
    mean = (TOKENS_PER_PAIR[bucket] + 1) / 2  # both sides alike: the logs give only their sum
    shortest = max(1.0, 2 * mean - longest)
    lengths = torch.linspace(longest, shortest, n_pairs).round().long()
    lengths[0] = longest
    return Batch(_tokens(longest, n_pairs), _tokens(longest, n_pairs), lengths, lengths.clone(), n_tokens)


def _tokens(n_positions: int, n_pairs: int) -> Tensor:
    """Token numbers of pinned memory, where this torch can pin."""
    made = torch.full((n_positions, n_pairs), 4, dtype=torch.int64)
    return made.pin_memory() if torch.accelerator.is_available() else made


def buckets_of(which: int) -> tuple[int, ...]:
    """The buckets of one step: a round of all for 0, else the single bucket `which`, from 1."""
    return ROUND if which == 0 else (which - 1,)
