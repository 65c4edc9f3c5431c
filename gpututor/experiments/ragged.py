"""Lesson 14: texts of many lengths in batches, for a network that reads word by word and one that reads all at once.

What is learned, and that it is the same, is asked of a small LSTM that really trains. How long a step takes is asked of
GPT-2 by its shapes, on one card and as one of several; and of convolutions what new shapes cost at first.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.length_plans import BATCH, Plan, Way, lengths_in, plan
from gpututor.experiments.sweeps import Step, Variant
from gpututor.jobs.lengths import MOST, drawn
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

SHORTER = 8  # the LSTM's texts are an eighth as long, so that a laptop can read them
N_TEXTS, N_LONG = 512, 96
N_EPOCHS = 2  # times that the LSTM reads all of its texts
BUDGET = 2048  # positions of GPT-2's batches, a quarter of what eight of the longest texts take
COUNTED = "counted"
N_RANKS = 4
N_SHAPES, MULTIPLE = 40, 128
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("as it is", {}),
    "search": ("cudnn.benchmark", {"searches": True}),
    "search-rounded": (f"cudnn.benchmark, multiples of {MULTIPLE}", {"searches": True, "multiple": MULTIPLE}),
    "compiled-fixed": ("compiled, dynamic=False", {"options": {"dynamic": False}}),
    "compiled": ("compiled", {"options": {}}),
    "compiled-rounded": (
        f"compiled, dynamic=False, multiples of {MULTIPLE}",
        {"options": {"dynamic": False}, "multiple": MULTIPLE},
    ),
}
"""How the convolutions are run on batches of changing length, by key: what a reader sees, and the job's arguments."""
THREADS_SIZES = (400, 600)  # rows and columns of pictures in pytorch/pytorch#2759
N_PICTURES = 10
WHAT = "lesson 14, ragged sequences"


@lru_cache(maxsize=8)
def short_texts(n: int = N_TEXTS) -> tuple[int, ...]:
    """Lengths of the texts that the LSTM learns from."""
    return tuple(drawn(n, shorter=SHORTER))


@lru_cache(maxsize=8)
def long_texts(n: int = N_LONG) -> tuple[int, ...]:
    """Lengths of the texts that GPT-2 reads."""
    return tuple(drawn(n, seed=1))


