"""Lesson 18: forty nights of one job, kept in a run history; the job as it learns; and a run that is watched.

The job really trains, once in each of its forms. What the nights are follows from a seed (`nights`), and the page
prices them on whatever card is chosen.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.event_file import EventFile
from gpututor.experiments import sweeps
from gpututor.experiments.nights import N_SAMPLES, entry_of, has_all, ledger_of, nights
from gpututor.experiments.sweeps import MACHINE, Step, Variant
from gpututor.experiments.watched_run import WATCH_S, watch_a_run
from gpututor.history import History
from gpututor.history.book import FILE
from gpututor.lookup import machine_named
from gpututor.progress import Progress

if TYPE_CHECKING:
    import torch

    from gpututor.measure.nvml import Summary

WHAT = "lesson 18, one job in its forms"
N_LEARNED = 24  # steps of the usual form: an epoch and a half
N_KEPT = 1  # each step waits for its loss, so one is like the next, and forty nights are priced at once
FEWEST = 2  # steps of a form that is only to be priced
N_AGAIN = 4  # times more that the usual form is measured on the reader's machine
N_WATCHED = 40  # what the watch counts as, beside the steps
LABELS = {"usual": "As usual", "reads": "Reads its gradients", "larger": "Twice the batch"}


def _make(form: str, device: torch.device) -> Step:
    from gpututor.jobs.nightly import Nightly

    return Nightly(device, N_SAMPLES[form], reads=form == "reads")


def variant(form: str, n_steps: int, *, key: str = "", label: str = "") -> Variant:
    """The job in one of its forms."""
    made = partial(_make, form)
    return Variant(key or form, label or LABELS[form], made, n_samples=N_SAMPLES[form], n_steps=n_steps, n_kept=N_KEPT)


def forms(n_learned: int = N_LEARNED) -> tuple[Variant, ...]:
    """Every form; the larger batch learns from as many samples, and the one that reads learns as the usual one does."""
    return (variant("usual", n_learned), variant("reads", FEWEST), variant("larger", max(FEWEST, n_learned // 2)))


class _First(Progress):
    """The progress of a first part, beside `n_after` steps of what comes after it."""

    def __init__(self, whole: Progress, n_after: int) -> None:
        super().__init__(results_dir=whole.results_dir)
        self._whole, self._n_after = whole, n_after

    def tick(self, k: int, n: int, note: str = "", partial: object = None) -> None:
        """Pass it on."""
        self._whole.tick(k, n + self._n_after, note, partial)


def run(
    progress: Progress,
    *,
    machine: str = MACHINE,
    seed: int = 0,
    n_learned: int = N_LEARNED,
    watch_s: float = WATCH_S,
) -> dict[str, Any]:
    """Train the job in its forms, write the nights of `seed` into a run history, and watch a run of `watch_s` seconds.

    Gives what `sweeps.simulate` gives, with "seed", "history", the file of the runs as this machine did them, "events",
    a folder for TensorBoard, and "watched" (`watch_a_run`; None without). Stopped half-way it hands back the forms that
    it finished.
    """
    variants = forms(n_learned)
    n_after = N_WATCHED if watch_s else 0
    data = sweeps.simulate(_First(progress, n_after), variants, what=WHAT, machine=machine)
    data |= {"seed": seed, "history": None, "events": None, "watched": None}
    progress.partial = data
    if not has_all(data["tapes"]):
        return data
    data |= {"history": FILE, "events": "events"}
    _write_nights(progress.results_dir, data, machine)
    for point in data["points"]:
        _write_losses(progress.results_dir / "events" / f"training, {point['key']}", point)
    if watch_s and not progress.should_stop:
        n = sum((each.n_steps or 0) + sweeps.N_WARMUP for each in variants)
        told = watch_a_run(progress, machine=machine, seconds=watch_s, n_before=n, n_all=n + n_after)
        data["watched"] = told
    return data


def _write_nights(folder: Path, data: dict[str, Any], machine: str) -> None:
    """The nights as the run history keeps them, and as curves of step time by night."""
    from gpututor.model import tape_file

    tapes = {key: tape_file.load(folder / file) for key, file in data["tapes"].items()}
    on, history, file = machine_named(machine), History(folder / FILE), EventFile(folder / "events" / "nights")
    for night in nights(data["seed"]):
        entry = entry_of(night, ledger_of(night, tapes, on), on, data["torch"])
        history.log(entry)
        assert entry.step_ns is not None
        values = {"step_ms": entry.step_ns / 1e6, "sample_us": entry.step_ns / 1e3 / night.n_samples}
        values |= {f"accounts_ms/{account.name.lower()}": ns / 1e6 for account, ns in entry.accounts_ns.items()}
        file.put(_unix_s(night.at), night.number, values)
    file.close()


def _unix_s(at: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(at).timestamp()


def _write_losses(folder: Path, point: dict[str, Any]) -> None:
    file = EventFile(folder)
    for k, loss in enumerate(point["losses"]):
        if loss is not None:
            file.put(float(k), (k + 1) * point["n_samples"], {"loss": loss})
    file.close()


def measure(progress: Progress, *, device: str = "cuda", n_steps: int = 10) -> dict[str, Any]:
    """The usual form several times over and the other two once on this computer's GPU or processor.

    Gives what `sweeps.measure` gives, with "energy", a dict with energy_j, seconds and how; else None, and
    "why_no_energy".

    Raises:
        ExperimentError: there is no such device.
        MachineBusy: another measurement is running on this machine.
    """
    from gpututor.measure.nvml import Sampler

    again = [variant("usual", n_steps, key=f"usual-{k}", label=f"Once more ({k})") for k in range(2, N_AGAIN + 2)]
    variants = [variant("usual", n_steps), *again, variant("reads", n_steps), variant("larger", n_steps)]
    with Sampler() as sampler:
        data = sweeps.measure(progress, variants, what=WHAT, device=device, n_steps=n_steps)
    return data | _energy(sampler.summary(), device)


def _energy(summary: Summary, device: str) -> dict[str, Any]:
    """What the first GPU drew, for the page; or why nobody knows."""
    gpu = next(iter(summary.gpus), None)
    if device == "cpu" or gpu is None:
        return {"energy": None, "why_no_energy": summary.reason or "the processor's power isn't read"}
    if gpu.energy is None:
        return {"energy": None, "why_no_energy": gpu.energy_reason or "the driver gave no reason"}
    told = {"energy_j": gpu.energy.energy_j, "seconds": gpu.energy.seconds, "how": gpu.energy.how}
    return {"energy": told, "why_no_energy": None}
