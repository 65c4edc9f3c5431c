"""A report as plain data for JSON."""

from __future__ import annotations

from dataclasses import asdict

from gpututor.bench.accuracy.rows import Row
from gpututor.bench.accuracy.summary import Report
from gpututor.bench.accuracy.what_if import WhatIf

_SOURCE = ("repo", "path", "line", "commit")
_AS_IT_IS = ("id", "regime", "kind", "model", "config", "precision", "gpu", "n_gpus", "metric", "unit", "measured")


def fields_of(report: Report) -> dict[str, object]:
    """Statistics of all rows, the same by regime, and each row with its source and its pairs."""
    regimes = {name: asdict(summary) for name, summary in report.regimes.items()}
    rows = [row_fields(row, [p for p in report.pairs if p.second == row.point.id]) for row in report.rows]
    return asdict(report.total) | {"regimes": regimes, "rows": rows}


def row_fields(row: Row, pairs: list[WhatIf]) -> dict[str, object]:
    """One row; `error` is a share of time, `error_points` percentage points of utilization; one of them is None."""
    point, asked = row.point, row.asked
    found: dict[str, object] = {name: getattr(point, name) for name in _AS_IT_IS}
    found |= {"batch": point.batch, "predicted": row.predicted, "error": row.error, "error_points": row.off_points}
    found |= {"source": {name: getattr(point, name) for name in _SOURCE}, "grade": point.grade, "skipped": row.skipped}
    found |= {"run_as": None, "notes": list(row.notes), "not_understood": []}
    if asked is not None:
        found["run_as"] = {
            "workload": asked.workload.name,
            **{name: getattr(asked.setting, name) for name in ("kind", "batch", "precision", "layout", "mode")},
            "n_cards": asked.setting.n_cards,
            "options": dict(asked.setting.options),
            "card": asked.machine.card.name,
            "host": asked.machine.host.name,
            "host_because": asked.host_reason,
        }
        found["not_understood"] = list(asked.not_understood)
    found |= {"accounts": {a.value: share for a, share in row.accounts.items() if share}, "kernels": dict(row.kernels)}
    return found | {"likely_wrong": row.suspects or None, "what_ifs": [_pair(pair) for pair in pairs]}


def _pair(pair: WhatIf) -> dict[str, object]:
    return {
        "from": pair.first,
        "change": pair.change,
        "measured_ratio": pair.measured_ratio,
        "predicted_ratio": pair.predicted_ratio,
        "ratio_error": pair.ratio_error,
        "direction_right": pair.direction_right,
    }
