"""Memory-bound kernels: our times beside NeuSight's elementwise, layer-norm and softmax tables, by card and size.

Run `python -m tools.calibrate.rows`; `--fit` searches the constants, and each card's share of its bandwidth. Every
kernel is lowered from the operator that ran it. All tensors in the elementwise table are larger than the card's L2, so
nothing here says whether a tensor that was just written is read back from L2; the model charges memory for both.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median

from gpututor.cards import card
from gpututor.hardware import Card
from gpututor.model.constants import group, other
from gpututor.model.cost import price
from gpututor.model.lowering import lower
from gpututor.model.spec import KernelSpec, OpCall, TensorMeta
from tools.calibrate.common import errors, loss, read

CARDS = {
    "Tesla P100-PCIE-16GB": "P100-PCIe",
    "Tesla V100-PCIE-32GB": "V100-PCIe-32GB",
    "Tesla T4": "T4",
    "NVIDIA A100-PCIE-40GB": "A100-PCIe-40GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB",
    "NVIDIA L4": "L4",
}
TWO_INPUTS = ("add", "mul", "div", "pow")  # "addu" and the like take a number
FLOORS_US = (0, 3, 6, 9, 12, 15)  # what timing single launches adds to each
FAMILIES = {"elem": "elementwise", "ln": "layer norm", "softmax": "softmax"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One published kernel."""

    family: str
    card_name: str
    row_length: int
    kernels: tuple[KernelSpec, ...]
    seconds: float

    @property
    def size(self) -> str:
        """Rows of this class of length."""
        return f"{self.family}, rows of {'up to 1,024' if self.row_length <= 1024 else 'more'}"


def call(row: dict[str, str]) -> OpCall:
    """The operator of a row of the table."""
    x = TensorMeta.contiguous(int(float(row["B"])), int(float(row["H"])))
    if row["family"] == "softmax":
        return OpCall("aten._softmax.default", (x, -1, False), (), (x,))
    if row["family"] == "ln":
        return OpCall("aten.native_layer_norm.default", (x, (x.shape[1],), None, None, 1e-5), (), (x,))
    inputs = (x, x) if row["OPName"] in TWO_INPUTS else (x,)
    return OpCall(f"aten.{row['OPName']}.Tensor", inputs, (), (x,))


def measured() -> Iterator[Measured]:
    """The rows of the three tables."""
    for row in read("neusight_kernels.csv.gz"):
        if row["family"] in FAMILIES and row["Device"] in CARDS:
            name, seconds = CARDS[row["Device"]], float(row["latency_ms"]) * 1e-3
            yield Measured(FAMILIES[row["family"]], name, int(float(row["H"])), lower(call(row)).kernels, seconds)


def roofline(row: Measured, on: Card) -> float:
    """Every tensor once, at the full bandwidth."""
    return sum(getattr(kernel, "moved_bytes", 0) for kernel in row.kernels) / on.bandwidth_bytes_per_s


def ours(row: Measured, on: Card) -> float:
    """The model."""
    return sum(price(kernel, on).duration_ns for kernel in row.kernels) * 1e-9


def pairs(rows: Sequence[Measured], predict: Callable[[Measured, Card], float], on: Card) -> list[tuple[float, float]]:
    """(predicted, measured) with the floor that fits best."""
    predicted = [predict(row, on) for row in rows]
    tried = [[(p + f * 1e-6, row.seconds) for p, row in zip(predicted, rows, strict=True)] for f in FLOORS_US]
    return min(tried, key=loss)


def groups(rows: Iterable[Measured]) -> Iterator[tuple[tuple[str, str], list[Measured]]]:
    """Rows by table and card."""

    def key(row: Measured) -> tuple[str, str]:
        return row.family, row.card_name

    for name, some in groupby(sorted(rows, key=key), key):
        yield name, list(some)


def report(rows: Sequence[Measured]) -> None:
    """The tables of errors; a card held out gets the median share of the others."""
    sizes: dict[str, list[tuple[float, float]]] = {}
    for (family, name), some in groups(rows):
        on = card(name)
        shares = [card(n).bandwidth_share for n in CARDS.values() if n != name]
        guessed = replace(on, bandwidth_share=median(shares))
        for what, predict, by in (("roofline", roofline, on), ("ours", ours, on), ("held out", ours, guessed)):
            print(f"{family:12s} {name:15s} {what:9s} {errors(pairs(some, predict, by))}")
        for pair, row in zip(pairs(some, ours, on), some, strict=True):
            sizes.setdefault(row.size, []).append(pair)
    for what, both in sorted(sizes.items()):
        print(f"{what:38s} {errors(both)}")


def score(rows: Sequence[Measured]) -> float:
    """Mean absolute logarithm, each table and card counting alike."""
    found = [loss(pairs(some, ours, card(name))) for (_, name), some in groups(rows)]
    return sum(found) / len(found)


def fit_shares(rows: Sequence[Measured]) -> None:
    """Each card's share of its bandwidth, from the elementwise kernels."""
    for (family, name), some in groups(rows):
        if family == "elementwise":
            shares = [s / 200 for s in range(120, 196)]
            tried = {s: loss(pairs(some, ours, replace(card(name), bandwidth_share=s))) for s in shares}
            best = min(tried, key=lambda share: tried[share])
            print(f"{name}: bandwidth_share {best:.3f} ({card(name).bandwidth_share} now), score {tried[best]:.4f}")


def fit_constants(rows: Sequence[Measured]) -> None:
    """One constant after another over a few values, twice."""
    shares = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2)
    grid = {
        "walk.l2_kept_share": shares,
        "walk.l2_lost_share": shares,
        "walk.l2_bytes_per_clock": (10, 12, 14, 16, 18, 22, 26, 32),
    }
    long_rows = [row for row in rows if row.family != "elementwise"]
    best: dict[str, float] = {name: group("walk").values[name.removeprefix("walk.")] for name in grid}
    for _ in range(2):
        for name, values in grid.items():
            tried = {}
            for value in values:
                now = best | {name: value}
                if now["walk.l2_kept_share"] < now["walk.l2_lost_share"]:
                    with other(now):
                        tried[value] = score(long_rows)
            best[name] = min(tried, key=lambda value: tried[value])
            print({key: round(found, 4) for key, found in tried.items()}, name, best[name], flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200, help="rows of each card and table at most")
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    chance = random.Random(0)
    rows: list[Measured] = []
    for _, some in groups(measured()):
        rows += some if len(some) <= asked.rows else chance.sample(some, asked.rows)
    if asked.fit:
        fit_shares(rows)
        fit_constants(rows)
    else:
        report(rows)


if __name__ == "__main__":
    main()
