"""Time of kernels that walk over memory: elementwise work, reductions, copies inside GPU memory."""

from __future__ import annotations

from math import ceil

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.rates import vector_flop_per_s
from gpututor.model.kernels import DeviceCopy, Memset, RowReduce, Stream
from gpututor.timeline import KernelWork

CONSTANTS = group("walk")
# Blocks that fit on one SM by the scheduler's limit, where the card's table has none (32 on Volta and GA100).
MAX_BLOCKS_PER_SM = 32
# torch's sums give each thread at least this many elements before another block joins in on the same row
# (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig).
MIN_ELEMENTS_PER_THREAD = 16
COPY_BLOCK_ELEMENTS = 4096  # bytes that one block of a copy moves; only the count of blocks depends on it


def floor_s() -> float:
    """Seconds of the shortest kernel. The gap to the next one, 0.8 us, is the queue's."""
    return CONSTANTS.floor_us * 1e-6


def lone_sm_draw() -> float:
    """How many times its equal share of memory bandwidth one SM draws at most."""
    return CONSTANTS.sm_draw


def resident_blocks(threads_per_block: int, card: Card) -> int:
    """Blocks of this size that one SM holds at once, by its limits of warps and of blocks (1 or more)."""
    by_warps = card.max_warps_per_sm // max(1, ceil(threads_per_block / 32))
    return max(1, min(by_warps, card.max_blocks_per_sm or MAX_BLOCKS_PER_SM))


def walk_s(
    moved_bytes: float, n_elements: float, elements_per_block: float, card: Card, resident: int = MAX_BLOCKS_PER_SM
) -> float:
    """Seconds, after the floor, to move `moved_bytes` with blocks that each walk over `elements_per_block`.

    The card's bandwidth limits whole waves of `resident` blocks on every SM. In the last wave, which may leave SMs
    empty, each SM's own draw limits the SM that got the most blocks.
    """
    card_bytes_per_s = card.bandwidth_bytes_per_s * card.bandwidth_share
    n_blocks = max(1, ceil(n_elements / elements_per_block))
    block_bytes = moved_bytes * min(1.0, elements_per_block / max(1.0, n_elements))
    n_full_waves, n_left = divmod(n_blocks, card.n_sms * resident)
    left_bytes = moved_bytes - min(moved_bytes, n_full_waves * card.n_sms * resident * block_bytes)
    fullest_sm_bytes = ceil(n_left / card.n_sms) * block_bytes
    sm_bytes_per_s = lone_sm_draw() * card_bytes_per_s / card.n_sms
    last_wave_s = max(left_bytes / card_bytes_per_s, fullest_sm_bytes / sm_bytes_per_s)
    return (moved_bytes - left_bytes) / card_bytes_per_s + last_wave_s


def stream(spec: Stream, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of an elementwise kernel."""
    compute_s = spec.flop / vector_flop_per_s(spec.number_format, card)
    resident = resident_blocks(spec.threads_per_block, card)
    memory_s = walk_s(spec.moved_bytes, spec.n_elements, spec.elements_per_block, card, resident)
    n_blocks = max(1, -(-spec.n_elements // spec.elements_per_block))
    return floor_s() + max(compute_s, memory_s), KernelWork(
        "elementwise",
        float(spec.flop),
        float(spec.moved_bytes),
        n_blocks,
        resident,
        spec.number_format,
        False,
    )


def row_reduce(spec: RowReduce, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a kernel whose blocks work on rows."""
    resident = resident_blocks(spec.threads_per_block, card)
    n_elements = max(1, spec.n_rows * spec.row_length)
    block_elements: float = max(1, spec.rows_per_block * spec.row_length)
    if spec.split:
        fair = max(spec.threads_per_block * MIN_ELEMENTS_PER_THREAD, n_elements / (card.n_sms * resident))
        block_elements = min(block_elements, fair)
    compute_s = spec.flop / vector_flop_per_s(spec.number_format, card)
    memory_s = walk_s(spec.moved_bytes, n_elements, block_elements, card, resident)
    return floor_s() + max(compute_s, memory_s), KernelWork(
        "reduction",
        float(spec.flop),
        float(spec.moved_bytes),
        max(1, ceil(n_elements / block_elements)),
        resident,
        spec.number_format,
        False,
    )


def device_copy(spec: DeviceCopy, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a copy inside GPU memory."""
    return _plain_move("copy on GPU", spec.moved_bytes, card)


def memset(spec: Memset, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of filling memory."""
    return _plain_move("memset", spec.moved_bytes, card)


def _plain_move(kind: str, moved_bytes: int, card: Card) -> tuple[float, KernelWork]:
    seconds = floor_s() + walk_s(moved_bytes, moved_bytes, COPY_BLOCK_ELEMENTS, card)
    return seconds, KernelWork(kind, 0.0, float(moved_bytes))
