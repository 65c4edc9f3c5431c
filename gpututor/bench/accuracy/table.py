"""A report as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import shorten

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gpututor.bench.accuracy.rows import Row
from gpututor.bench.accuracy.summary import Report, Summary
from gpututor.bench.accuracy.what_if import WhatIf
from gpututor.text import NBSP, percent

NONE = "-"
LONGEST = 300  # characters of a reason; JSON has it whole
WORST, ALL = "worst", "all"


def show(console: Console, report: Report, what: str = WORST) -> None:
    """The statistics by regime, then the worst ten rows or all of them, and what was skipped."""
    console.print(_regimes(report))
    console.print(
        "Errors are predicted over measured time, less 1; a positive bias says that we predict too slow. "
        "Utilization in percentage points. What-ifs are pairs of points that differ in one thing.\n"
    )
    rows = [row for row in report.rows if row.skipped is None] if what == ALL else report.worst()
    if rows:
        console.print(f"{'All rows' if what == ALL else f'The worst {len(rows)}'}, with what may carry the error:")
        console.print(_rows(rows))
    if what == ALL and report.pairs:
        console.print("What-ifs:")
        console.print(_pairs(report.pairs))
    for text in _words(report):
        console.print(text)


def signed(share: float | None) -> str:
    """An error with its sign.

    >>> signed(0.061).replace(chr(160), " "), signed(-0.2).replace(chr(160), " "), signed(None)
    ('+6.1 %', '-20 %', '-')
    """
    if share is None:
        return NONE
    return f"{'+' if share > 0 else '-' if share < 0 else ''}{percent(abs(share))}"


def _share(share: float | None) -> str:
    return NONE if share is None else percent(share)


def _regimes(report: Report) -> Table:
    table = _table(
        "regime", "points", "skipped", "median error", "mean error", "bias", "within 20 %", "GPU-Util off by",
        "what-ifs", "direction right", "ratio off by",
    )  # fmt: skip
    for name, summary in report.regimes.items():
        table.add_row(name, *_cells(summary))
    table.add_section()
    table.add_row("all", *_cells(report.total))
    return table


def _cells(summary: Summary) -> tuple[str, ...]:
    points, what_if = summary.utilization_mae_points, summary.what_if
    return (
        str(summary.n),
        str(summary.skipped),
        _share(summary.median_ape),
        _share(summary.mape),
        signed(summary.bias),
        _share(summary.within_20),
        NONE if points is None else f"{points:.1f}{NBSP}points",
        str(what_if.n),
        _share(what_if.direction_right),
        _share(what_if.median_ratio_error),
    )


def _rows(rows: Iterable[Row]) -> Table:
    table = _table("id", "model", "GPU", "batch", "precision", "measured", "predicted", "error", "may be wrong")
    for row in rows:
        point = row.point
        assert row.predicted is not None
        off = signed(row.error) if row.off_points is None else f"{row.off_points:+.0f}{NBSP}points"
        unit = "%" if point.is_utilization else point.unit
        cards = f"{point.n_gpus}{NBSP}x{NBSP}" if point.n_gpus > 1 else ""
        table.add_row(
            point.id,
            f"{point.kind} {point.model}",
            f"{cards}{point.gpu_key or point.gpu}",
            NONE if point.batch is None else str(point.batch),
            point.precision.split(" ")[0],
            f"{point.measured:,.4g}{NBSP}{unit}",
            f"{row.predicted:,.4g}{NBSP}{unit}",
            off,
            row.suspects,
        )
    return table


def _pairs(pairs: Iterable[WhatIf]) -> Table:
    table = _table("from", "to", "change", "measured", "predicted", "ratio off by", "direction")
    for pair in pairs:
        right = {True: "right", False: "wrong", None: "no difference measured"}[pair.direction_right]
        ratios = f"x{NBSP}{pair.measured_ratio:.2f}", f"x{NBSP}{pair.predicted_ratio:.2f}"
        table.add_row(pair.first, pair.second, pair.change, *ratios, signed(pair.ratio_error), right)
    return table


def _words(report: Report) -> Iterable[str]:
    """A line for each row that was skipped, and for what we chose or didn't understand in the others."""
    for row in report.rows:
        if row.skipped is not None:
            yield f"skipped {row.point.id} ({row.point.model}): {shorten(row.skipped, LONGEST, placeholder=' …')}"
    for row in report.rows:
        if row.asked is not None and row.asked.not_understood:
            yield f"{row.point.id}: not understood: {', '.join(row.asked.not_understood)}"
    for row in report.rows:
        for note in row.notes:
            yield f"{row.point.id}: {note}"


def _table(*titles: str) -> Table:
    words = {"regime", "id", "model", "GPU", "may be wrong", "from", "to", "change", "direction"}
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        left = title in words
        table.add_column(title, justify="left" if left else "right", no_wrap=title in {"id", "from", "to"})
    return table
