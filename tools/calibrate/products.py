"""Matrix products: our times beside DeepBench's, NeuSight's, XLA's and MAMF's, by card, format and size.

Run `python -m tools.calibrate.products`; `--fit` searches the constants of [tiles], `--without` shows what each
ingredient brings. XLA's table (github.com/openxla/xla, xla/service/gpu/model/matmul_interpolator_data.h; H100 and
B200) joins in with `--xla FILE`.

The cards' own shares in data/cards.toml come from other tables too; `held out` gives a card the median of the others.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median

from gpututor.cards import card
from gpututor.hardware import Card
from gpututor.model.constants import group, other
from gpututor.model.costs import gemm
from gpututor.model.costs.rates import ITEMSIZE_BYTES
from gpututor.model.kernels import Gemm
from tools.calibrate.common import Errors, errors, loss, read

DEEPBENCH = {
    ("NV_V100", "Results FP32"): ("V100-SXM2-16GB", "fp32"),
    ("NV_P100", "Results FP32"): ("P100-SXM2", "fp32"),
    ("NV_1080Ti", "Results - FP32"): ("GTX-1080Ti", "fp32"),
    ("NV_T4", "Results FP32"): ("T4", "fp32"),
    ("NV_V100", "Results - FP16"): ("V100-SXM2-16GB", "fp16"),
    ("NV_T4", "Results - FP16"): ("T4", "fp16"),
}
NEUSIGHT = {
    "Tesla P100-PCIE-16GB": "P100-PCIe",
    "Tesla V100-PCIE-32GB": "V100-PCIe-32GB",
    "Tesla T4": "T4",
    "NVIDIA A100-PCIE-40GB": "A100-PCIe-40GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIe-80GB",
    "NVIDIA L4": "L4",
    "NVIDIA H100 80GB HBM3": "H100-SXM",
}
XLA = {"sm_90": "H100-SXM", "sm_100_B200": "B200-SXM"}
XLA_FORMATS = {"bf16xbf16->bf16": "bf16", "f32xf32->f32": "tf32"}  # XLA computes fp32 in TF32 unless told otherwise
MAMF = {
    "NVIDIA A100 SXM": "A100-SXM4-80GB",
    "NVIDIA A100 PCIe": "A100-PCIe-80GB",
    "NVIDIA H100 SXM": "H100-SXM",
    "NVIDIA B200 SXM": "B200-SXM",
}
# What each table's way of measuring adds to every kernel, searched for among these. NeuSight times single launches.
FLOORS_US: dict[str, Sequence[float]] = {
    "deepbench": (0, 1, 2),
    "linear": (10, 15, 20, 25, 30),
    "bmm": (10, 15, 20, 25),
    "xla": (0, 1, 2),
    "mamf": (0,),
}
# On Pascal, inner dimensions of more than this many elements run up to three times slower; no network here has them.
LONGEST_ON_PASCAL = 4096


@dataclass(frozen=True, slots=True)
class Measured:
    """One published product; `tf32` products carry "fp32" as their format in memory."""

    source: str
    card_name: str
    number_format: str
    batch: int
    m: int
    n: int
    k: int
    seconds: float

    @property
    def spec(self) -> Gemm:
        """The kernel."""
        form, tf32 = ("fp32", True) if self.number_format == "tf32" else (self.number_format, False)
        elements = self.batch * (self.m * self.k + self.k * self.n + self.m * self.n)
        moved_bytes = elements * ITEMSIZE_BYTES[form]
        return Gemm("product", self.m, self.n, self.k, moved_bytes, form, self.batch, tf32)

    @property
    def size(self) -> str:
        """A class of how long it takes."""
        return "below 0.1 ms" if self.seconds < 1e-4 else "below 1 ms" if self.seconds < 1e-3 else "1 ms and more"


def deepbench() -> Iterator[Measured]:
    """DeepBench's training products; it pads fp16 sizes, so that all are aligned."""
    for row in read("deepbench_gemm.csv.gz"):
        for (gpu, precision), (name, form) in DEEPBENCH.items():
            if row["gpu"] == gpu and row["precision"].startswith(precision):
                m, n, k = (int(float(row[c])) for c in "mnk")
                yield Measured("deepbench", name, form, 1, m, n, k, float(row["time_ms"]) * 1e-3)


