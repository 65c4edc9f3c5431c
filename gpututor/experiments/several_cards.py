"""Lesson 16: one job on one to eight cards, spread in several ways.

How long a step takes is asked of GPT-2 by its shapes: its arithmetic would take a laptop minutes. What is learned
is asked of a small network, of which every card's copy really trains. Whatever joins the cards is chosen on the page.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

SEQUENCES, LENGTH = 16, 512  # of a step of all cards together
COUNTS = (2, 4, 8)
MOST = COUNTS[-1]
BUCKETS_MB = (1, 5, 100, 1000)  # torch's own, 25, is the plain way
N_MICRO = 8
PAIR_SEQUENCES, PAIR_LENGTH = 4, 1024  # transformers issue 9371: run_clm.py, 4 a card, GPT-2's whole length
PICTURES = 128  # imagenet-multiGPU.torch's usual batch
PAPER_RANKS, PAPER_PICTURES = 32, 32  # the DDP paper's cluster; its pictures a card aren't told where we looked
WIDE = 8  # times the batch, where each card keeps what one had
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card
WHAT = "lesson 16, several cards"


def _gpt2(n_cards: int, sequences: int, length: int, spread: dict[str, Any], device: torch.device) -> Step:
    from gpututor.jobs.several_cards import Way, gpt2

    return gpt2(sequences // n_cards, length, Way(**spread), device)


def _alexnet(spread: dict[str, Any], device: torch.device) -> Step:
    from gpututor.jobs.several_cards import Way, alexnet

    return alexnet(PICTURES, Way(**spread), device)


def _resnet(spread: dict[str, Any], device: torch.device) -> Step:
    from gpututor.jobs.several_cards import Way, resnet50

    return resnet50(PAPER_PICTURES, Way(**spread), device)


def _learning(batch: int, spread: dict[str, Any], device: torch.device) -> Step:
    from gpututor.jobs.several_cards import Way, learning

    return learning(Way(**spread), batch, device)  # type: ignore[no-any-return]


def timed(key: str, label: str, n: int, *, sequences: int = SEQUENCES, length: int = LENGTH, **spread: Any) -> Variant:
    """GPT-2 on `n` cards, each a process of its own unless `data_parallel` of one process are named."""
    in_one = spread.get("data_parallel", 1)
    samples = sequences * spread.get("n_micro", 1)
    make = partial(_gpt2, n if in_one == 1 else 1, sequences, length, spread)
    ranks = n if in_one == 1 else 1
    return Variant(key, label, make, n, samples, 1, 2, numerics=False, n_kept=1, n_cards=in_one, n_ranks=ranks)


def learned(key: str, label: str, n: int, n_steps: int, batch: int, **spread: Any) -> Variant:
    """The small network on `n` cards."""
    in_one = spread.get("data_parallel", 1)
    ranks = n if in_one == 1 else 1
    make = partial(_learning, batch, spread)
    return Variant(key, label, make, n, batch, n_steps, 0, n_kept=4, n_cards=in_one, n_ranks=ranks)


def gpt2_variants() -> list[Variant]:
    """GPT-2 on one to eight cards, with larger and smaller buckets, with several backward passes, and for threads."""
    words = "{} cards"
    found = [timed("one", "1 card", 1)]
    found += [timed(f"ddp-{n}", words.format(n), n) for n in COUNTS]
    found += [timed(f"dp-{n}", f"{n} cards, DataParallel", n, data_parallel=n) for n in COUNTS]
    found += [timed(f"bucket-{mb}", f"buckets of {mb:,} MB", MOST, bucket_mb=mb) for mb in BUCKETS_MB]
    found += [
        timed("each", "exchange after each backward", MOST, n_micro=N_MICRO, every=True),
        timed("last", "no_sync, exchange after the last", MOST, n_micro=N_MICRO),
        timed("alike", f"{MOST} cards, {SEQUENCES} sequences each", MOST, sequences=SEQUENCES * MOST),
    ]
    pair = {"sequences": PAIR_SEQUENCES, "length": PAIR_LENGTH}
    both = {**pair, "sequences": 2 * PAIR_SEQUENCES}
    found += [
        timed("pair-one", "1 card, its own batch", 1, **pair),
        timed("pair-ddp", "2 cards, two batches", 2, **both),
        timed("pair-dp", "2 cards, two batches, DataParallel", 2, data_parallel=2, **both),
    ]
    return found


def picture_variants() -> list[Variant]:
    """For threads: AlexNet on one card and on four of one process, ResNet-50 on 32 with and without small buckets."""
    options: dict[str, Any] = {"n_steps": 1, "n_warmup": 2, "numerics": False, "n_kept": 1}
    four: dict[str, Any] = {"data_parallel": 4}
    found = [
        Variant("alexnet-one", "AlexNet, 1 card", partial(_alexnet, {}), 1, PICTURES, **options),
        Variant("alexnet-dp", "AlexNet, 4 cards", partial(_alexnet, four), 4, PICTURES, n_cards=4, **options),
    ]
    for key, how, spread in (
        ("paper-small", "usual buckets", {}),
        ("paper-whole", "one bucket", {"bucket_mb": BUCKETS_MB[-1]}),
    ):
        make, samples = partial(_resnet, spread), PAPER_PICTURES * PAPER_RANKS
        label = f"ResNet-50, {PAPER_RANKS} cards, {how}"
        found.append(Variant(key, label, make, PAPER_RANKS, samples, n_ranks=PAPER_RANKS, **options))
    return found


def learned_variants(n_steps: int) -> list[Variant]:
    """The small network in each way, for `n_steps` of 64 pictures; where the batch is larger, for as many pictures."""
    batch = 64
    return [
        learned("learn-one", f"1 card, {batch} pictures", 1, n_steps, batch),
        learned("learn-dp-2", "DataParallel, 2 cards", 2, n_steps, batch, data_parallel=2),
        learned("learn-ddp-2", "DDP, 2 cards", 2, n_steps, batch),
        learned("learn-ddp-8", "DDP, 8 cards", MOST, n_steps, batch),
        learned("learn-last", "DDP, 2 cards, 2 parts, no_sync", 2, n_steps, batch, n_micro=2),
        learned("learn-wide", f"DDP, 8 cards, {batch} each", MOST, max(1, n_steps // WIDE), batch * WIDE),
    ]


def measure(progress: Progress, *, device: str = "cpu", n_steps: int = 60) -> dict[str, Any]:
    """The small network on this computer, in one process and in two that torchrun starts; see `torchrun.measure`."""
    from gpututor.experiments import torchrun

    return torchrun.measure(progress, device=device, n_steps=n_steps)


def run(progress: Progress, *, n_steps: int = 64, machine: str = RUN_ON) -> dict[str, Any]:
    """All of it on simulated cards; see `sweeps.simulate`."""
    variants = [*gpt2_variants(), *picture_variants(), *learned_variants(n_steps)]
    return sweeps.simulate(progress, variants, what=WHAT, machine=machine)
