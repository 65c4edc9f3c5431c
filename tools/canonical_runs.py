"""Make the tapes of data/cases anew: our own runs of the lessons' experiments, for cases that nobody can have edited.

Run `python -m tools.canonical_runs` after a change of what an experiment does; `--out FOLDER` writes elsewhere.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from gpututor.exercises.canonical import ADDING, BATCHES, KEYS, MEMORY
from gpututor.experiments import answers, batches, gauge, one_after_another, sweeps, wider_or_deeper
from gpututor.experiments.sweeps import Variant
from gpututor.paths import data_dir
from gpututor.progress import Progress


def wanted(number: str) -> tuple[list[Variant], int, int]:
    """The variants that an exercise's case is made of; steps and kept steps of the lesson's sweep."""
    variants, n_steps, n_kept = {
        "4.1": ([*one_after_another.trained(), *one_after_another.timed()], one_after_another.N_STEPS, 2),
        "5.1": (wider_or_deeper.variants(), wider_or_deeper.N_STEPS, 6),
        "9.1": (answers.lengths(), answers.N_STEPS, answers.N_KEPT),
    }[number]
    return [each for each in variants if each.key in KEYS[number]], n_steps, n_kept


def make(number: str, out: Path) -> None:
    """Run what one exercise needs and put its tapes into a folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        progress = Progress(results_dir=folder)
        if number == "1.1":
            most = max(each.n_launches for each in gauge.WORKLOADS)
            made = gauge.run(progress, thinned=most)
            shutil.copy(folder / made["tapes"][gauge.ADD], out / f"{ADDING}.tape.gz")
            return
        variants, n_steps, n_kept = wanted(number)
        made = sweeps.simulate(progress, variants, what="a case", n_steps=n_steps, n_kept=n_kept)
        for key, file in made["tapes"].items():
            shutil.copy(folder / file, out / f"{key}.tape.gz")


def make_memory(out: Path) -> None:
    """Note the peak memory of two of lesson 3's batches."""
    with tempfile.TemporaryDirectory() as place:
        variants = batches.variants(BATCHES, (), 1)
        made = sweeps.simulate(Progress(results_dir=Path(place)), variants, what="a case", machine=batches.RUN_ON)
    peaks = {str(point["n_samples"]): point["memory_bytes"] for point in made["points"]}
    (out / MEMORY).write_text(json.dumps(peaks) + "\n", encoding="ascii")


def main() -> int:
    """Make all of them, and say what each took in bytes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=data_dir() / "cases", help="Where tapes go.")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    make_memory(out)
    for number in KEYS:
        make(number, out)
        print(number, *(f"{key} {(out / f'{key}.tape.gz').stat().st_size:,} B" for key in KEYS[number]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
