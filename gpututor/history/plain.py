"""Runs, comparisons and changes as plain data for JSON and CSV; names carry the units."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from gpututor.history.changes import Change, Moved
from gpututor.history.entry import Entry
from gpututor.ledger import Account

FIGURES = ("step_ns", "busy_share", "busy_basis", "usd_per_hour", "usd_per_1000_steps")
COLUMNS = (
    *("number", "at", "kind", "name", "origin", "machine", "card", "commit", "n_steps"),
    *FIGURES,
    *(f"{account.name.lower()}_ns" for account in Account),
    *("configuration", "versions"),
)


def run_fields(entry: Entry) -> dict[str, Any]:
    """One run; accounts are nanoseconds a step, null means not known, and `reasons` says why."""
    heads = ("number", "at", "kind", "name", "origin", "machine", "card")
    return (
        {name: getattr(entry, name) for name in heads}
        | {"configuration": dict(entry.configuration), "versions": dict(entry.versions), "commit": entry.commit}
        | {"n_steps": entry.n_steps}
        | {name: getattr(entry, name) for name in FIGURES}
        | {"accounts_ns": {account.name.lower(): ns for account, ns in entry.accounts_ns.items()}}
        | {"reasons": dict(entry.reasons)}
    )


def change_fields(change: Change) -> dict[str, Any]:
    """A change of the step time; `moved` are the accounts, the largest difference first."""
    return {
        "since": change.since.number,
        "until": change.until.number,
        "over": change.over,
        "n_runs": change.n_runs,
        "kind": change.key.kind,
        "name": change.key.name,
        "machine": change.key.machine or None,
        "before_ns": change.band.expected,
        "band_ns": [change.band.low, change.band.high],
        "after_ns": change.after_ns,
        "share": change.share,
        "account": change.account.account.name.lower() if change.account else None,
        "moved": [moved_fields(each) for each in change.moved],
        "text": change.text,
    }


def moved_fields(each: Moved) -> dict[str, Any]:
    """One account before and after, in nanoseconds a step."""
    return {"account": each.account.name.lower(), "before_ns": each.before_ns, "after_ns": each.after_ns}


def csv_lines(runs: Sequence[Entry]) -> Iterator[str]:
    """A header and a line a run; an empty cell means not known, for accounts no time where the run has accounts."""
    yield _line(COLUMNS)
    for run in runs:
        fields = run_fields(run)
        accounts = {f"{a.name.lower()}_ns": run.accounts_ns.get(a, 0) for a in Account} if run.accounts_ns else {}
        fields |= accounts | {name: json.dumps(fields[name], default=str) for name in ("configuration", "versions")}
        yield _line(fields.get(name) for name in COLUMNS)


def _line(cells: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return out.getvalue()
