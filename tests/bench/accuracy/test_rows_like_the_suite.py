"""Rows made from the published tables read like the suite's own, and none of them is one of those."""

from __future__ import annotations

import csv
import io

import pytest

from gpututor.bench.accuracy.points import points_of
from gpututor.bench.accuracy.resolve import Skip, resolve

SKIPS = ("none of our workloads is called", "no card is called", "split over the GPUs")


@pytest.fixture(params=["nvidia", "timm", "neusight", "deepbench", "lambda"])
def made(request, shared, monkeypatch):
    """Some rows of one source, as points, and the lines that they came in."""
    monkeypatch.setenv("GPUTUTOR_SHARED", str(shared))
    from tools.calibrate.rows_like_the_suite import COLUMNS, rows

    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows([request.param], every=9))
    return points_of(text.getvalue().splitlines(keepends=True), request.param)


def test_every_row_is_predicted_or_skipped_for_a_reason_that_is_none_of_ours(made):
    found = [resolve(one) for one in made]

    assert all(any(why in one.reason for why in SKIPS) for one in found if isinstance(one, Skip))
    assert sum(not isinstance(one, Skip) for one in found) > len(found) // 4


def test_no_row_is_one_of_the_suites(made, shared):
    with (shared / "measured" / "validation_open.csv").open(encoding="utf-8", newline="") as file:
        judged = {
            (r["path"], r["line"], r["model"], r["precision"], float(r["measured"])) for r in csv.DictReader(file)
        }

    assert not judged & {(p.path, p.line, p.model, p.precision, p.measured) for p in made}
