"""A simulated card's memory: PyTorch's caching allocator in the card's real size, and CUDA's error when it is full.

Counted is what PyTorch's own allocator hands out. Not counted: the workspaces that cuBLAS and cuDNN ask it for (8 MiB a
stream for cuBLAS, 32 MiB on Hopper, and what a convolution's algorithm wants while it runs), and other processes.
Memory outside the allocator is one lump, `CONTEXT_BYTES`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch

from gpututor.errors import CardFull
from gpututor.model.allocator import Allocator
from gpututor.model.allocator_parts import Piece
from gpututor.model.tape import HostWork, Sync
from gpututor.timeline import Activity

if TYPE_CHECKING:
    from gpututor.cards import Card
    from gpututor.simgpu.session import Session

CONTEXT_BYTES = 490 << 20
"""Driver, context and loaded kernels of a process, outside PyTorch's allocator.

Source: out-of-memory reports of one process on one card, "in use by this process" less "allocated" and "reserved":
A100 40 GB 0.49 GiB (TianheWu/CoSeR#10), an 80 GB card 0.50 (Kwai-Keye/Keye#11), L40 0.50 (QwenLM/Qwen3-VL#2097),
RTX 6000 Ada 0.42 (DINGYANB/MTVCrafter#21), RTX 4090 0.46 and 0.48 (pinokiofactory/flux-webui#11,
pytorch/torchchat#1341), RTX 5090 0.58 (Wan-Video/Wan2.1#465); V100 0.36 (meta-llama/llama#918). The median is 0.48 GiB.
"""

DRIVER_SHARE = 0.013
"""Of the nominal size, what the driver never shows to a program.

Source: the same reports' "total capacity": V100 15.77 of 16 GiB, A100 39.50 of 40 and 79.25 of 80, H100 79.11 of 80
(vllm-project/vllm#27508), RTX 4090 23.64 of 24, RTX 5090 31.37 of 32: 0.9 to 2.0 %, median 1.3 %.
"""

ECC_SHARE = 1 / 16
ECC_IN_MEMORY = frozenset({"T4", "A10G", "A40", "L4", "L40S"})
"""Cards whose check bits lie in the memory itself, with ECC on as delivered.

Source: "total capacity" of a T4 14.75 of 16 GiB (FoundationVision/GenerateU#10), an L40 44.40 of 48
(QwenLM/Qwen3-VL#2097); 15/16 of the nominal size less the driver's share gives 14.8 and 44.4.
"""

CUDA_MALLOC_NS = 260_000
"""The host in one cudaMalloc. Source: recorded traces, medians of 3 calls on an A100 (208 µs), 78 on a V100 (263 µs, of
a ResNet-50's first steps), 33 on an RTX 2080 Ti (335 µs). They range from 3 µs to 5 ms; a constant is an assumption."""

CUDA_FREE_NS = 510_000
"""The host in one cudaFree once the card is idle. Source: median of 34 calls in the same V100 trace."""


def usable_bytes(card: Card) -> int:
    """What CUDA would report as the card's total memory."""
    share = 1 - ECC_SHARE if card.name in ECC_IN_MEMORY else 1.0
    return int(card.memory_bytes * share * (1 - DRIVER_SHARE)) >> 20 << 20


class Clocks:
    """The session's clocks and tape, as the allocator needs them. The session isn't kept alive by its memory."""

    def __init__(self, session: Session) -> None:
        self._session = weakref.ref(session)

    def malloc(self, n_bytes: int) -> None:
        """The host is busy in cudaMalloc."""
        self._account(HostWork(Activity.STARTUP, "cudaMalloc", CUDA_MALLOC_NS))

    def free(self, n_segments: int) -> None:
        """The host waits for the card, then is busy in cudaFree."""
        self._account(Sync("cudaFree"))
        self._account(HostWork(Activity.STARTUP, "cudaFree", n_segments * CUDA_FREE_NS))

    def now_ns(self) -> int:
        """The simulated host's clock; 0 when the session is gone."""
        session = self._session()
        return session.host_ns if session is not None else 0

    def stream_ends_ns(self, stream: int) -> int:
        """When the stream will be done with what was launched so far."""
        session = self._session()
        return session.player.queue.event_ns(stream) if session is not None else 0

    def _account(self, entry: HostWork | Sync) -> None:
        session = self._session()
        if session is not None:
            session.account(entry)


class Memory(Allocator):
    """The memory of one simulated card."""

    def __init__(self, card: Card, index: int, session: Session) -> None:
        super().__init__(usable_bytes(card), CONTEXT_BYTES, Clocks(session))
        self.card_name, self.index = card.name, index
        self.use_stream(index)  # the card's default stream

    @property
    def in_use_bytes(self) -> int:
        """Bytes of living tensors, rounded as the allocator rounds them."""
        return self.all.size

    @property
    def peak_bytes(self) -> int:
        """The most that living tensors took at once."""
        return self.all.size_peak

    def out_of_memory(self, full: CardFull) -> torch.OutOfMemoryError:
        """CUDA's error, with the same figures in the same order."""
        in_process = self.outside_bytes + full.cached_bytes
        share = "" if self.allowed_bytes is None else f"{size_text(self.allowed_bytes)} allowed; "
        return torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {size_text(full.wanted_bytes)}. GPU {self.index}, a simulated "
            f"{self.card_name}, has a total capacity of {size_text(full.capacity_bytes)} of which "
            f"{size_text(full.free_bytes)} is free. Including non-PyTorch memory, this process has "
            f"{size_text(in_process)} memory in use. {share}Of the allocated memory {size_text(full.used_bytes)} is "
            f"allocated by PyTorch, and {size_text(full.cached_bytes - full.used_bytes)} is reserved by PyTorch but "
            "unallocated. If that is much, its parts are too small: sizes that change from step to step cut memory up "
            "(on a real card try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True). If it is little, take a smaller "
            "batch, checkpoint activations, or choose a card with more memory."
        )

    def would_take(self, n_bytes: int) -> None:
        """Refuse a result of this size before the host computes it.

        Raises:
            torch.OutOfMemoryError: the card could not hold it even with an empty cache.
        """
        if n_bytes > self.free_bytes + self.all.reserved - self.all.size:
            self.n_full += 1
            full = CardFull(n_bytes, self.capacity_bytes, self.free_bytes, self.all.size, self.all.reserved)
            raise self.out_of_memory(full)


def size_text(n_bytes: int) -> str:
    """A size as CUDA's error writes it.

    >>> size_text(512), size_text(2 * 2**20), size_text(16 * 2**30)
    ('512 bytes', '2.00 MiB', '16.00 GiB')
    """
    if n_bytes <= 1 << 10:
        return f"{n_bytes} bytes"
    for unit, power in (("KiB", 10), ("MiB", 20)):
        if n_bytes <= 1 << power + 10:
            return f"{n_bytes / (1 << power):.2f} {unit}"
    return f"{n_bytes / (1 << 30):.2f} GiB"


class Block:
    """One allocation; the views of a tensor share it, and it is given back with the last of them."""

    __slots__ = ("__weakref__", "lost", "memory", "piece")

    memory: Memory
    lost: bool  # with numerics off: something unknown was written into it
    piece: Piece | None

    def __init__(self, n_bytes: int, memory: Memory) -> None:
        self.memory, self.lost = memory, False
        try:
            self.piece = memory.allocate(n_bytes) if n_bytes else None
        except CardFull as full:
            raise memory.out_of_memory(full) from None

    def __del__(self) -> None:
        try:
            piece = self.piece
        except AttributeError:  # the card was full
            return
        if piece is not None:
            memory = self.memory
            if memory.used_on:
                memory.give_back(piece)
            else:
                memory.returned.append(piece)


_new = object.__new__


def block_of(n_bytes: int, memory: Memory) -> Block:
    """`Block(n_bytes, memory)` for the hot path, without torch's and Python's way through a class.

    Raises:
        torch.OutOfMemoryError: neither a cached piece nor the card's free memory serves it.
    """
    block = _new(Block)
    block.memory, block.lost = memory, False
    try:
        block.piece = memory.allocate(n_bytes) if n_bytes else None
    except CardFull as full:
        raise memory.out_of_memory(full) from None
    return block
