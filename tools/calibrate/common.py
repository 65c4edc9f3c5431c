"""What every calibration needs: the published tables, errors, a fit, and fits that leave something out."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import TypeVar

T = TypeVar("T")


def measured_dir() -> Path:
    """The folder of published measurements: `measured` in $GPUTUTOR_SHARED, or in ../shared beside the clone."""
    shared = os.environ.get("GPUTUTOR_SHARED")
    root = Path(shared) if shared else Path(__file__).resolve().parents[2].parent / "shared"
    found = root / "measured"
    if not found.is_dir():
        raise SystemExit(
            f"no folder {found}: calibration reads published measurements from there; set GPUTUTOR_SHARED to the "
            "folder that holds it"
        )
    return found


def read(name: str) -> list[dict[str, str]]:
    """The rows of one table, `name` with its ending (.csv or .csv.gz)."""
    path = measured_dir() / name
    with gzip.open(path, "rt", newline="") if name.endswith(".gz") else path.open(newline="") as file:
        return list(csv.DictReader(file))


def judged() -> frozenset[tuple[str, ...]]:
    """Repository, path and line of every point that predictions are judged by; no fit may use them."""
    return frozenset((r["repo"], r["path"], r["line"]) for r in read("validation_open.csv"))


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predicted times, |predicted / measured - 1|: mean, median, share within 0.2; and the middle bias."""

    n: int
    mean: float
    median: float
    within_20: float
    bias: float

    def __str__(self) -> str:
        return (
            f"{self.n:6d} rows   mean {self.mean:6.1%}   median {self.median:6.1%}   within 20 % {self.within_20:4.0%}"
            f"   bias {self.bias:+6.1%}"
        )


def errors(pairs: Iterable[tuple[float, float]]) -> Errors:
    """Errors of (predicted, measured) pairs."""
    off = [predicted / seen - 1 for predicted, seen in pairs]
    if not off:
        return Errors(0, math.nan, math.nan, math.nan, math.nan)
    size = [abs(x) for x in off]
    return Errors(len(off), mean(size), median(size), mean(x <= 0.2 for x in size), median(off))


def loss(pairs: Iterable[tuple[float, float]]) -> float:
    """What fits make small: the mean absolute logarithm of predicted over measured, which few wild rows can't pull."""
    return mean(abs(math.log(max(1e-12, predicted) / seen)) for predicted, seen in pairs)


def fit(cost: Callable[[Sequence[float]], float], start: Sequence[float], n_most: int = 400) -> list[float]:
    """Positive numbers that make `cost` small, found from `start` by Nelder and Mead's search over their logarithms."""
    from scipy.optimize import minimize

    found = minimize(
        lambda logs: cost([math.exp(v) for v in logs]),
        [math.log(v) for v in start],
        method="Nelder-Mead",
        options={"maxfev": n_most, "xatol": 1e-3, "fatol": 1e-5},
    )
    return [math.exp(v) for v in found.x]


def left_out(
    rows: Sequence[T], group_of: Callable[[T], str], fitted: Callable[[Sequence[T]], Callable[[T], tuple[float, float]]]
) -> list[tuple[float, float]]:
    """(predicted, measured) of every row by a fit that did not see the row's group."""
    pairs: list[tuple[float, float]] = []
    for name in sorted({group_of(row) for row in rows}):
        pair_of = fitted([row for row in rows if group_of(row) != name])
        pairs += [pair_of(row) for row in rows if group_of(row) == name]
    return pairs
