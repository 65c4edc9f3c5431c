"""From a report to bands: how far predictions of each kind of run are off, written to data/bands.toml."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.rows import Predictor, Row, row_of
from gpututor.expect.accuracy import (
    ALL,
    BUSY,
    COVERED,
    LAUNCH_BOUND,
    REGIMES,
    SEVERAL_CARDS,
    Accuracy,
    covering,
    from_points,
)
from gpututor.paths import data_dir
from gpututor.predict import Prediction, predict
from gpututor.results import write_at_once

HEAD = """\
# How far predictions may be off, by kind of run; gpututor/expect/accuracy.py reads it and says which kind a run is.
# Written by `gpututor bench accuracy --write-bands`; don't edit by hand.
#
# error_share: predicted over measured time is within 1 + error_share either way for {covered:.0%} of the points, by the
# rule for another point of the same kind (the k-th smallest of n, k = {covered:g} (n + 1) rounded up; so 4 or more).
# bias_share: the middle one of predicted over measured time, less 1; above 0 we say too slow. It isn't taken off.
# busy: every run on one card that is not launch-bound. Kinds with too few points are left out, and take that of all.
# The regimes under [suite] are the words of whoever collected the points; no prediction has them.
"""


class Sorted:
    """Rows with the kind of run that each prediction is; `errors` are logarithms of predicted over measured time."""

    def __init__(self, predicting: Predictor = predict) -> None:
        self._predicting = predicting
        self._last: list[Prediction] = []
        self.errors: dict[str, list[float]] = {name: [] for name in REGIMES}
        self.suite: dict[str, list[float]] = {}
        self.util_points: list[float] = []
        self.n_seen = self.n_skipped = 0

    def row(self, point: Point) -> Row:
        """The row of one point, counted."""
        self._last.clear()
        row = row_of(point, self._keeping)
        self.n_seen += 1
        if row.skipped is not None:
            self.n_skipped += 1
        if row.off_points is not None:
            self.util_points.append(abs(row.off_points) / 100)
        if row.error is not None and self._last:
            self._count(math.log1p(row.error), self._last[-1].regime, point.regime)
        return row

    def _keeping(self, *asked: object) -> Prediction:
        self._last.append(self._predicting(*asked))  # type: ignore[arg-type]
        return self._last[-1]

    def _count(self, log: float, regime: str, in_suite: str) -> None:
        names = {regime, ALL} | (set() if regime in (SEVERAL_CARDS, LAUNCH_BOUND) else {BUSY})
        for name in names:
            self.errors[name].append(log)
        self.suite.setdefault(in_suite, []).append(log)

    def rows(self, points: Iterable[Point]) -> Iterator[Row]:
        """The rows of these points, each when it is asked for."""
        return (self.row(point) for point in points)


def text_of(found: Sorted, points: Path) -> str | None:
    """The file of bands; None where there are too few points for any."""
    by_regime = from_points(found.errors)
    util = covering(found.util_points)
    if ALL not in by_regime or util is None:
        return None
    parts = [HEAD.format(covered=COVERED), f'points = "{points.name}"\nn_skipped = {found.n_skipped}\n']
    parts += [_table("band", name, accuracy) for name, accuracy in by_regime.items()]
    parts.append(f"\n[utilization]\nn_points = {len(found.util_points)}\npoints_share = {max(util, 1e-3):.3g}\n")
    parts += [_table("suite", name, accuracy) for name, accuracy in from_points(found.suite).items()]
    return "".join(parts)


def _table(kind: str, name: str, accuracy: Accuracy) -> str:
    figures = {"n_points": accuracy.n_points, "error_share": accuracy.error_share, "bias_share": accuracy.bias_share}
    lines = "".join(f"{figure} = {_number(value)}\n" for figure, value in figures.items())
    return f"\n[{kind}.{name}]\n{lines}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"


def write(found: Sorted, points: Path) -> Mapping[str, Accuracy] | None:
    """Put the bands in the place of data/bands.toml; what was written, or None where there are too few points.

    Raises:
        OSError: the folder of the tables can't be written to.
    """
    text = text_of(found, points)
    if text is None:
        return None
    write_at_once(data_dir() / "bands.toml", text)
    return from_points(found.errors)
