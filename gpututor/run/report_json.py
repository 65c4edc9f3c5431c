"""The report of a run as JSON, for programs. The same run always gives the same figures; names carry the units.

Layout of version 1::

    {"format": "gpututor-run", "version": 1,
     "script": name, "arguments": [text, …],
     "origin": "simulated" | "measured",
     "machine": name, "card": name, "usd_per_hour": number,
     "clock": "virtual" | "paced", "numerics": true | false,
     "ended": {"status", "how", "stopped", "error", "seconds", "host_memory_peak_bytes"},
     "steps": {"found_by": "marked" | "optimizer" | "backward" | null, "n_run", "n_left_out", "n_kept",
               "step_ns", "losses": [number, …]},         # losses of the kept steps, null where none was found
     "gauges": {"busy_share", "gpu_util_share", "sm_fill_share", "mfu"},
     "bands": {"step_ns": [low, high], "gpu_util_share": [low, high], "source": text},    # null where measured
     "gpu_util_samples": {"period_s", "low_share", "high_share"},  # what nvidia-smi would show, in whole percents
     "reasons": {gauge: text},                            # why a gauge is null
     "window_ns": integer, "accounts_ns": {account: integer},      # the accounts sum to the window
     "memory_peak_bytes": integer, "n_kernels": integer,
     "usd_per_1000_steps": number,
     "findings": [{"cause", "account", "share", "evidence": [{"name", "value", "unit", "text"}, …],
                   "change", "gain": {"from_ns", "to_ns", "per"}, "confidence", "lesson"}, …],
     "notes": [text, …], "why_no_ledger": text,
     "verdicts": {"step", "accounts": [{"account", "seen_ns", "expected_ns", "low_ns", "high_ns", "verdict",
                  "explanations", "experiment", "outcomes"}, …], "source"}}  # of the measured one, with --compare

`null` means that it isn't known. A later version may add names; it takes none away without another version.
"""

from __future__ import annotations

from typing import Any

from gpututor.causes import finding_fields
from gpututor.expect import Band, Verdicts
from gpututor.ledger import SHORTEST_PERIOD_S
from gpututor.run.outcome import Outcome

FORMAT, VERSION = "gpututor-run", 1


def document(outcome: Outcome) -> dict[str, Any]:
    """The outcome as plain data."""
    request, ended, ledger = outcome.request, outcome.ended, outcome.ledger
    told, machine = ended.told, outcome.machine
    label = outcome.timeline.label if outcome.timeline else None
    steps = outcome.timeline.steps if outcome.timeline else ()
    return {
        "format": FORMAT,
        "version": VERSION,
        "script": request.name,
        "arguments": list(request.arguments),
        "origin": label.origin.value if label else "measured" if request.here else "simulated",
        "machine": machine.name if machine else None,
        "card": machine.card.name if machine else label.card if label else None,
        "usd_per_hour": outcome.usd_per_hour,
        "clock": request.clock,
        "numerics": request.numerics,
        "ended": {
            "status": ended.status,
            "how": ended.how,
            "stopped": ended.stopped,
            "error": told.get("error"),
            "seconds": round(ended.seconds, 3),
            "host_memory_peak_bytes": ended.host_memory_peak_bytes or None,
        },
        "steps": {
            "found_by": told.get("steps_are"),
            "n_run": told.get("n_steps", 0),
            "n_left_out": told.get("n_left_out", 0),
            "n_kept": ledger.n_steps if ledger else 0,
            "step_ns": ledger.step_ns if ledger else None,
            "losses": [step.loss for step in steps],
        },
        **_figures(outcome),
        "gpu_util_samples": _samples(outcome),
        "bands": bands(outcome.band, outcome.util_band),
        "memory_peak_bytes": outcome.memory_peak_bytes,
        "usd_per_1000_steps": outcome.usd_per_1000_steps,
        "findings": [finding_fields(found) for found in outcome.findings],
        "notes": list(outcome.notes),
        "why_no_ledger": outcome.why_none,
    }


def _figures(outcome: Outcome) -> dict[str, Any]:
    ledger = outcome.ledger
    if ledger is None:
        return {"gauges": None, "reasons": {}, "window_ns": None, "accounts_ns": None, "n_kernels": None}
    return {
        "gauges": {
            "busy_share": ledger.busy_share,
            "gpu_util_share": ledger.gpu_util_share,
            "sm_fill_share": ledger.sm_fill_share,
            "mfu": ledger.mfu,
        },
        "reasons": dict(ledger.reasons),
        "window_ns": ledger.window_ns,
        "accounts_ns": {account.name.lower(): ns for account, ns in ledger.charged_ns.items()},
        "n_kernels": ledger.n_kernels,
    }


def _samples(outcome: Outcome) -> dict[str, float] | None:
    samples = outcome.gpu_util_samples
    if not samples:
        return None
    return {"period_s": SHORTEST_PERIOD_S, "low_share": min(samples) / 100, "high_share": max(samples) / 100}


def bands(step: Band | None, util: Band | None) -> dict[str, Any] | None:
    """The room around a predicted step and its utilization as plain data; None where nothing was predicted."""
    if step is None or util is None:
        return None
    return {"step_ns": [step.low, step.high], "gpu_util_share": [util.low, util.high], "source": step.source}


def verdict_fields(found: Verdicts | None) -> dict[str, Any] | None:
    """Verdicts of a measured run beside its prediction as plain data; `account` is null for all that is busy."""
    if found is None:
        return None
    return {
        "step": found.step.verdict,
        "source": found.step.band.source,
        "accounts": [
            {
                "account": v.account.name.lower() if v.account else None,
                "seen_ns": v.difference.seen,
                "expected_ns": v.difference.band.expected,
                "low_ns": v.difference.band.low,
                "high_ns": v.difference.band.high,
                "verdict": v.difference.verdict,
                "explanations": list(v.explanations),
                "experiment": v.experiment.what if v.experiment else None,
                "outcomes": v.experiment.outcomes if v.experiment else None,
            }
            for v in found.accounts
        ],
    }
