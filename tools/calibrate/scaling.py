"""Several cards: how much longer a step takes than on one, ours beside Lambda's boxes, by kind of link and by task.

Run `python -m tools.calibrate.scaling TAPES`; TAPES is a folder for recordings, which take some minutes the first time.
`--fit` searches the rate of each link over PCIe, with the errors of fits that left a task out, and shows what other
values of numbers that links share would do: how the cards of a box differ, which share of NVLink's rates is reached,
and what the memory of a host gives.

Only ratios are compared: time with n cards over time with one, at the same batch on each card. A step is stretched to
the time measured on one card, so that nothing here depends on how well that is predicted. Rates of NVLink are those of
all-reduce tables (data/links.toml), of which training reaches one share. Tacotron 2 is shown and not fitted: with more
cards its loaders are what it waits for (8 workers a card; an H100 box of 8 does half of what its cards could).
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

from gpututor.links import Link, link
from gpututor.workloads.translation.gnmt_batches import ROUND, TOKENS_PER_PAIR
from tools.calibrate.boxes import Pair, pairs
from tools.calibrate.common import fit
from tools.calibrate.step_shapes import GIB, Shape, asked_for, shape_of, together_s

Case = tuple[Pair, Shape]
BATCHES_RECORDED = 4  # of a task; others take the shape of the nearest
USUAL_BATCHES = {"SSD": 128, "tacotron2": 88}  # where the logs don't say it
PAIR_TOKENS = mean(TOKENS_PER_PAIR[bucket] for bucket in ROUND)  # of both sides, in GNMT's batches
NOT_FITTED = "tacotron2"
SHARED_BYTES_PER_S = (8e9, 12e9, 17e9, 25e9, 40e9)
BUSY_SHARES = (0.15, 0.2, 0.25, 0.3, 0.4, 1.0)
LATE_SHARES = (0.0, 0.003, 0.006, 0.01, 0.015, 0.02)
RATE_FITTED = ("pcie-geforce", "pcie-virtual", "pcie3-server", "pcie4-server", "pcie5-server")
FREE = replace(
    link("nvlink4"), bus_bytes_per_s=1e18, half_bytes=0.0, start_us=0.0, hop_us=0.0, n_blocks=0, beside_share=0.0
)


def cases(keep: Path) -> list[Case]:
    """Every pair with the shape of its step."""
    found, known, all_pairs = [], {}, list(pairs())
    recorded = {
        task: spread({p.point.batch for p in all_pairs if p.task == task}) for task in {p.task for p in all_pairs}
    }
    for pair in all_pairs:
        wanted = pair.point.batch or USUAL_BATCHES[pair.task.partition("_")[0]]
        batch = min(recorded[pair.task] or [wanted], key=lambda b: abs(math.log(b / wanted)))
        key = (pair.task, batch, pair.card.name)
        if key not in known:
            asked = asked_for(replace(pair.point, gpu=pair.card.name), batch)
            known[key] = shape_of(asked, replace(pair.card, memory_bytes=256 * GIB), keep, FREE)
        found.append((pair, known[key]))
    return found


def spread(batches: Iterable[int | None]) -> list[int]:
    """A few of these, from the smallest to the largest in equal ratios."""
    known = sorted(b for b in batches if b)
    if not known:
        return []
    low, high = math.log(known[0]), math.log(known[-1])
    wanted = [low + (high - low) * k / (BATCHES_RECORDED - 1) for k in range(BATCHES_RECORDED)]
    return sorted({min(known, key=lambda b: abs(math.log(b) - w)) for w in wanted})


def ratio_of(case: Case, by: Link) -> float:
    """Our time with several cards over that with one."""
    pair, shape = case
    units = shape.units / shape.n_steps
    if pair.task.startswith("gnmt"):
        units = (pair.point.batch or 0) * PAIR_TOKENS
    elif pair.point.batch and not pair.task.startswith(NOT_FITTED):
        units = pair.point.batch
    alone_s = pair.alone * units
    return together_s(shape, alone_s / shape.alone_s, pair.n, by) / shape.n_steps / alone_s


def off(some: Sequence[Case], by: Link) -> list[float]:
    """Logarithms of our ratio over the measured one."""
    return [math.log(ratio_of(case, by) / case[0].ratio) for case in some]


def fitted(some: Sequence[Case], name: str, base: Link | None = None) -> Link:
    """The link with the rate that makes the mean error small; links with a table of their own stay as they are."""
    base = base or link(name)
    if name not in RATE_FITTED:
        return base

    def other(values: Sequence[float]) -> Link:
        return replace(base, bus_bytes_per_s=values[0])

    return other(fit(lambda values: mean(map(abs, off(some, other(values)))), [base.bus_bytes_per_s], 40))


def left_out(some: Sequence[Case], name: str) -> list[float]:
    """Errors of every task by a fit that didn't see it."""
    errors = []
    for task in sorted({family(c) for c in some}):
        by = fitted([c for c in some if family(c) != task], name)
        errors += off([c for c in some if family(c) == task], by)
    return errors


