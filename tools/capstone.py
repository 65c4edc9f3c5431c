"""Lesson 19's kept runs, made anew: the mystery job's whole training, and our own solution of it.

`python -m tools.capstone` takes some minutes and writes data/capstone; `--ours` makes our solution alone, and `--docs`
writes docs/capstone.md from what lies there. Run it after a change of the jobs or of what the lesson trains.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpututor.experiments import capstone
from gpututor.jobs.held_out import loss_of
from gpututor.jobs.levers import Choices, Launch, Layers, Lengths, Reading, Schedule
from gpututor.jobs.rules import Rule, Way
from gpututor.progress import Progress

N_SENTENCES = 2_500
LOOK_EVERY = 100  # sentences
N_FIRST = 24  # losses that the lesson's own run is held against
OURS = Choices(
    batch=32,
    lengths=Lengths.MIXED,
    layers=Layers.WHOLE,
    launch=Launch.GRAPH,
    rule=Rule.ADAM,
    update=Way.FUSED,
    rate=0.005,
    schedule=Schedule.CONSTANT,
    reading=Reading.RARELY,
    most=5_000,
)


def the_mystery_job(n: int = N_SENTENCES) -> dict[str, Any]:
    """Train it, and look at its weights now and then.

    On the processor, whose results the simulated card's are to the bit: what a sentence takes is known from a few.
    """
    unseen, curve, losses = capstone.sentences().held_out, [], []
    job = capstone.the_mystery_job("cpu")
    for k in range(1, n + 1):
        losses.append(job.step(k - 1))
        if k % LOOK_EVERY == 0:
            curve.append([k, loss_of(capstone.weights_of(job), unseen)])
            print(*curve[-1], flush=True)
    return {"n_sentences": n, "target": curve[-1][1], "held_out": curve, "losses": losses[:N_FIRST]}


def ours(out: Path) -> None:
    """Train our solution, and keep its tapes with the mystery job's."""
    with tempfile.TemporaryDirectory() as place:
        progress = Progress(results_dir=Path(place))
        made = capstone.run(progress, choices=OURS.as_data())
        for file in made["tapes"].values():
            shutil.copy(Path(place) / file, out / file)
    write(out / "ours.json", made)


def write(path: Path, told: Any) -> None:
    """Put JSON data into a file."""
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")


def main() -> int:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=capstone.folder(), help="Where files go.")
    parser.add_argument("--ours", action="store_true", help="Our solution alone.")
    parser.add_argument("--docs", action="store_true", help="The page alone.")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if not asked.ours and not asked.docs:
        write(asked.out / "mystery.json", the_mystery_job())
    if not asked.docs:
        ours(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
