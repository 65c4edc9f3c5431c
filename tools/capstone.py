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
from typing import TYPE_CHECKING, Any

from gpututor.experiments import capstone, sweeps
from gpututor.jobs.held_out import loss_of
from gpututor.jobs.levers import Choices, Launch, Layers, Lengths, Reading, Schedule
from gpututor.jobs.rules import Rule, Way
from gpututor.progress import Progress

if TYPE_CHECKING:
    from gpututor.page.lessons.raising import Training

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


DOCS = Path(__file__).resolve().parents[1] / "docs" / "capstone.md"
MACHINES = ("p3.2xlarge", "g4dn.xlarge", "g6.xlarge", "H100-SXM")
TITLES = ("machine", "training", "step", "busy", "busy, all", "sentences", "time", "cost", "loss")
PAGE = """# Lesson 19: our solution

For instructors. `python -m tools.capstone --docs` wrote this page from the runs in data/capstone; a test holds it to
them.

Choices: {choices}.

## What was done, and why

- **The encoder is one call** of cuDNN's for a whole sentence (lesson 4). In the decoder each state needs the one
  before, so its loop stays; what hangs on words alone is one product before it, and the last layer one after it.
- **Sentences side by side** (lesson 3), all filled up to one length, so that one graph fits all. Sorting them by
  length (lesson 14) would spare words, but each length needs a capture of its own.
- **One graph a step** (lesson 10): the host makes four small copies and one call.
- **Adam, fused** (lesson 12), with a rate for this batch (lesson 3): few steps to the same loss.
- **The loss is read rarely** (lesson 9), and no guessed word is read at all: the right one is given.
- Products stay in fp32 (lesson 11): these are too small for halves to bring much, and each cast is one more kernel.

What is left is the chain of small kernels in the decoder's loop. A larger batch would fill them better and take fewer
steps, and more sentences; sorting, another rate or another schedule may still win.

## Figures

Both train to a loss of {target:.3f} a word on sentences that no step sees. Busy is the share of time with a kernel
running, in usual steps and (all) with warming up and capturing.

{figures}

On {machine} that is {times:.0f} times as cheap.

## The ledger, before and after

Shares of the wall time of usual steps on {machine}, from all of it down to useful arithmetic.

{ledgers}
"""


def page() -> str:
    """docs/capstone.md: our choices, the figures on some machines, and the ledger before and after."""
    from gpututor.lookup import machine_named
    from gpututor.page.lessons.raising import ours_on
    from gpututor.page.lessons.raising_figures import said

    found = {name: ours_on(machine_named(name)) for name in MACHINES}
    here = found[sweeps.MACHINE]
    both = [each for each in (here.mystery, here.yours) if each is not None]
    rows = [_figures(name, one) for name, each in found.items() for one in (each.mystery, each.yours) if one]
    return PAGE.format(
        choices=said(OURS),
        target=here.target,
        figures=_table([TITLES, *rows]),
        machine=sweeps.MACHINE,
        times=here.times or 0.0,
        ledgers=_ledgers(both),
    )


def _figures(name: str, one: Training) -> tuple[str, ...]:
    from gpututor.text import duration, percent

    usd, shares = one.usd(), (percent(one.busy_share), percent(one.whole_busy_share))
    cost = "—" if usd is None else f"${usd:.6f}"
    last = (duration(one.run_ns), cost, f"{one.held_out:.3f}")
    return (name, one.label, duration(one.step_ns), *shares, f"{one.n_seen:,}", *last)


def _ledgers(both: list[Training]) -> str:
    from gpututor.ledger import rows
    from gpututor.text import percent

    sides = [{row.name: row for row in rows(one.usual.ledger)} for one in both]
    lines: list[tuple[str, ...]] = [("", "before", "after")]
    for name in dict.fromkeys(name for side in sides for name in side):
        row = next(side[name] for side in sides if name in side)
        shares = (percent(side[name].share) if name in side else "—" for side in sides)
        lines.append((f"**{row.label}**" if row.kind == "gauge" else row.label, *shares))
    return _table(lines)


def _table(lines: list[tuple[str, ...]]) -> str:
    first, *rest = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([first, "|---" * len(lines[0]) + "|", *rest])


def write(path: Path, told: Any) -> None:
    """Put JSON data into a file."""
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")


def main() -> int:
    """Make what is asked for, and the page in any case."""
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
    DOCS.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