def family(case: Case) -> str:
    """The task without its format."""
    return case[0].task.rpartition("_")[0].removesuffix("_squad")


def middle(errors: Sequence[float]) -> str:
    """Mean and median size."""
    sizes = [abs(e) for e in errors]
    return f"{mean(sizes):5.1%} {median(sizes):5.1%}"


def report(found: Sequence[Case], fit_too: bool) -> None:
    """A line for each link: mean and median error; then the middle error of each task and number of cards."""
    by_link: dict[str, list[Case]] = defaultdict(list)
    for case in found:
        by_link[case[0].link].append(case)
    print("errors of the ratio, mean and median: as it would be without any cost, as data/links.toml has it, left out")
    for name, all_cases in sorted(by_link.items()):
        some = [c for c in all_cases if not c[0].task.startswith(NOT_FITTED)]
        ideal = [math.log(1 / c[0].ratio) for c in some]
        line = f"{name:14s} {len(some):4d} pairs   ideal {middle(ideal)}   ours {middle(off(some, link(name)))}"
        if fit_too:
            best = fitted(some, name)
            line += (
                f"   fit {middle(off(some, best))}   left out {middle(left_out(some, name))}"
                f"   bus {best.bus_bytes_per_s / 1e9:.1f} GB/s"
            )
        print(line, flush=True)
        print("   ", by_task(all_cases, link(name)))
    if fit_too:
        sweep(by_link, "late_share", LATE_SHARES, tuple(by_link))
        sweep(by_link, "busy_share", BUSY_SHARES, ("nvlink2", "nvlink3", "nvlink4", "nvlink5"))
        sweep(by_link, "shared_bytes_per_s", SHARED_BYTES_PER_S, ("pcie-geforce", "pcie-virtual"))


def sweep(by_link: Mapping[str, Sequence[Case]], field: str, values: Sequence[float], names: Sequence[str]) -> None:
    """What other values of a number that several links share would do, each rate fitted anew."""
    for value in values:
        means = []
        for name in names:
            some = [c for c in by_link[name] if not c[0].task.startswith(NOT_FITTED)]
            by = fitted(some, name, replace(link(name), **{field: value}))  # type: ignore[arg-type]
            means.append(mean(map(abs, off(some, by))))
        print(f"{field} {value:g}: mean error {mean(means):.2%}, each link counting alike", flush=True)


def by_task(some: Sequence[Case], by: Link) -> str:
    """The middle error, with its sign, of each task and number of cards."""
    groups: dict[tuple[str, int], list[Case]] = defaultdict(list)
    for case in some:
        groups[family(case), case[0].n].append(case)
    return "  ".join(f"{task} x{n} {median(off(of, by)):+.0%}" for (task, n), of in sorted(groups.items()))


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tapes", type=Path)
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    asked.tapes.mkdir(exist_ok=True)
    report(cases(asked.tapes), asked.fit)


if __name__ == "__main__":
    main()
