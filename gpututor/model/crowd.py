"""Kernels of several streams on one card: they overlap where their blocks fit on its SMs together."""

from __future__ import annotations

from collections import deque

CROWD = 64
"""Kernels of a card that are remembered to see which overlap; a program's streams are few."""


def start_in(crowd: deque[tuple[int, int, float]], start: int, long_ns: int, need: float) -> int:
    """The first time from `start` at which a share `need` of the SMs is free of the crowd; the kernel joins it.

    >>> start_in(deque([(0, 10, 0.75)]), 4, 5, 0.5), start_in(deque([(0, 10, 0.25)]), 4, 5, 0.5)
    (10, 4)
    """
    while True:
        running = [(end, share) for begin, end, share in crowd if begin <= start < end]
        if sum(share for _, share in running) + need <= 1.0 or not running:
            break
        start = min(end for end, _ in running)
    crowd.append((start, start + long_ns, need))
    return start
