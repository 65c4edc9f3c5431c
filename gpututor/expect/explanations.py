"""What could explain more or less time on an account than predicted, the likeliest first.

The order is our judgement, from what public reports of slow training name most often for each kind of wait.
"""

from __future__ import annotations

from gpututor.ledger import Account

MORE = {
    Account.WAITING_FOR_INPUT: (
        "the disk or network is slower than the model assumes",
        "fewer CPU cores were free for the loader, or its threads fought over them",
        "the samples are larger or costlier to prepare than described",
    ),
    Account.EXPOSED_COPY: (
        "the batch was copied from memory that isn't pinned",
        "the card sits in a slower or narrower PCIe slot",
        "the copies were many and small",
    ),
    Account.BLOCKING_SYNC: (
        "something asks for a value that you didn't count: a progress bar, a mask, a print",
        "the profiler adds syncs of its own",
    ),
    Account.LAUNCH_OVERHEAD: (
        "the host's CPU is slower than the model's, or busy with other work",
        "the profiler was on: it costs some microseconds for each op",
        "a debug switch is on (`detect_anomaly`, `CUDA_LAUNCH_BLOCKING`)",
    ),
    Account.EXPOSED_COMMUNICATION: (
        "the cards talk over PCIe or the network and not over NVLink",
        "one rank is slower and the others wait for it",
    ),
    Account.START_UP: (
        "something is compiled or tuned again because shapes change",
        "the allocator asks the driver for memory again and again",
    ),
    Account.PAUSE: ("evaluation, checkpoints or logging are more frequent than described", "garbage collection"),
    Account.UNKNOWN_IDLE: (
        "the recording doesn't show what the host did",
        "another process uses the same GPU",
    ),
    Account.MEMORY_BOUND: ("the caches held less than the model assumes", "the layout cost extra transposes"),
    Account.LATENCY_BOUND: (
        "the library chose slower kernels than the model assumes",
        "the clock was lower: power limit, temperature, another process",
    ),
    Account.SLOWER_FORMAT: ("an op ran in a slower number format than described",),
    Account.BUSY_UNSPLIT: ("the recording says too little about its kernels to compare them",),
}
LESS = {
    Account.WAITING_FOR_INPUT: ("the files were already in the operating system's cache",),
    Account.LAUNCH_OVERHEAD: ("the host's CPU is faster than the model's", "ops were fused or captured in a graph"),
    Account.BLOCKING_SYNC: ("the wait moved to another line",),
    Account.EXPOSED_COPY: ("the copy ran under a kernel",),
    Account.MEMORY_BOUND: ("the caches held more than the model assumes",),
    Account.LATENCY_BOUND: ("the library chose faster kernels than the model assumes",),
}


def explanations(account: Account, *, more: bool) -> tuple[str, ...]:
    """What could explain more (or less) time on this account than expected; empty where we know of nothing."""
    return (MORE if more else LESS).get(account, ())
