"""Time of kernels that walk over memory: elementwise work, reductions, copies inside GPU memory."""

from __future__ import annotations

from math import ceil, hypot, inf

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


def block_bytes_per_s(threads: int) -> float:
    """What the threads of one block draw at most, all of them waiting for memory most of the time."""
    return threads * CONSTANTS.thread_mb_per_s * 1e6


def resident_blocks(threads_per_block: int, card: Card) -> int:
    """Blocks of this size that one SM holds at once, by its limits of warps and of blocks (1 or more)."""
    by_warps = card.max_warps_per_sm // max(1, ceil(threads_per_block / 32))
    return max(1, min(by_warps, card.max_blocks_per_sm or MAX_BLOCKS_PER_SM))


def walk_s(
    moved_bytes: float,
    n_elements: float,
    elements_per_block: float,
    card: Card,
    resident: int = MAX_BLOCKS_PER_SM,
    drawn_bytes_per_s: float = inf,
) -> float:
    """Seconds, after the floor, to move `moved_bytes` with blocks that each walk over `elements_per_block`.

    The card's bandwidth limits whole waves of `resident` blocks on every SM. In the last wave, which may leave SMs
    empty, each SM's own draw limits the SM that got the most blocks. No block moves more than `drawn_bytes_per_s`: its
    threads mostly wait for memory, and each has only so much on its way at a time.
    """
    card_bytes_per_s = card.bandwidth_bytes_per_s * card.bandwidth_share
    n_blocks = max(1, ceil(n_elements / elements_per_block))
    block_bytes = moved_bytes * min(1.0, elements_per_block / max(1.0, n_elements))
    n_full_waves, n_left = divmod(n_blocks, card.n_sms * resident)
    left_bytes = moved_bytes - min(moved_bytes, n_full_waves * card.n_sms * resident * block_bytes)
    fullest_sm_bytes = ceil(n_left / card.n_sms) * block_bytes
    sm_bytes_per_s = lone_sm_draw() * card_bytes_per_s / card.n_sms
    block_s = block_bytes / drawn_bytes_per_s
    last_wave_s = max(left_bytes / card_bytes_per_s, fullest_sm_bytes / sm_bytes_per_s, block_s if n_left else 0.0)
    return max((moved_bytes - left_bytes) / card_bytes_per_s, n_full_waves * block_s) + last_wave_s


def short_of_loads(number_format: str, card: Card, numbers_a_thread: float = 4.0) -> float:
    """How many times as long a walk over 2-byte numbers takes as its bytes alone would.

    A thread asks for four numbers at a time (compiled code for more), and an SM holds 2,048 threads: 16 kB on their
    way. Memory answers after about 1,000 clocks, so that an SM can't draw much more than 16 bytes a clock, half of what
    it draws in fp32. The card's own limit and this one join as two delays that hide each other in part: the root of
    their squares' sum.
    """
    if number_format not in ("fp16", "bf16"):
        return 1.0
    drawn_bytes_per_s = numbers_a_thread / 4 * CONSTANTS.half_bytes_per_clock * card.n_sms * card.boost_clock_hz
    return hypot(1.0, card.bandwidth_bytes_per_s * card.bandwidth_share / drawn_bytes_per_s)


def from_memory_bytes(moved_bytes: float, card: Card) -> float:
    """Traffic of an elementwise kernel as if all of it went to memory: what L2 still holds counts by L2's rate.

    Its tensors were just written or read by the kernel before, or are read by the next one; as long as they fill
    little of L2 they never leave it. That is an assumption: the public tables time larger tensors only.
    """
    kept_bytes = moved_bytes * (1 - lost_share(moved_bytes, 1, card))
    return moved_bytes - kept_bytes * (1 - card.bandwidth_bytes_per_s * card.bandwidth_share / l2_bytes_per_s(card))


def stream(spec: Stream, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of an elementwise kernel."""
    compute_s = spec.flop / vector_flop_per_s(spec.number_format, card)
    resident = resident_blocks(spec.threads_per_block, card)
    paid_bytes = from_memory_bytes(spec.moved_bytes, card)
    memory_s = walk_s(paid_bytes, spec.n_elements, spec.elements_per_block, card, resident)
    memory_s *= short_of_loads(spec.number_format, card, spec.elements_per_block / spec.threads_per_block)
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


def lost_share(row_bytes: float, n_rows_at_once: float, card: Card) -> float:
    """Share of what a kernel reads again that L2 no longer has: none while the rows at work fill little of it."""
    filled = row_bytes * n_rows_at_once / card.l2_bytes
    kept, lost = CONSTANTS.l2_kept_share, CONSTANTS.l2_lost_share
    return min(1.0, max(0.0, (filled - kept) / (lost - kept)))


def l2_bytes_per_s(card: Card) -> float:
    """What L2 delivers to all SMs together, never less than the memory behind it."""
    return max(CONSTANTS.l2_bytes_per_clock * card.n_sms * card.boost_clock_hz, card.bandwidth_bytes_per_s)


def row_reduce(spec: RowReduce, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a kernel whose blocks work on rows.

    What it reads again comes from L2 as long as the rows that all blocks have at work fit there, else from memory.
    """
    resident = resident_blocks(spec.threads_per_block, card)
    n_elements = max(1, spec.n_rows * spec.row_length)
    block_elements: float = max(1, spec.rows_per_block * spec.row_length)
    if spec.split:
        fair = max(spec.threads_per_block * MIN_ELEMENTS_PER_THREAD, n_elements / (card.n_sms * resident))
        block_elements = min(block_elements, fair)
    compute_s = spec.flop / vector_flop_per_s(spec.number_format, card)
    moved_bytes: float = spec.moved_bytes
    l2_s = 0.0
    if spec.again_bytes:
        n_at_once = min(spec.n_rows, card.n_sms * resident * spec.rows_per_block)
        lost_bytes = spec.again_bytes * lost_share(spec.row_bytes, n_at_once, card)
        moved_bytes += lost_bytes
        l2_s = (spec.again_bytes - lost_bytes) / l2_bytes_per_s(card)
    drawn = block_bytes_per_s(spec.threads_per_block)
    memory_s = walk_s(moved_bytes, n_elements, block_elements, card, resident, drawn) + l2_s
    memory_s *= short_of_loads(spec.number_format, card, spec.numbers_a_thread)
    return floor_s() + max(compute_s, memory_s), KernelWork(
        "reduction",
        float(spec.flop),
        moved_bytes,
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
