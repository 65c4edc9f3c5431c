"""Lesson 9: one training loop watched in many ways, the same at many lengths, and a detector that asks very often.

The losses are the same whoever watches. What differs is how often the host waits for the card, and how far ahead it
was when it began to wait.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpututor.experiments import sweeps
from gpututor.experiments.sweeps import Step, Variant
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

    from gpututor.jobs.habits import Habit
    from gpututor.jobs.matching import Loss

LENGTH = 96  # characters a line that the job trains with; jobs.characters has the same, but loads torch
LENGTHS = (8, 16, 32, 48, 64, 96, 160, 256)
N_STEPS, N_KEPT = 20, 10  # as many kept as lie between two readings of those who read every tenth
N_SWEPT, N_MATCHED = 4, 4
WATCHED = ("silent", "both")  # at every length
MATCHED = ("one-by-one", "one-transfer", "together")
STRETCH = 10  # steps in a row that are timed as one on a real device: a wait after each would make all habits alike
WHAT = "a loop that reads its loss"


def at_length(key: str, length: int) -> str:
    """The key of a habit at one of `LENGTHS`.

    >>> at_length("item", 48)
    'item-48'
    """
    return f"{key}-{length}"


def _watched(habit: Habit) -> Variant:
    """A habit, really trained at the job's own length."""
    from gpututor.jobs.characters import BATCH

    return Variant(habit.key, habit.label, _training(habit, LENGTH), LENGTH, BATCH * LENGTH)


def _swept(habit: Habit, length: int) -> Variant:
    """A habit at another length, followed by shapes only."""
    from gpututor.jobs.characters import BATCH

    label = f"{length} characters, {habit.label}"
    return Variant(
        at_length(habit.key, length),
        label,
        _training(habit, length),
        length,
        BATCH * length,
        n_steps=N_SWEPT,
        n_warmup=1,
        numerics=False,
    )


def _training(habit: Habit, length: int) -> Any:
    def make(device: torch.device) -> Step:
        from gpututor.jobs.habits import Training

        return Training(habit, device, length).step

    return make


def _matched(key: str, label: str, loss: Loss) -> Variant:
    def make(device: torch.device) -> Step:
        from gpututor.jobs.matching import Detector

        return Detector(loss, device).step

    return Variant(key, label, make, n_steps=N_MATCHED, n_warmup=1)


def habits() -> list[Variant]:
    """Every habit at the job's length."""
    from gpututor.jobs.habits import HABITS

    return [_watched(habit) for habit in HABITS]


def lengths() -> list[Variant]:
    """Two of the habits at every length."""
    from gpututor.jobs.habits import HABITS

    chosen = [habit for habit in HABITS if habit.key in WATCHED]
    return [_swept(habit, length) for length in LENGTHS for habit in chosen]


def matchings() -> list[Variant]:
    """The ways to bring a detector's tables to the host."""
    from gpututor.jobs.matching import MATCHINGS

    return [_matched(*each) for each in MATCHINGS]


def run(progress: Progress, *, machine: str = sweeps.MACHINE, n_steps: int = N_STEPS) -> dict[str, Any]:
    """Train every habit, the lengths and the matchings on a simulated card; see `sweeps.simulate`."""
    variants = [*habits(), *lengths(), *matchings()]
    return sweeps.simulate(progress, variants, what=WHAT, machine=machine, n_steps=n_steps, n_kept=N_KEPT)


def measure(progress: Progress, *, device: str = "cuda", n_stretches: int = 3) -> dict[str, Any]:
    """Train the habits and the matchings on this computer; see `sweeps.measure` for what comes back.

    `STRETCH` steps are timed as one and step_ns is a tenth of that; a loss is that of the last step of a stretch.
    """
    variants = [_in_stretches(each) for each in (*habits(), *matchings())]
    data = sweeps.measure(progress, variants, what=WHAT, device=device, n_steps=n_stretches, n_warmup=1)
    for point in data["points"]:
        point["step_ns"] = None if point["step_ns"] is None else point["step_ns"] / STRETCH
    return data


def _in_stretches(variant: Variant) -> Variant:
    def make(device: torch.device) -> Step:
        step = variant.make(device)

        def stretch(k: int) -> Any:
            return [step(k * STRETCH + inside) for inside in range(STRETCH)][-1]

        return stretch

    return replace(variant, make=make, n_steps=None, n_warmup=None)
