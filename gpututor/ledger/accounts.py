"""The accounts a nanosecond of GPU time can be charged to, from the top of the waterfall down."""

from __future__ import annotations

from enum import Enum


class Account(Enum):
    """Where a nanosecond went; the value is the word shown to a reader."""

    __hash__ = object.__hash__  # one object each, so its own hash will do; that of Enum is slow

    WAITING_FOR_INPUT = "waiting for input"
    EXPOSED_COPY = "exposed copy"
    BLOCKING_SYNC = "blocking sync"
    LAUNCH_OVERHEAD = "launch overhead"
    EXPOSED_COMMUNICATION = "exposed communication"
    START_UP = "start-up"
    PAUSE = "pauses"
    UNKNOWN_IDLE = "unknown"

    TOO_FEW_BLOCKS = "too few blocks"
    LAST_WAVE_TAIL = "last-wave tail"

    MEMORY_BOUND = "memory-bound"
    LATENCY_BOUND = "latency and below peak"
    SLOWER_FORMAT = "slower number format"
    RECOMPUTE_AND_PADDING = "recomputation and padding"
    BUSY_UNSPLIT = "busy, not broken down"

    USEFUL = "useful"


IDLE = (
    Account.WAITING_FOR_INPUT,
    Account.EXPOSED_COPY,
    Account.BLOCKING_SYNC,
    Account.LAUNCH_OVERHEAD,
    Account.EXPOSED_COMMUNICATION,
    Account.START_UP,
    Account.PAUSE,
    Account.UNKNOWN_IDLE,
)
"""No kernel computes. In the order of the waterfall, as are the next two."""

UNFILLED = (Account.TOO_FEW_BLOCKS, Account.LAST_WAVE_TAIL)
"""A kernel runs, but some of the SMs have no block."""

SLOW = (
    Account.MEMORY_BOUND,
    Account.LATENCY_BOUND,
    Account.SLOWER_FORMAT,
    Account.RECOMPUTE_AND_PADDING,
    Account.BUSY_UNSPLIT,
)
"""The SMs have blocks, but the card's best rate of useful FLOP isn't reached."""

BUSY = (*UNFILLED, *SLOW, Account.USEFUL)
"""At least one kernel computes."""

MEANING = {
    Account.WAITING_FOR_INPUT: "the GPU had nothing to do while the host prepared or awaited the next batch",
    Account.EXPOSED_COPY: "the GPU waited for data on its way from the host",
    Account.BLOCKING_SYNC: "the host waited for a result instead of launching the next kernels",
    Account.LAUNCH_OVERHEAD: "Python, the framework and the driver were still preparing the next kernel",
    Account.EXPOSED_COMMUNICATION: "the GPU exchanged data with other GPUs, or waited for them, and computed nothing",
    Account.START_UP: "compiling, tuning or first-call work",
    Account.PAUSE: "evaluation, a checkpoint, logging or garbage collection",
    Account.UNKNOWN_IDLE: "the GPU was idle and the timeline doesn't say why",
    Account.TOO_FEW_BLOCKS: "the kernel had fewer blocks than the card has SMs",
    Account.LAST_WAVE_TAIL: "the last blocks of a kernel left some SMs empty",
    Account.MEMORY_BOUND: "the SMs waited for GPU memory, not for arithmetic",
    Account.LATENCY_BOUND: "the kernel was too short, or its instructions too slow, for the card's best rate",
    Account.SLOWER_FORMAT: "the arithmetic ran in a number format slower than the best the card has",
    Account.RECOMPUTE_AND_PADDING: "arithmetic done twice, or on padding",
    Account.BUSY_UNSPLIT: "a kernel ran; the source lacks its FLOP, bytes or blocks",
    Account.USEFUL: "useful FLOP at the card's best rate",
}
"""One plain line on each account, for a tooltip or a table."""