def neusight() -> Iterator[Measured]:
    """NeuSight's layers and batches, all fp32.

    Its N is the inner dimension and its K the columns of the result: every launch grid in the table says so.
    """
    for row in read("neusight_kernels.csv.gz"):
        if row["family"] not in ("linear", "bmm") or row["Device"] not in NEUSIGHT:
            continue
        batch, m, k, n = (int(float(row[c])) for c in "BMNK")
        name = NEUSIGHT[row["Device"]]
        if name.startswith("P100") and k > LONGEST_ON_PASCAL:
            continue
        batch = batch if row["family"] == "bmm" else 1
        yield Measured(row["family"], name, "fp32", batch, m, n, k, float(row["latency_ms"]) * 1e-3)


def xla(path: Path) -> Iterator[Measured]:
    """XLA's tuned products of 256 to 4,096."""
    parts = re.split(r'\n    key: "((?:sm_|gfx)[^"]*)"', path.read_text())
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        if name not in XLA:
            continue
        for found in re.finditer(r"b: (\d+)\s+m: (\d+)\s+n: (\d+)\s+k: (\d+)((?:\s+flops \{[^}]*\})+)", body):
            batch, m, n, k = (int(found[i]) for i in (1, 2, 3, 4))
            for key, rate in re.findall(r'key: "([^"]+)" value: (\d+)', found[5]):
                if form := XLA_FORMATS.get(key.lower()):
                    yield Measured("xla", XLA[name], form, batch, m, n, k, 2 * batch * m * n * k / float(rate))


def mamf() -> Iterator[Measured]:
    """The best shape of each card in "Machine Learning Engineering"."""
    for row in read("mamf.csv"):
        if row["dtype"] == "bf16" and row["accelerator"] in MAMF:
            m, n, k = (int(v) for v in row["best_shape_mnk"].split("x"))
            seconds = 2 * m * n * k / (float(row["mamf_tflops"]) * 1e12)
            yield Measured("mamf", MAMF[row["accelerator"]], "bf16", 1, m, n, k, seconds)


Predictor = Callable[[Measured, Card], float]


def roofline(row: Measured, on: Card) -> float:
    """Peak rate or bandwidth."""
    spec = row.spec
    return max(spec.flop / on.peak_flop_per_s[row.number_format], spec.moved_bytes / on.bandwidth_bytes_per_s)


def one_constant(row: Measured, on: Card) -> float:
    """Peak rate and bandwidth, each times the card's share."""
    spec = row.spec
    rate = on.peak_flop_per_s[row.number_format] * on.sustained[row.number_format]
    return max(spec.flop / rate, spec.moved_bytes / (on.bandwidth_bytes_per_s * on.bandwidth_share))


def ours(row: Measured, on: Card) -> float:
    """The model."""
    return gemm.gemm(row.spec, on)[0]


def held_out(on: Card, number_format: str, rows: Iterable[Measured]) -> Card:
    """The card with the median share of the other measured ones."""
    others = {row.card_name for row in rows if row.number_format == number_format and row.card_name != on.name}
    shares = [card(name).sustained[number_format] for name in others]
    bandwidths = [card(name).bandwidth_share for name in others]
    if not shares:
        return on
    return replace(on, sustained={**on.sustained, number_format: median(shares)}, bandwidth_share=median(bandwidths))


def pairs(rows: Sequence[Measured], predict: Predictor, on: Card) -> list[tuple[float, float]]:
    """(predicted, measured) with the table's own floor, the one that fits best."""
    predicted = [predict(row, on) for row in rows]
    tried = [
        [(p + floor * 1e-6, row.seconds) for p, row in zip(predicted, rows, strict=True)]
        for floor in FLOORS_US[rows[0].source]
    ]
    return min(tried, key=loss)