def short_plan(way: Way, n: int = N_TEXTS) -> Plan:
    """The LSTM's batches."""
    return plan(way, short_texts(n), budget=BUDGET // SHORTER)


def long_plan(way: Way, n: int = N_LONG) -> Plan:
    """GPT-2's batches."""
    return plan(way, long_texts(n), budget=BUDGET)


def _reader(way: Way, n: int, counted: bool, device: torch.device) -> Step:
    from gpututor.jobs.ragged import ReaderJob

    width = MOST // SHORTER if way is Way.FIXED else 0
    batches = short_plan(way, n)
    return ReaderJob(device, short_texts(n), batches, width=width, packed=way is Way.PACKED, counted=counted)


def _gpt2(way: Way, n: int, device: torch.device) -> Step:
    from gpututor.jobs.ragged import Gpt2Job

    width = MOST if way is Way.FIXED else 0
    return Gpt2Job(device, lengths_in(long_plan(way, n), long_texts(n)), width=width)


def learned(n: int = N_TEXTS, n_epochs: int = N_EPOCHS) -> list[Variant]:
    """The LSTM on every text, in each way, and with the padding in its loss; all to one length by shape only.

    Texts that are all filled up to one length teach what they teach when filled up to the longest of the batch. The
    tape is that of the last time through.
    """
    named = [(way.key, way.value, way, False) for way in Way]
    named.append((COUNTED, f"{Way.SHUFFLED.value}, padding in the loss", Way.SHUFFLED, True))
    found = []
    for key, label, way, counted in named:
        once = len(short_plan(way, n))
        make, real = partial(_reader, way, n, counted), way is not Way.FIXED
        n_steps = once * n_epochs if real else once
        found.append(Variant(f"lstm-{key}", label, make, None, BATCH, n_steps, 0, numerics=real, n_kept=once))
    return found


WHOLE = (Way.FIXED, Way.SHUFFLED, Way.BUCKETED, Way.TOKENS)
SPREAD = (Way.SHUFFLED, Way.BUCKETED, Way.TOKENS)


def timed(n: int = N_LONG) -> list[Variant]:
    """GPT-2 on every text, in each way that it can be."""
    return [
        Variant(f"gpt2-{way.key}", way.value, partial(_gpt2, way, n), None, BATCH, len(long_plan(way, n)), 0, False)
        for way in WHOLE
    ]


def ranks(n: int = N_LONG) -> list[Variant]:
    """The same as one of several processes does it; step k is batch number k, to be dealt to the ranks on the page."""
    return [
        Variant(
            f"ddp-{way.key}",
            f"{way.value}, on several cards",
            partial(_gpt2, way, n),
            None,
            BATCH * N_RANKS,
            len(long_plan(way, n)),
            2,  # DDP arranges its buckets there
            False,
            n_ranks=N_RANKS,
        )
        for way in SPREAD
    ]


def _frames(mode: str, widths: tuple[int, ...], device: torch.device) -> Step:
    from gpututor.jobs.ragged import FramesJob

    return FramesJob(device, BATCH, widths, **MODES[mode][1])


def shapes(n: int = N_SHAPES) -> list[Variant]:
    """Convolutions over batches whose length changes, in each mode, from the very first step on."""
    lengths = drawn(n * BATCH, seed=2)
    widths = tuple(max(lengths[k * BATCH : (k + 1) * BATCH]) for k in range(n))
    return [
        Variant(f"frames-{mode}", label, partial(_frames, mode, widths), None, BATCH, n, 0, False)
        for mode, (label, _) in MODES.items()
    ]


def _pictures(sizes: tuple[tuple[int, int], ...], device: torch.device) -> Step:
    from gpututor.jobs.ragged import ForwardJob

    return ForwardJob(device, sizes)


def thread() -> list[Variant]:
    """pytorch/pytorch#2759: cuDNN searches for every new size of a picture."""
    least, most = THREADS_SIZES
    chance = random.Random(0)
    changing = tuple((chance.randrange(least, most), chance.randrange(least, most)) for _ in range(N_PICTURES))
    always = ((most, most),) * N_PICTURES
    return [
        Variant(f"resnet-{key}", label, partial(_pictures, sizes), None, 1, N_PICTURES - 2, 2, False)
        for key, label, sizes in (
            ("fixed", "pictures of one size", always),
            ("changing", "pictures of many sizes", changing),
        )
    ]


def variants(n_texts: int = N_TEXTS, n_long: int = N_LONG, n_shapes: int = N_SHAPES) -> list[Variant]:
    """GPT-2 on one card and on several, the convolutions, the thread, and the LSTM that learns."""
    found = [*timed(n_long), *ranks(n_long), *shapes(n_shapes), *thread(), *learned(n_texts)]
    return [_whole(each) for each in found]


def _whole(variant: Variant) -> Variant:
    """All of its steps kept, unless it says how many: they differ, so none stands for the others."""
    return replace(variant, n_kept=variant.n_kept or variant.n_steps)


def run(progress: Progress, *, machine: str = sweeps.MACHINE, **chosen: Any) -> dict[str, Any]:
    """All of it on the simulated card; `chosen` as for `variants`, see `sweeps.simulate`."""
    return sweeps.simulate(progress, variants(**chosen), what=WHAT, machine=machine)


def measure(progress: Progress, *, device: str = "cuda", n_texts: int = 96) -> dict[str, Any]:
    """The LSTM's ways on this computer, and on a GPU those of GPT-2 too."""
    chosen = learned(n_texts, 1)[: len(Way)] + ([] if device == "cpu" else timed(24))
    return sweeps.measure(progress, chosen, what=WHAT, device=device)
