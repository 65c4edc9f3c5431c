"""Lesson 15: a training with its pauses, switches that were left on, steps that grow, collections, and graphs kept.

The training, the loop that grows and the collections are computed; the rest follows shapes only. Files, histograms and
collections are really made on this computer, and their time stands on the tape as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

    from gpututor.jobs.pausing import Epochs

WHAT = "lesson 15, pauses"
EVERY, N_EPOCHS = 40, 2  # steps of an epoch (jobs.pausing has the same, but loads torch), and epochs that are trained
TRAINED = ("silent", "found", "often", "tidy")
LEFT_ON = ("off", "blocking", "anomaly", "deterministic", "unfilled", "profiler", "emptied")
N_PICTURES = 32  # a step of ResNet-50
N_GROWN = 160
GREW = ("all", "report", "last")
DILATED = ("off", "deterministic")
COLLECTED = ("collected-none", "collected-many", "collected-frozen")
VALIDATED = ("graphs", "no-graphs")
N_VALIDATED = 12  # batches
RUN_ON = "H100-SXM"  # its memory holds all of it; the page prices what was done on any other card


def small_key(switch: str) -> str:
    """Names a training step of the small network with this switch."""
    return f"small-{switch}"


def resnet_key(switch: str) -> str:
    """Names one of ResNet-50."""
    return f"resnet-{switch}"


def dilated_key(switch: str) -> str:
    """Names one of the dilated convolutions."""
    return f"dilated-{switch}"


def grown_key(way: str) -> str:
    """Names a loop that may grow."""
    return f"grown-{way}"


def _trained(epochs: Epochs, n_epochs: int, every: int) -> Variant:
    from gpututor.jobs.pausing import BATCH

    def make(device: torch.device) -> Step:
        from gpututor.jobs.pausing import PausedTraining

        return PausedTraining(epochs, device)

    return Variant(epochs.key, epochs.label, make, every, BATCH, n_epochs * every, 0, n_kept=every)


def trained(n_epochs: int = N_EPOCHS) -> list[Variant]:
    """The training alone, with its pauses as they were found, four times as often, and tidied up."""
    from gpututor.jobs.pausing import EPOCHS

    return [_trained(each, 1 if each.key == "often" else n_epochs, EVERY) for each in EPOCHS]


def _switched(job: str, switch: str, n_steps: int) -> Variant:
    def make(device: torch.device) -> Step:
        from gpututor.jobs import switches

        if job == "resnet":
            return switches.resnet50(device, switch, N_PICTURES)
        return (switches.deep if job == "small" else switches.dilated)(device, switch)

    environ = {"CUDA_LAUNCH_BLOCKING": "1"} if switch == "blocking" else {}
    key = f"{job}-{switch}"
    return Variant(key, f"{job}, {switch}", make, None, None, n_steps, 1, numerics=False, n_kept=1, environ=environ)


def switched(left_on: Sequence[str] = LEFT_ON, *, resnet: bool = True) -> list[Variant]:
    """Training steps with each switch on: of a small network, of ResNet-50, and of dilated convolutions."""
    chosen = [_switched("small", switch, 2) for switch in left_on]
    if resnet:
        chosen += [_switched("resnet", switch, 1) for switch in left_on]
    return chosen + [_switched("dilated", switch, 1) for switch in DILATED if switch in left_on]


def grown(n_steps: int = N_GROWN) -> list[Variant]:
    """The loop that goes through all of its losses, one that rewrites a page, and one that does neither."""

    def make(way: str, device: torch.device) -> Step:
        from gpututor.jobs.growing import GrowingTraining

        return GrowingTraining(way, device)

    labels = {"all": "sum(losses) / len(losses)", "report": "a page rewritten", "last": "a running mean"}
    return [
        Variant(grown_key(way), labels[way], partial(make, way), None, None, n_steps, 2, n_kept=n_steps) for way in GREW
    ]


def collections(n_samples: int | None = None) -> list[Variant]:
    """Steps after which garbage is collected: beside no data set, beside many objects, and with those frozen."""
    from gpututor.jobs.switches import N_SAMPLES

    many = N_SAMPLES if n_samples is None else n_samples

    def make(n: int, frozen: bool, device: torch.device) -> Step:
        from gpututor.jobs.switches import Collecting

        return Collecting(device, n_samples=n, frozen=frozen)

    kinds = ((0, False), (many, False), (many, True))
    return [
        Variant(key, f"gc.collect() after each step, {n:,} samples{', frozen' if frozen else ''}",
                partial(make, n, frozen), n, None, 2, 0, n_kept=2)
        for key, (n, frozen) in zip(COLLECTED, kinds, strict=True)
    ]  # fmt: skip


def validated(n_batches: int = N_VALIDATED) -> list[Variant]:
    """A validation of ResNet-50 that keeps every graph, and one that makes none."""

    def make(graphs: bool, device: torch.device) -> Step:
        from gpututor.jobs.switches import Validated

        return Validated(device, graphs=graphs, n=n_batches, batch=N_PICTURES)

    return [
        Variant(key, f"a validation {'with' if key == 'graphs' else 'without'} graphs", partial(make, key == "graphs"),
                n_batches, n_batches * N_PICTURES, 1, 0, numerics=False)
        for key in VALIDATED
    ]  # fmt: skip


def variants(
    n_epochs: int = N_EPOCHS,
    left_on: Sequence[str] = LEFT_ON,
    n_grown: int = N_GROWN,
    n_samples: int | None = None,
    *,
    resnet: bool = True,
) -> list[Variant]:
    """All of the lesson's, the training first."""
    chosen = [*trained(n_epochs), *switched(left_on, resnet=resnet), *grown(n_grown), *collections(n_samples)]
    return [*chosen, *validated()] if resnet else chosen


def run(progress: Progress, *, machine: str = RUN_ON, **chosen: Any) -> dict[str, Any]:
    """All of it on the simulated card; `chosen` as for `variants`, see `sweeps.simulate`."""
    return sweeps.simulate(progress, variants(**chosen), what=WHAT, machine=machine)


def measure(progress: Progress, *, device: str = "cuda") -> dict[str, Any]:
    """Steps with the switches that torch itself has, on this computer; see `sweeps.measure`."""
    here = ("off", "anomaly", "deterministic", "profiler", *(() if device == "cpu" else ("emptied",)))
    chosen = switched(here, resnet=device != "cpu")
    return sweeps.measure(progress, chosen, what=WHAT, device=device, n_steps=10)
