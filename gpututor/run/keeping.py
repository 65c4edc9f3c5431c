"""A finished run as an entry of the history."""

from __future__ import annotations

from pathlib import Path

from gpututor.history import Entry
from gpututor.history.commit import commit_of
from gpututor.history.entry import accounts_a_step
from gpututor.run.outcome import Outcome


def entry_of(outcome: Outcome) -> Entry:
    """The outcome as the history keeps it; a run without a ledger has the reason in place of figures.

    How long a run was asked to be doesn't make it another one; what its script was told does.
    """
    request, ledger, label = outcome.request, outcome.ledger, outcome.timeline.label if outcome.timeline else None
    reasons = {"step_ns": outcome.why_none} if outcome.why_none else {}
    if outcome.ended.status:
        reasons["status"] = f"the script ended with {outcome.ended.how}"
    if outcome.usd_per_hour is None:
        reasons["usd_per_1000_steps"] = "there is no price for this machine"
    return Entry(
        kind="run",
        name=request.name,
        origin="measured" if request.here else "simulated",
        machine=outcome.machine.name if outcome.machine else label.host if label else None,
        card=outcome.machine.card.name if outcome.machine else label.card if label else None,
        configuration={
            "target": request.target if request.is_module else str(Path(request.target).resolve()),
            "arguments": list(request.arguments),
            "skip": request.skip,
            "numerics": request.numerics,
            "clock": "real" if request.here else request.clock,
        },
        versions=dict(label.versions) if label else {},
        commit=commit_of(Path.cwd() if request.is_module else Path(request.target)),
        n_steps=ledger.n_steps if ledger else 0,
        step_ns=ledger.step_ns if ledger else None,
        busy_share=ledger.busy_share if ledger else None,
        busy_basis="the ledger of torch.profiler's trace" if request.here else "the ledger of the simulated card",
        accounts_ns=accounts_a_step(ledger) if ledger else {},
        usd_per_hour=outcome.usd_per_hour,
        usd_per_1000_steps=outcome.usd_per_1000_steps,
        reasons=reasons,
    )
