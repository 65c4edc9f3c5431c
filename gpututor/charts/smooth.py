"""Smoothing of what jumps from step to step, such as a loss."""

from __future__ import annotations

from collections.abc import Sequence


def running_mean(values: Sequence[float], n: int) -> list[tuple[float, float]]:
    """Each value's number, from 1, and the mean of it and the up to `n` - 1 values before.

    >>> running_mean([4.0, 2.0, 6.0], 2)
    [(1, 4.0), (2, 3.0), (3, 4.0)]
    """
    tails = (values[max(0, k + 1 - n) : k + 1] for k in range(len(values)))
    return [(k, sum(tail) / len(tail)) for k, tail in enumerate(tails, 1)]