def groups(rows: Iterable[Measured]) -> Iterator[tuple[tuple[str, str, str], list[Measured]]]:
    """Rows by table, card and format."""

    def key(row: Measured) -> tuple[str, str, str]:
        return row.source, row.card_name, row.number_format

    for name, some in groupby(sorted(rows, key=key), key):
        yield name, list(some)


def thinned(rows: Iterable[Measured], n_most: int) -> list[Measured]:
    """At most so many rows of each group, drawn by chance but always the same."""
    chance = random.Random(0)
    return [row for _, some in groups(rows) for row in (some if len(some) <= n_most else chance.sample(some, n_most))]


def report(rows: Sequence[Measured]) -> None:
    """The tables of errors."""
    sizes: dict[str, list[tuple[float, float]]] = {}
    for (source, name, form), some in groups(rows):
        on = card(name)
        guessed = held_out(on, form, rows)
        found: dict[str, Errors] = {
            "roofline": errors(pairs(some, roofline, on)),
            "one constant": errors(pairs(some, one_constant, on)),
            "ours": errors(pairs(some, ours, on)),
            "held out": errors(pairs(some, ours, guessed)),
        }
        for what, error in found.items():
            print(f"{source:10s} {name:15s} {form:5s} {what:13s} {error}")
        for pair, row in zip(pairs(some, ours, on), some, strict=True):
            sizes.setdefault(f"{source:10s} {row.size}", []).append(pair)
    for what, both in sorted(sizes.items()):
        print(f"{what:47s} {errors(both)}")


def score(rows: Sequence[Measured]) -> dict[str, float]:
    """Mean absolute logarithm by table, each card and format counting alike."""
    by_source: dict[str, list[float]] = {}
    for (source, name, _), some in groups(row for row in rows if row.source != "mamf"):  # best shapes only
        by_source.setdefault(source, []).append(loss(pairs(some, ours, card(name))))
    return {source: sum(found) / len(found) for source, found in by_source.items()}


def fit(rows: Sequence[Measured]) -> None:
    """One constant after another, by steps down and up, as long as the mean of the tables' scores falls."""
    names = ("extra_k", "tile_us", "tile_area_us", "starve", "starve_self_fed", "split_us")
    now = {f"tiles.{name}": float(group("tiles").values[name]) for name in names}

    def mean_score(values: dict[str, float]) -> float:
        with other(values):
            found = score(rows)
        return sum(found.values()) / len(found)

    best = mean_score(now)
    for step in (1.5, 1.2):
        for name in [*now]:
            for factor in (1 / step, step):
                tried = now | {name: now[name] * factor}
                found = mean_score(tried)
                if found < best - 1e-4:
                    best, now = found, tried
            print(f"x{step}: {name} {now[name]:.3g}, mean score {best:.4f}", flush=True)


@contextmanager
def any_tile_for_batches() -> Iterator[None]:
    """A `with` block in which batches choose among all tiles."""
    before = dict(gemm.BATCHED_TILES)
    gemm.BATCHED_TILES = {}
    try:
        yield
    finally:
        gemm.BATCHED_TILES = before


def without(rows: Sequence[Measured]) -> None:
    """The scores with one ingredient at a time taken out."""
    print("all ingredients", score(rows))
    for name in ("extra_k", "tile_us", "tile_area_us", "starve", "starve_self_fed", "product_floor_us"):
        with other({f"tiles.{name}": 0}):
            print(f"without {name}", score(rows))
    with other({"tiles.split_us": 1e6}):
        print("without split inner dimensions", score(rows))
    with any_tile_for_batches():
        print("any tile for batches", score(rows))


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xla", type=Path, help="XLA's matmul_interpolator_data.h")
    parser.add_argument("--rows", type=int, default=200, help="rows of each card and table at most")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--without", action="store_true")
    asked = parser.parse_args()
    rows = [*deepbench(), *neusight(), *mamf(), *(xla(asked.xla) if asked.xla else ())]
    some = thinned(rows, asked.rows)
    print(f"{len(some)} of {len(rows)} rows", file=sys.stderr)
    if asked.fit:
        fit(some)
    elif asked.without:
        without(some)
    else:
        report(some)


if __name__ == "__main__":
    main()
