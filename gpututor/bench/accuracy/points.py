"""The measured points that predictions are held against: read from a CSV file, one a row."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpututor.errors import PointsDamaged
from gpututor.paths import data_dir

NEEDED = tuple("id regime kind model config precision gpu n_gpus batch_per_gpu metric measured unit".split())
"""Columns that every file has; the others may be missing."""

UTILIZATION = "nvsmi_util"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """One published measurement, in the words of whoever collected it; `batch` is for one GPU, None if not said.

    `measured` is in `unit`: milliseconds ("ms"), something a second ("img/s"), or percent of time for utilization.
    """

    id: str
    regime: str
    kind: str
    model: str
    config: str
    precision: str
    gpu: str
    n_gpus: int
    batch: int | None
    metric: str
    measured: float
    unit: str
    interconnect: str = ""
    gpu_key: str = ""
    step_ms: float | None = None
    framework: str = ""
    grade: str = ""
    repo: str = ""
    path: str = ""
    line: str = ""
    commit: str = ""
    note: str = ""

    @property
    def is_utilization(self) -> bool:
        """Whether nvidia-smi's GPU-Util was measured, not a time."""
        return self.metric == UTILIZATION

    @property
    def source(self) -> str:
        """Repository, path, line and commit, as far as they are known.

        >>> point = Point("1", "r", "train", "m", "", "fp32", "T4", 1, 8, "throughput", 9.0, "img/s", repo="a/b")
        >>> point.source
        'a/b'
        """
        place = "/".join(part for part in (self.repo, self.path) if part)
        line = f" line {self.line}" if self.line else ""
        return f"{place}{line}" + (f" @{self.commit[:12]}" if self.commit else "")


def default_points() -> Path:
    """Our own table of published figures, data/points.csv."""
    return data_dir() / "points.csv"


def read_points(path: Path) -> tuple[Point, ...]:
    """The points of a file, in its order.

    Raises:
        PointsDamaged: the file can't be read, a column is missing, or a row holds what can't be; names file, row and
            column.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PointsDamaged(f"{path} can't be read ({error.strerror}); name a CSV file of measured points") from None
    except UnicodeDecodeError:
        raise PointsDamaged(f"{path} is no text in UTF-8; name a CSV file of measured points") from None
    return points_of(text.splitlines(keepends=True), str(path))


def points_of(lines: Iterable[str], name: str) -> tuple[Point, ...]:
    """The points in the lines of a CSV file called `name`.

    Raises:
        PointsDamaged: as `read_points`.
    """
    reader = csv.reader(lines, strict=True)
    try:
        rows = [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise PointsDamaged(f"{name} line {reader.line_num} is no CSV: {error}; were quotes left open?") from None
    if not rows:
        raise PointsDamaged(f"{name} is empty; its first line has to name the columns {', '.join(NEEDED)}")
    columns = [column.strip() for column in rows[0][1]]
    _check_columns(columns, name)
    found: dict[str, Point] = {}
    for line, cells in rows[1:]:
        where = f"{name} line {line}"
        if len(cells) != len(columns):
            raise PointsDamaged(
                f"{where} has {len(cells)} cells where the first line names {len(columns)} columns; "
                "is a comma inside a text without quotes?"
            )
        point = _point(dict(zip(columns, (cell.strip() for cell in cells), strict=True)), where)
        if point.id in found:
            raise PointsDamaged(f'{where} has the id "{point.id}" again; every point needs one of its own')
        found[point.id] = point
    if not found:
        raise PointsDamaged(f"{name} names its columns but holds no point; add a row for each measurement")
    return tuple(found.values())


def _check_columns(columns: list[str], name: str) -> None:
    missing = [column for column in NEEDED if column not in columns]
    if missing:
        raise PointsDamaged(f"{name} has no column {', '.join(missing)}; needed are {', '.join(NEEDED)}")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise PointsDamaged(f"{name} names the column {', '.join(twice)} twice; which one is meant can't be told")


def _point(cells: Mapping[str, str], where: str) -> Point:
    def text(column: str) -> str:
        return cells.get(column, "")

    def filled(column: str) -> str:
        if not text(column):
            raise PointsDamaged(f"{where}, column {column}, is empty; every point needs it")
        return text(column)

    def number(column: str, read: Callable[[str, str], T]) -> T | None:
        return read(text(column), f"{where}, column {column},") if text(column) else None

    metric = filled("metric")
    measured = _amount(filled("measured"), f"{where}, column measured,", zero=metric == UTILIZATION)
    if metric == UTILIZATION and measured > 100:
        raise PointsDamaged(f"{where}, column measured, is {measured:g} % utilization; it can't be above 100")
    return Point(
        **{name: filled(name) for name in ("id", "regime", "kind", "model", "precision", "gpu")},
        config=text("config"),
        n_gpus=_count(filled("n_gpus"), f"{where}, column n_gpus,"),
        batch=number("batch_per_gpu", _count),
        metric=metric,
        measured=measured,
        unit=filled("unit"),
        step_ms=number("step_ms", _amount),
        **{name: text(name) for name in ("interconnect", "gpu_key", "framework", "grade")},
        **{name: text(name) for name in ("repo", "path", "line", "commit", "note")},
    )


def _amount(text: str, where: str, *, zero: bool = False) -> float:
    try:
        value = float(text)
    except ValueError:
        raise PointsDamaged(f'{where} is "{text}", which is no number; leave it out or correct it') from None
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise PointsDamaged(f"{where} is {text}; a measurement is above zero and finite")
    return value


def _count(text: str, where: str) -> int:
    value = _amount(text, where)
    if value != round(value):
        raise PointsDamaged(f"{where} is {text}; a count is a whole number")
    return round(value)
