"""The statistics of some rows: how far off, how often, and in which direction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from gpututor.bench.accuracy.rows import Row
from gpututor.bench.accuracy.what_if import WhatIf, what_ifs

NEAR = 0.20


@dataclass(frozen=True, slots=True)
class Changes:
    """How well changes are foretold; shares, None where there is nothing to count."""

    n: int
    direction_right: float | None
    median_ratio_error: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of times as shares (0.06 is 6 %), utilization in percentage points; None where there is nothing to count.

    `n` rows were predicted and `skipped` were not. `bias` is the mean error with its sign: above 0 we say too slow.
    `within_20` is the share of times off by at most 20 %.
    """

    n: int
    skipped: int
    median_ape: float | None
    mape: float | None
    bias: float | None
    within_20: float | None
    utilization_mae_points: float | None
    what_if: Changes


def summed_up(rows: Sequence[Row], pairs: Sequence[WhatIf]) -> Summary:
    """The statistics of these rows and pairs."""
    errors = [row.error for row in rows if row.error is not None]
    sizes = [abs(error) for error in errors]
    points = [abs(row.off_points) for row in rows if row.off_points is not None]
    return Summary(
        n=len(errors) + len(points),
        skipped=sum(row.skipped is not None for row in rows),
        median_ape=median(sizes) if sizes else None,
        mape=fmean(sizes) if sizes else None,
        bias=fmean(errors) if errors else None,
        within_20=fmean(size <= NEAR for size in sizes) if sizes else None,
        utilization_mae_points=fmean(points) if points else None,
        what_if=changes_of(pairs),
    )


def changes_of(pairs: Sequence[WhatIf]) -> Changes:
    """How well these changes are foretold; a pair without a direction counts for the ratio alone."""
    right = [pair.direction_right for pair in pairs if pair.direction_right is not None]
    sizes = [abs(pair.ratio_error) for pair in pairs]
    return Changes(len(pairs), fmean(right) if right else None, median(sizes) if sizes else None)


@dataclass(frozen=True, slots=True)
class Report:
    """All rows with their statistics, in all and by regime."""

    rows: tuple[Row, ...]
    pairs: tuple[WhatIf, ...]
    total: Summary
    regimes: dict[str, Summary]

    def worst(self, n: int = 10) -> list[Row]:
        """The rows that are furthest off, the worst first; ten points of utilization count as 10 %."""
        return sorted((row for row in self.rows if row.skipped is None), key=lambda row: -row.size)[:n]


def report_of(rows: Iterable[Row]) -> Report:
    """The report on these rows; a pair counts in the regime of its second row."""
    kept = tuple(rows)
    pairs = what_ifs(kept)
    regimes = {
        name: summed_up([r for r in kept if r.point.regime == name], [p for p in pairs if p.regime == name])
        for name in dict.fromkeys(row.point.regime for row in kept)
    }
    return Report(kept, pairs, summed_up(kept, pairs), regimes)
