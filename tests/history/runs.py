"""Runs for tests: drawn as a row of step times in milliseconds."""

from __future__ import annotations

from gpututor.history import Entry
from gpututor.ledger import Account

MS = 1_000_000


def run(step_ms: float | None = 10, input_ms: float = 2, **other) -> Entry:
    """A run of train.py; its step is an input wait and launch overhead."""
    accounts = {}
    if step_ms is not None:
        accounts = {Account.WAITING_FOR_INPUT: input_ms * MS, Account.LAUNCH_OVERHEAD: (step_ms - input_ms) * MS}
    fields = {
        "kind": "run",
        "name": "train.py",
        "origin": "simulated",
        "machine": "p3.2xlarge",
        "card": "V100-SXM2-16GB",
        "configuration": {"arguments": ["--batch", "32"]},
        "versions": {"torch": "2.13.0"},
        "commit": "a" * 40,
        "n_steps": 50,
        "step_ns": None if step_ms is None else step_ms * MS,
        "busy_share": 0.25,
        "busy_basis": "the ledger",
        "accounts_ns": accounts,
        "usd_per_hour": 3.06,
        "usd_per_1000_steps": 0.0085,
        "reasons": {} if step_ms is not None else {"step_ns": "nothing was launched"},
    }
    return Entry(**{**fields, **other})


def row(text: str, **other) -> list[Entry]:
    """Runs numbered from 1, a step time in ms each: `row("10 10 12")`."""
    return [
        run(float(ms), number=k, at=f"2026-01-{k:02}T00:00:00+00:00", **other) for k, ms in enumerate(text.split(), 1)
    ]
