"""Sums over half-open intervals of whole nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of half-open intervals, sorted, touching ones joined.

    >>> merged([(5, 7), (0, 2), (1, 3), (3, 4)])
    [(0, 4), (5, 7)]
    """
    out: list[tuple[int, int]] = []
    for start, end in sorted(i for i in intervals if i[1] > i[0]):
        if out and start <= out[-1][1]:
            if end > out[-1][1]:
                out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def overlap_ns(some: Sequence[tuple[int, int]], others: Iterable[tuple[int, int]]) -> int:
    """Nanoseconds that are in both; each holds half-open intervals in order, disjoint.

    >>> overlap_ns([(0, 4), (6, 9)], [(3, 7)])
    2
    """
    total, k = 0, 0
    for start, end in others:
        while k < len(some) and some[k][1] <= start:
            k += 1
        at = k
        while at < len(some) and some[at][0] < end:
            total += min(end, some[at][1]) - max(start, some[at][0])
            at += 1
    return total
