"""The next experiment: one that tells the likely explanations of a difference apart, by what it would show.

Each is something that a reader can do in minutes. The order within an account is that of `explanations`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.ledger import Account


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to do, and what each outcome would say."""

    what: str
    outcomes: str

    @property
    def text(self) -> str:
        """Both in one line, without a full stop."""
        return f"{self.what}; {self.outcomes}"


NEXT = {
    Account.WAITING_FOR_INPUT: Experiment(
        "iterate over the loader alone, without a model, twice in a row",
        "if the second pass is quick, the disk was slow; if both are slow, the CPU is: try more workers; if both are "
        "quick, the loader and the training fight over the same cores",
    ),
    Account.EXPOSED_COPY: Experiment(
        "copy one batch a hundred times from pinned memory and divide its bytes by the time",
        "if the rate is what the slot should give, your own batches aren't pinned or are many small copies; if it "
        "isn't, the slot is slower or narrower (gpututor doctor says which link the card has)",
    ),
    Account.BLOCKING_SYNC: Experiment(
        "run ten steps under torch.cuda.set_sync_debug_mode('warn')",
        "each line of yours that waits is named; if none is, the wait is the recorder's own",
    ),
    Account.LAUNCH_OVERHEAD: Experiment(
        "time a step without the profiler and with debug switches off, then at twice the batch",
        "if the step without the profiler is as expected, the profiler was it; if twice the batch takes as long, the "
        "host is: it is slower than assumed, or shared",
    ),
    Account.EXPOSED_COMMUNICATION: Experiment(
        "run the same steps on one card, and an all-reduce of the gradients' size alone",
        "if the all-reduce alone is slow, the link is; if it is as expected, one rank is late",
    ),
    Account.START_UP: Experiment(
        "leave out twenty steps more, and give every batch one shape",
        "if it is gone, something was compiled or tuned again; if not, the allocator: see num_alloc_retries in "
        "torch.cuda.memory_stats()",
    ),
    Account.PAUSE: Experiment(
        "switch evaluation, checkpoints and logging off for one run",
        "if the pauses stay, call gc.freeze() after the first step: then they are garbage collection",
    ),
    Account.UNKNOWN_IDLE: Experiment(
        "record ten steps with the profiler (profile_steps=10), and look at nvidia-smi for other processes",
        "a named account takes the place of the unknown one, or another process stands in the list",
    ),
    Account.MEMORY_BOUND: Experiment(
        "run at half the batch",
        "if the time of the memory-bound kernels falls to less than half, the caches held less than assumed; if it "
        "falls to half, something moves more bytes: look for transposes and copies among the kernels",
    ),
    Account.LATENCY_BOUND: Experiment(
        "sample the SM clock during the run (gpututor watch)",
        "if it is below the card's boost clock under load, the clock was it; if not, the library chose other kernels: "
        "compare their names",
    ),
    Account.SLOWER_FORMAT: Experiment(
        "print the dtype of the slowest kernels' inputs",
        "an op outside autocast, or TF32 that isn't allowed, shows as float32",
    ),
    Account.BUSY_UNSPLIT: Experiment(
        "record with shapes (record_shapes=True), or predict the step beside it",
        "the time divides into its accounts, and the one that differs shows",
    ),
}

BUSY = Experiment(
    "look at a few steps kernel by kernel (profile_steps=10), and sample the SM clock meanwhile (gpututor watch)",
    "if there are gaps between the kernels, the host is slower than assumed; if there are none and the clock is low, "
    "it is power or heat; else the kernels themselves are others",
)


def next_experiment(account: Account | None) -> Experiment | None:
    """The experiment for a difference on this account; `account` None means all that is busy. None: we know of none."""
    return BUSY if account is None else NEXT.get(account)
