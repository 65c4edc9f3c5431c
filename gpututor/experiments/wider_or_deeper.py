"""Lesson 5: the asker's own question. His translator, wider or deeper, one sentence a step and in a batch.

The sizes that the guess is about really train; of the others only shapes are followed, since what a step takes
doesn't depend on the numbers in it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.jobs.tutorial import HIDDEN
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

WHAT = "translator"
N_STEPS = 40  # sentences that a size trains on
FACTORS = (2, 4, 8)
ASKED_FACTOR = 16  # the width that only exercise 5.1 asks for
BATCHES = (1, 64)
WAYS = {"wide": "wider", "deep": "deeper, in one call", "each": "deeper, a call each"}
TRAINED = ("base", "wide_2", "deep_2")
BENCHMARK = {"batch": 20, "length": 30}  # glample/rnn-benchmarks, README: 20 sequences of 30
BENCHMARK_UNITS = (100, 500)


def key_of(way: str, factor: int, batch: int = 1) -> str:
    """The name of a size's tape; `factor` 1 is the tutorial's size whatever the way.

    >>> key_of("wide", 2), key_of("deep", 1), key_of("each", 4, 64)
    ('wide_2', 'base', 'each_4_batch_64')
    """
    name = "base" if factor == 1 else f"{way}_{factor}"
    return name if batch == 1 else f"{name}_batch_{batch}"


def label_of(way: str, factor: int) -> str:
    """What a reader calls a size.

    >>> label_of("wide", 4), label_of("deep", 2), label_of("each", 2), label_of("deep", 1)
    ('1024 units', '2 layers, one call', '2 layers, a call each', '256 units, 1 layer')
    """
    if factor == 1:
        return f"{HIDDEN} units, 1 layer"
    if way == "wide":
        return f"{factor * HIDDEN} units"
    return f"{factor} layers, {'one call' if way == 'deep' else 'a call each'}"


def _made(way: str, factor: int, batch: int, device: torch.device) -> Step:
    from gpututor.jobs.translator import TranslatorJob

    wider, deeper = (factor, 1) if way == "wide" else (1, factor)
    return TranslatorJob(
        device, hidden=HIDDEN * wider, layers=deeper, batch=batch, a_call_each=way == "each" and factor > 1
    )


def _variant(way: str, factor: int, batch: int = 1) -> Variant:
    """One size; the host never gets ahead of the card by more than a step, so one kept step says all."""
    key = key_of(way, factor, batch)
    trains = key in TRAINED
    return Variant(
        key,
        label_of(way, factor),
        partial(_made, way, factor, batch),
        factor,
        batch,
        None if trains else 1,
        numerics=trains,
        n_kept=1,
    )


def _benchmark(units: int) -> Variant:
    """What a public benchmark timed with small and large layers: an LSTM whose cell is called word by word."""

    def make(device: torch.device) -> Step:
        from gpututor.jobs.next_word import NextWordJob

        return NextWordJob(device, "loop", width=units, **BENCHMARK).step

    return Variant(f"units_{units}", f"An LSTM of {units} units", make, units, None, 1, numerics=False, n_kept=1)


def variants() -> list[Variant]:
    """The tutorial's size, then every way and factor for each batch; those of the guess come first."""
    sizes = [
        (way, factor, batch)
        for batch in BATCHES
        for factor in (1, *FACTORS)
        for way in (WAYS if factor > 1 else ["wide"])
    ]
    first = sorted(sizes, key=lambda size: key_of(*size) not in TRAINED)
    return [*(_variant(*size) for size in [*first, ("wide", ASKED_FACTOR, 1)]), *map(_benchmark, BENCHMARK_UNITS)]


def run(progress: Progress, *, machine: str = sweeps.MACHINE, n_steps: int = N_STEPS) -> dict[str, Any]:
    """Train and time every size on `machine`'s simulated card; see `sweeps.simulate`."""
    return sweeps.simulate(progress, variants(), what=WHAT, machine=machine, n_steps=n_steps)


def measure(progress: Progress, *, device: str = "cuda", n_steps: int = 10) -> dict[str, Any]:
    """Train the tutorial's size, and twice of it in every way, on this computer; see `sweeps.measure`."""
    sizes = [_variant("wide", 1), *(_variant(way, 2) for way in WAYS)]
    return sweeps.measure(progress, sizes, what=WHAT, device=device, n_steps=n_steps)
