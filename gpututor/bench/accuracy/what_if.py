"""What changing one thing does, measured and predicted: pairs of points that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from gpututor.bench.accuracy.resolve import Asked
from gpututor.bench.accuracy.rows import Row
from gpututor.workloads.setting import MODES, PRECISIONS

NO_DIRECTION = 0.03
"""A rate within this share of the other is neither faster nor slower: versions and machines differ by as much."""

THINGS = ("precision", "batch", "GPUs", "mode", "GPU")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Two rows that differ in one thing; the ratios are the second's rate over the first's."""

    first: str
    second: str
    regime: str  # the second's
    change: str
    measured_ratio: float
    predicted_ratio: float

    @property
    def ratio_error(self) -> float:
        """Predicted over measured ratio, less 1."""
        return self.predicted_ratio / self.measured_ratio - 1

    @property
    def direction_right(self) -> bool | None:
        """Whether both say faster or both say slower; None where the measured rates are alike."""
        measured, predicted = direction(self.measured_ratio), direction(self.predicted_ratio)
        return None if measured == 0 else measured == predicted


def direction(ratio: float) -> int:
    """1 for faster, -1 for slower, 0 for alike.

    >>> direction(1.2), direction(1.02), direction(0.9)
    (1, 0, -1)
    """
    return 0 if abs(ratio - 1) <= NO_DIRECTION else 1 if ratio > 1 else -1


def what_ifs(rows: Iterable[Row]) -> tuple[WhatIf, ...]:
    """Every pair of predicted times that differ in precision, batch, number of GPUs, mode or card, and nothing else.

    Both are of one workload, repository, framework and host (a card may bring its own host along). An option that
    only one of the two mentions is no difference. The layout may change with the precision, as programs choose both
    together. The first has the smaller batch, fewer GPUs, the wider format or eager mode; of two cards the one that
    stands first.
    """
    timed = [row for row in rows if row.asked is not None and row.error is not None]
    return tuple(found for pair in combinations(timed, 2) if (found := _pair(*pair)) is not None)


def _pair(one: Row, other: Row) -> WhatIf | None:
    assert one.asked is not None
    assert other.asked is not None
    if not _comparable(one, other):
        return None
    ours, theirs = _things(one), _things(other)
    changed = [thing for thing, a, b in zip(THINGS, ours, theirs, strict=True) if a != b]
    layouts = one.asked.setting.layout == other.asked.setting.layout or changed == ["precision"]
    hosts = one.asked.machine.host.name == other.asked.machine.host.name or changed == ["GPU"]
    if len(changed) != 1 or not layouts or not hosts:
        return None
    (thing,) = changed
    first, second = (one, other) if thing == "GPU" or _rank(ours) <= _rank(theirs) else (other, one)
    k = THINGS.index(thing)
    change = f"{thing} {_things(first)[k]} → {_things(second)[k]}"
    measured, predicted = rate(second.point.measured, second) / rate(first.point.measured, first), _predicted(second)
    return WhatIf(first.point.id, second.point.id, second.point.regime, change, measured, predicted / _predicted(first))


def _comparable(one: Row, other: Row) -> bool:
    """Whether what isn't one of the things is the same."""
    a, b = one.asked, other.asked
    assert a is not None
    assert b is not None
    same = (
        a.workload.name == b.workload.name,
        a.setting.kind == b.setting.kind,
        one.point.repo == other.point.repo,
        one.point.framework == other.point.framework,
        one.point.unit == other.point.unit,
    )
    common = set(a.setting.options) & set(b.setting.options)
    return all(same) and all(a.setting.options[name] == b.setting.options[name] for name in common)


def _things(row: Row) -> tuple[str, int | None, int, str, str]:
    asked: Asked | None = row.asked
    assert asked is not None
    s = asked.setting
    return s.precision, s.batch, s.n_cards, s.mode, asked.machine.card.name


def _rank(things: Sequence[str | int | None]) -> tuple[int, int, int, int]:
    precision, batch, n_cards, mode, _ = things
    return PRECISIONS.index(str(precision)), int(batch or 0), int(n_cards or 0), MODES.index(str(mode))


def rate(value: float, row: Row) -> float:
    """A point's or prediction's figure as work a second: the more, the faster."""
    if row.point.unit != "ms":
        return value
    return (row.point.batch or 1) * row.point.n_gpus * 1e3 / value


def _predicted(row: Row) -> float:
    assert row.predicted is not None
    return rate(row.predicted, row)
