"""PyTorch's caching allocator for one card, followed by sizes and addresses; no memory is taken.

A request is rounded up to 512 bytes and served by the smallest cached piece of its stream that is large enough; what
is left over becomes a piece of its own. Without one the driver is asked for a segment, which stays cached
when its pieces are freed: neighbours grow together again, and the next request is served without the driver.

Source of every rule and size: PyTorch, c10/cuda/CUDACachingAllocator.cpp at commit 001074d (2025), with the default
configuration (no max_split_size, no expandable_segments, no rounding to powers of 2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from gpututor.errors import CardFull
from gpututor.model.allocator_counts import LOG_COLUMNS, Counts, count
from gpututor.model.allocator_parts import ADDRESS_BITS, SMALL_BYTES, Driver, Lot, NoDriver, Piece, segment_bytes

LOG_LENGTH = 100_000  # numbers; then the log is counted up, which takes some milliseconds
_new = object.__new__


class Allocator:
    """One card's cached memory. All sizes are bytes.

    `outside_bytes` of the card are taken by the driver and libraries before the first request.
    """

    def __init__(self, capacity_bytes: int, outside_bytes: int = 0, driver: Driver | None = None) -> None:
        self.capacity_bytes, self.outside_bytes = capacity_bytes, outside_bytes
        self.allowed_bytes: int | None = None  # a process's share, where one was set
        self.driver: Driver = NoDriver() if driver is None else driver
        self._both_counts, self._small_counts, self._large_counts = Counts(), Counts(), Counts()
        self._log: list[int] = []  # of each request and return, what `count` takes
        self.n_retries = self.n_full = self.n_waits = self.n_mallocs = self.n_frees = 0
        self._heads: dict[int, Piece] = {}  # first piece of each segment, by address
        self._next_address = 2 * SMALL_BYTES
        self.used_on: dict[Piece, set[int]] = {}  # other streams that work on a piece
        self._waiting: list[tuple[Piece, int]] = []  # freed, but not before that time
        self.returned: list[Piece] = []
        self._settling = False
        self._lots: dict[int, tuple[Lot, Lot]] = {}
        self.use_stream(0)

    def use_stream(self, stream: int) -> None:
        """Later requests are made on this stream; memory freed there serves no other."""
        if stream not in self._lots:
            self._lots[stream] = (
                Lot(self._small_counts, True, stream),
                Lot(self._large_counts, False, stream),
            )
        self._small, self._large = self._lots[stream]

    def set_aside(self, stream: int) -> tuple[Lot, Lot]:
        """Take a stream's cached memory out of reach, also of `release_cached`, until `put_back`."""
        return self._lots.pop(stream)

    def put_back(self, stream: int, lots: tuple[Lot, Lot]) -> None:
        """Let a stream have again what was set aside."""
        self._lots[stream] = lots

    # --- taking and giving back: the hot path -----------------------------------------------------------------

    def allocate(self, asked: int) -> Piece:
        """A piece for a request of `asked` bytes, at least 1.

        Raises:
            CardFull: neither a cached piece nor the card's free memory serves it.
        """
        if self.returned:
            self.settle()
        if self._waiting:
            self._let_go()
        size = asked + 511 & -512
        lot = self._small if size <= SMALL_BYTES else self._large
        keys, pieces = lot.keys, lot.pieces
        k = bisect_left(keys, size << ADDRESS_BITS)
        if k == len(keys):
            k = lot.keep(self._new_segment(size, lot))
        piece = pieces[k]
        before, rest = piece.prev, piece.size - size
        if rest <= lot.keep_bytes:
            del keys[k], pieces[k]
            size = piece.size
            piece.cached, piece.asked = False, asked
            whole = before is None and piece.next is None
            self._log += (size, asked, 0, 0, 0) if whole else (size, asked, -1, -size, 0)
            return piece
        first = _new(Piece)
        first.address, first.size, first.prev, first.next = piece.address, size, before, piece
        first.lot, first.cached, first.asked = lot, False, asked
        if before is not None:
            before.next = first
        else:
            self._heads[first.address] = first
        whole = before is None and piece.next is None
        self._log += (size, asked, 1, rest, 0) if whole else (size, asked, 0, -size, 0)
        piece.prev, piece.size = first, rest
        piece.address += size
        key = rest << ADDRESS_BITS | piece.address
        if k and keys[k - 1] > key:
            del keys[k], pieces[k]
            k = bisect_left(keys, key, 0, k)
            keys.insert(k, key)
            pieces.insert(k, piece)
        else:  # it keeps its place
            keys[k] = key
        return first

    def give_back(self, piece: Piece) -> None:
        """Free a piece before the next request or look at the counts.

        Safe at any moment, for instance when the garbage collector ends a tensor in the middle of another request.
        """
        if self.used_on and piece in self.used_on:
            self._free_later(piece)
        else:
            self.returned.append(piece)

    def settle(self) -> None:
        """Free what was given back; the order makes no difference, since neighbours grow together either way."""
        if len(self._log) > LOG_LENGTH:
            self._count()
        returned, free = self.returned, self.free
        while returned:
            free(returned.pop())

    def free(self, piece: Piece) -> None:
        """Give a piece back; where other streams work on it, it is cached only when they are done."""
        if self.used_on and piece in self.used_on:
            self._free_later(piece)
            return
        lot, before, after, size = piece.lot, piece.prev, piece.next, piece.size
        keys, pieces = lot.keys, lot.pieces
        n_rests = subsumed = 0
        freed = -1  # the place of a neighbour that it grows together with
        if before is not None and before.cached:
            freed = bisect_left(keys, before.size << ADDRESS_BITS | before.address)
            n_rests, subsumed = 1, before.size
            piece.address = before.address
            before = piece.prev = before.prev
            if before is not None:
                before.next = piece
            else:
                self._heads[piece.address] = piece
        if after is not None and after.cached:
            if freed >= 0:
                del keys[freed], pieces[freed]
            freed = bisect_left(keys, after.size << ADDRESS_BITS | after.address)
            n_rests += 1
            subsumed += after.size
            after = piece.next = after.next
            if after is not None:
                after.prev = piece
        whole = before is None and after is None
        rests = (-n_rests, -subsumed, 0) if whole else (1 - n_rests, size, 0)
        self._log += (-size, -piece.asked, *rests)
        piece.cached = True
        piece.size = size = size + subsumed
        key = size << ADDRESS_BITS | piece.address
        if freed < 0:
            k = bisect_left(keys, key)
        elif freed + 1 == len(keys) or keys[freed + 1] > key:  # larger than before, and still in its place
            keys[freed], pieces[freed] = key, piece
            return
        else:
            k = bisect_left(keys, key, freed) - 1
            del keys[freed], pieces[freed]
        keys.insert(k, key)
        pieces.insert(k, piece)

    def _count(self) -> None:
        """Bring the counts up to date with the log."""
        if self.returned and not self._settling:
            self._settling = True
            self.settle()
            self._settling = False
        count(self._log, self._small_counts, self._large_counts, self._both_counts)
        self._log.clear()

    # --- segments ---------------------------------------------------------------------------------------------

    def _new_segment(self, size: int, lot: Lot) -> Piece:
        wanted = segment_bytes(size)
        if not self._fits(wanted):
            self.release_cached()
            self.n_retries += 1
            if not self._fits(wanted):
                self.n_full += 1
                raise self.full(wanted)
        self.driver.malloc(wanted)
        self.n_mallocs += 1
        piece = Piece(self._next_address, wanted, None, None, lot)
        self._next_address += wanted
        self._heads[piece.address] = piece
        lot.counts.reserve(wanted)
        self._both_counts.reserve(wanted)
        return piece

    def _fits(self, wanted: int) -> bool:
        allowed = self.allowed_bytes
        return wanted <= self.free_bytes and (allowed is None or self.reserved_bytes + wanted <= allowed)

    def full(self, wanted_bytes: int) -> CardFull:
        """The error for a request of this size, with the card's state."""
        return CardFull(wanted_bytes, self.capacity_bytes, self.free_bytes, self.all.size, self.reserved_bytes)

    @property
    def reserved_bytes(self) -> int:
        """What the driver has given so far and not got back."""
        return self._both_counts.reserved

    @property
    def all(self) -> Counts:
        """The counts of both pools together, up to date."""
        self._count()
        return self._both_counts

    @property
    def small(self) -> Counts:
        """The counts of the pool of requests up to 1 MiB."""
        self._count()
        return self._small_counts

    @property
    def large(self) -> Counts:
        """The counts of the pool of larger requests."""
        self._count()
        return self._large_counts

    @property
    def free_bytes(self) -> int:
        """What the driver has left on the card."""
        return max(0, self.capacity_bytes - self.outside_bytes - self.reserved_bytes)

    def release_cached(self) -> None:
        """Give whole cached segments back to the driver, after waiting for other streams' use of freed pieces."""
        self.settle()
        self.n_waits += 1
        for piece, _ in self._waiting:
            self._cache_waiting(piece)
        self._waiting.clear()
        n_frees = 0
        for lots in self._lots.values():
            for lot in lots:
                for piece in [p for p in lot.pieces if p.prev is None and p.next is None]:
                    lot.drop(piece)
                    del self._heads[piece.address]
                    lot.counts.release(piece.size)
                    self._both_counts.release(piece.size)
                    n_frees += 1
        self.n_frees += n_frees
        if n_frees:
            self.driver.free(n_frees)

    def segments(self) -> Iterator[list[Piece]]:
        """The pieces of each segment in order, segments by address."""
        self.settle()
        for address in sorted(self._heads):
            pieces, piece = [], self._heads[address]
            while True:
                pieces.append(piece)
                if piece.next is None:
                    break
                piece = piece.next
            yield pieces

    # --- streams ----------------------------------------------------------------------------------------------

    def record_stream(self, piece: Piece, stream: int) -> None:
        """Another stream works on this piece: after its free it isn't reused before that stream is done."""
        if stream != piece.lot.stream:
            self.used_on.setdefault(piece, set()).add(stream)

    def is_waiting(self, piece: Piece) -> bool:
        """Whether a piece was freed, but other streams still work on it."""
        return any(piece is p for p, _ in self._waiting)

    def _free_later(self, piece: Piece) -> None:
        ends_ns = max(self.driver.stream_ends_ns(k) for k in self.used_on.pop(piece))
        self._log += (-piece.size, 0, 0, 0, piece.size)
        self._waiting.append((piece, ends_ns))

    def _let_go(self) -> None:
        """Cache the pieces whose last stream is done by now."""
        now_ns = self.driver.now_ns()
        done = [piece for piece, ends_ns in self._waiting if ends_ns <= now_ns]
        if done:
            self._waiting = [(piece, ends_ns) for piece, ends_ns in self._waiting if ends_ns > now_ns]
            for piece in done:
                self._cache_waiting(piece)

    def _cache_waiting(self, piece: Piece) -> None:
        size = piece.size
        self.free(piece)
        self._log[-LOG_COLUMNS] += size  # it is out of use already
        self._log[-1] -= size
