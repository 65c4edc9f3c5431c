"""What is known of each cause before any run: how it shows, which gauge proves it, what to change, and its lesson.

The rules take account, threshold, change and lesson from here, and so does the cheat sheet: the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpututor.causes.finding import Cause
from gpututor.causes.thresholds import Thresholds
from gpututor.ledger import Account


@dataclass(frozen=True, slots=True)
class Known:
    """One cause. Texts are Markdown without a capital letter or a full stop, but for `change`, which is sentences.

    `symptom` is what somebody sees who has no ledger, `gauge` the reading that proves it. `accounts` are the ledger's
    that it explains, the main one first; they are empty where it is about the timeline itself. `least` is the share of
    the window from which it is named, where a share decides. `lesson` is the number of the lesson about it.
    `part_of` is the account of which it explains a part: what is named so is not told again by that account's cause.
    """

    symptom: str
    gauge: str
    change: str
    lesson: int
    accounts: tuple[Account, ...] = ()
    least: Callable[[Thresholds], float] | None = None
    part_of: Account | None = None


def _idle(limits: Thresholds) -> float:
    return limits.idle_share


KNOWN: Mapping[Cause, Known] = {
    Cause.WAITING_FOR_INPUT: Known(
        "the GPU idles before a step's first kernel, while CPU cores work",
        "a pass over the loader without the model: it takes as long as training",
        "Prepare batches ahead of time: more loader workers (`num_workers`), `persistent_workers=True`, less work for "
        "each sample. If the data already sits in memory, slice whole batches instead; workers would make it slower.",
        6,
        (Account.WAITING_FOR_INPUT,),
        _idle,
    ),
    Cause.LAUNCH_BOUND: Known(
        "the host is busy, the GPU in crumbs",
        "a typical kernel runs for less time than the host needs for a launch; a larger batch takes no longer",
        "Give each launch more work: a larger batch first. Then fewer launches: fused or `foreach` optimizers, "
        "`torch.compile`, CUDA graphs, a cuDNN layer instead of a Python loop.",
        10,
        (Account.LAUNCH_OVERHEAD,),
        _idle,
    ),
    Cause.BLOCKING_SYNCS: Known(
        "the host stands in `.item()`, `print` or `.cpu()`",
        "syncs a step, and a gap behind each before the next kernel",
        "Ask for values less often: keep the loss on the GPU and read it every 50 steps, not with `.item()` in each; "
        "look for hidden ones too (`print` of a tensor, boolean masks, `.cpu()`, a tensor used as a shape). Measure "
        "after each removal: a wait may only move to the next line that needs the result.",
        9,
        (Account.BLOCKING_SYNC,),
        _idle,
    ),
    Cause.EXPOSED_COPY: Known(
        "a copy with no kernel beside it",
        "copies to the GPU in the timeline, and whether their memory is pinned",
        "Hide the trip: `pin_memory=True` and `.to(device, non_blocking=True)` one batch ahead. Send less: uint8 "
        "images or half precision, converted on the GPU. Many small copies cost more than one large copy.",
        8,
        (Account.EXPOSED_COPY,),
        _idle,
    ),
    Cause.EXPOSED_COMMUNICATION: Known(
        "more cards, hardly more samples a second",
        "an all-reduce with no kernel beside it; which rank arrives last",
        "Talk less often: a larger batch on each GPU, or gradient accumulation inside `no_sync()`. Check the link "
        "between the cards, and whether one card is given longer samples than the others.",
        16,
        (Account.EXPOSED_COMMUNICATION,),
        _idle,
    ),
    Cause.STRAGGLING_RANK: Known(
        "collectives last longer on one card than on another",
        "which rank starts the same collective last",
        "Look at what the last rank does more of: longer samples, a slower loader, logging. Give all ranks equal work.",
        16,
        part_of=Account.EXPOSED_COMMUNICATION,
        least=_idle,
    ),
    Cause.COMPILING: Known(
        "steps of seconds at first, single ones again later",
        "marks of `torch.compile`; `TORCH_LOGS=recompiles`",
        "Look at later steps. If it goes on: fixed shapes, or `mark_dynamic`; try out kernels for fixed shapes only.",
        14,
        part_of=Account.START_UP,
        least=_idle,
    ),
    Cause.START_UP: Known(
        "the first steps take longest, or single ones again and again",
        "time of the first steps apart from the rest; new shapes",
        "If you want the speed of a long run, look at a window that begins after the first steps. If it goes on, "
        "something is compiled or tuned again and again: keep shapes fixed, or switch `cudnn.benchmark` off.",
        14,
        (Account.START_UP,),
        _idle,
    ),
    Cause.GARBAGE_COLLECTION: Known(
        "single steps are longer, seemingly at random",
        "`gc.collect` in a trace with `with_stack=True`",
        "`gc.disable()`, then `gc.collect()` every some hundred steps, on all ranks in the same one.",
        15,
        part_of=Account.PAUSE,
        least=_idle,
    ),
    Cause.PROFILING: Known(
        "steps are slower with the profiler than without",
        "overhead records in the trace",
        "Nothing in the job: without the profiler it is gone. Record after a warm-up, and without `with_stack`.",
        15,
        part_of=Account.PAUSE,
        least=_idle,
    ),
    Cause.PAUSES: Known(
        "good steps, poor hours",
        "first step to last by the clock, against the sum of the steps",
        "Do it less often, do less of it, or do it elsewhere: evaluate on a part, write checkpoints from a thread.",
        15,
        (Account.PAUSE,),
        _idle,
    ),
    Cause.TOO_SMALL_TO_FILL: Known(
        "GPU-Util is high, yet little power is drawn",
        "blocks of a typical kernel against the card's SMs",
        "Make each kernel larger: a larger batch, wider layers, several sequences at once. Depth doesn't help; layers "
        "run one after another. Or take a smaller, cheaper card, which this job would fill.",
        5,
        (Account.TOO_FEW_BLOCKS, Account.LAST_WAVE_TAIL),
        lambda limits: limits.unfilled_share,
    ),
    Cause.MEMORY_BOUND: Known(
        "bytes set the time: a card with more FLOP is no faster",
        "FLOP for each byte moved, against peak over bandwidth of the card",
        "Move fewer bytes: let `torch.compile` fuse element-wise chains, use half precision, `channels_last` for "
        "convolutions, fused attention and optimizers. A card with more bandwidth helps, one with more FLOP doesn't.",
        13,
        (Account.MEMORY_BOUND,),
        lambda limits: limits.memory_share,
    ),
    Cause.SLOWER_FORMAT: Known(
        "products in fp32 on a card that has something faster",
        "number format of most FLOP, and the card's peak in it",
        "Let `torch.autocast` run matrix products in 2 bytes: bf16, or fp16 with a gradient scaler. On cards with "
        'TF32, `torch.set_float32_matmul_precision("high")` is the smaller step. Then check that the loss still falls '
        "alike.",
        11,
        (Account.SLOWER_FORMAT,),
        lambda limits: limits.format_share,
    ),
    Cause.RECOMPUTE_AND_PADDING: Known(
        "much work, few samples",
        "share of padding in a batch; FLOP done against FLOP that the result needs",
        "Put samples of like length together (bucketing, packing), and checkpoint only where memory is short.",
        14,
        (Account.RECOMPUTE_AND_PADDING,),
        lambda limits: limits.repeated_share,
    ),
    Cause.NONE_FOUND: Known(
        "a gauge short of its stop, and no account that stands out",
        "busy, SM fill and MFU side by side",
        "Leave it, or choose a faster card or a smaller model; no single account is large enough to be worth work.",
        1,
    ),
    Cause.CANNOT_TELL: Known(
        "the GPU does nothing at all, or idles and nobody knows why",
        "kernels and host calls in the recording; `gpututor doctor`",
        "Check that model and batch are on the GPU, record several steps and host activity too, and look for other "
        "programs on the card.",
        17,
        (Account.UNKNOWN_IDLE,),
        lambda limits: limits.unknown_share,
    ),
    Cause.TIMER_SUSPECT: Known(
        "a step faster than the card can be",
        "kernels that end after the clock has stopped; FLOP a second above the card's peak",
        "Call `torch.cuda.synchronize()` before each reading of the clock, or time with CUDA events. Without it you "
        "time the launches, not the work.",
        9,
    ),
}
"""Every cause."""


def cause_of(account: Account) -> Cause | None:
    """The cause that explains an account; None for useful work and for accounts that no rule speaks about."""
    return next((cause for cause, known in KNOWN.items() if account in known.accounts), None)
