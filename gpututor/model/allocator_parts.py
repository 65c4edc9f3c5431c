"""The parts of a caching allocator: sizes, pieces, lots of cached pieces, and what it needs of the machine around it.

Source of the sizes: PyTorch, c10/cuda/CUDACachingAllocator.cpp at commit 001074d (2025); its names stand beside them.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

from gpututor.model.allocator_counts import Counts

MIN_PIECE_BYTES = 512  # kMinBlockSize
SMALL_BYTES = 1 << 20  # kSmallSize: up to here a request goes to the small pool
SMALL_SEGMENT_BYTES = 2 << 20  # kSmallBuffer
LARGE_SEGMENT_BYTES = 20 << 20  # kLargeBuffer
OWN_SEGMENT_BYTES = 10 << 20  # kMinLargeAlloc: from here a request gets a segment of its own
ROUND_LARGE_BYTES = 2 << 20  # kRoundLarge

ADDRESS_BITS = 50  # a key is size and address in one number, so that one search finds the best fit, lowest first


def rounded(asked_bytes: int) -> int:
    """The bytes that a request takes: whole multiples of 512, at least one.

    >>> rounded(1), rounded(512), rounded(513)
    (512, 512, 1024)
    """
    return max(1, (asked_bytes + MIN_PIECE_BYTES - 1) // MIN_PIECE_BYTES) * MIN_PIECE_BYTES


def segment_bytes(size_bytes: int) -> int:
    """The bytes that the driver is asked for when nothing cached serves a request of this rounded size.

    >>> [segment_bytes(n << 20) // 2**20 for n in (1, 2, 9, 10, 11)]
    [2, 20, 20, 10, 12]
    """
    if size_bytes <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size_bytes < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size_bytes // ROUND_LARGE_BYTES) * ROUND_LARGE_BYTES


class Driver(Protocol):
    """What the allocator needs of the machine around it."""

    def malloc(self, n_bytes: int) -> None:
        """The host pays for one cudaMalloc."""

    def free(self, n_segments: int) -> None:
        """The host waits for the card and pays for this many cudaFrees."""

    def now_ns(self) -> int:
        """The host's clock."""

    def stream_ends_ns(self, stream: int) -> int:
        """When what was launched into a stream so far will be done."""


class NoDriver:
    """A machine without clocks, on which everything is done at once."""

    def malloc(self, n_bytes: int) -> None:
        """Costs nothing."""

    def free(self, n_segments: int) -> None:
        """Costs nothing."""

    def now_ns(self) -> int:
        """Always 0."""
        return 0

    def stream_ends_ns(self, stream: int) -> int:
        """Always 0."""
        return 0


class Piece:
    """A stretch of a segment, in use or cached; its neighbours in the segment are linked."""

    __slots__ = ("address", "asked", "cached", "lot", "next", "prev", "size")

    def __init__(self, address: int, size: int, prev: Piece | None, next_: Piece | None, lot: Lot) -> None:
        self.address, self.size, self.prev, self.next, self.lot = address, size, prev, next_, lot
        self.cached = True
        self.asked = 0


class Lot:
    """The cached pieces of one pool and stream, smallest first; equal sizes by address."""

    __slots__ = ("counts", "keep_bytes", "keys", "pieces", "small", "stream")

    def __init__(self, counts: Counts, small: bool, stream: int) -> None:
        self.counts, self.small, self.stream = counts, small, stream
        self.keep_bytes = 0 if small else SMALL_BYTES  # a rest of this size or less is not split off
        self.keys: list[int] = []
        self.pieces: list[Piece] = []

    def keep(self, piece: Piece) -> int:
        """Keep a piece that came from the driver; gives its place."""
        key = piece.size << ADDRESS_BITS | piece.address
        k = bisect_left(self.keys, key)
        self.keys.insert(k, key)
        self.pieces.insert(k, piece)
        return k

    def drop(self, piece: Piece) -> None:
        """Keep it no more."""
        k = self.keys.index(piece.size << ADDRESS_BITS | piece.address)
        del self.keys[k], self.pieces[k]
