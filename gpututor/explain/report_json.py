"""An explained trace as JSON, for programs; names carry the units.

Layout of version 1::

    {"format": "gpututor-explain", "version": 1,
     "file": name,
     "refused": null | text,                              # a sentence where the file can't be explained; then no more
     "losses": [text, …],                                 # what was damaged in the file, left out or mended
     "card": name | null, "versions": {name: text},
     "device": integer | null, "n_devices": integer,      # the GPU that is explained, null where there is only one
     "steps": {"n": integer, "found": text, "step_ns": number | null,  # their mean; then their median and their range
               "typical_ns": number | null, "shortest_ns": integer | null, "longest_ns": integer | null},
     "windows": {"span": window | null, "steps": window | null},
     "explained": "steps" | "span",                       # the window that gauges and findings are about
     "disagreement": text | null,                         # where the two windows would lead to different conclusions
     "gauges": {"busy_share", "gpu_util_share", "sm_fill_share", "mfu"}, "reasons": {gauge: text},
     "mfu_at_least": number | null,                       # by the kernels whose FLOP are known; the MFU where all are
     "kernel_classes": {class: share of kernel time}, "tensor_cores": {"on", "off", "unknown": share of matrix kernels},
     "graph_share": number | null,                        # of the busy time, run from CUDA or HIP graphs; null: none
     "findings": [{"cause", "account", "share", "evidence", "change", "gain", "confidence", "why_so_sure", "lesson",
                   "sentence"}, …]}

A window is `{"duration_ns", "busy_share", "idle_share", "communication_share", "loader_idle_share",
"accounts": {account: share}}`. There everything on the GPU is busy, copies and communication too; the accounts, which
add up to 1, are stricter: what isn't hidden under a kernel is an account of its own. A folder of ranks gives
`{"format", "version", "ranks": [document, …], "across": {...}}` (see `ranks`).
"""

from __future__ import annotations

from typing import Any

from gpututor.causes import finding_fields
from gpututor.explain.explained import Explained
from gpututor.explain.windows import Window

FORMAT, VERSION = "gpututor-explain", 1


def document(one: Explained) -> dict[str, Any]:
    """The explained trace as plain data."""
    ledger, label = one.window.ledger, one.timeline.label
    classes, cores = one.kernel_classes(), one.tensor_core_ns()
    return {
        "format": FORMAT,
        "version": VERSION,
        "file": one.name,
        "refused": None,
        "losses": list(one.timeline.losses),
        "card": label.card,
        "versions": dict(label.versions),
        "device": one.device,
        "n_devices": one.n_devices,
        "steps": _steps(one),
        "windows": {"span": _window(one.span), "steps": _window(one.steps)},
        "explained": "steps" if one.steps else "span",
        "disagreement": one.disagreement,
        "gauges": {
            "busy_share": ledger.busy_share,
            "gpu_util_share": ledger.gpu_util_share,
            "sm_fill_share": ledger.sm_fill_share,
            "mfu": ledger.mfu,
        },
        "reasons": dict(ledger.reasons),
        "mfu_at_least": ledger.mfu_at_least,
        "kernel_classes": shares(classes),
        "tensor_cores": shares(cores),
        "graph_share": one.graph_share(),
        "findings": [
            finding_fields(found) | {"why_so_sure": found.confidence.reason, "sentence": found.sentence}
            for found in one.findings
        ],
    }


def refused(name: str, sentence: str) -> dict[str, Any]:
    """What stands in place of a document where a file can't be explained."""
    return {"format": FORMAT, "version": VERSION, "file": name, "refused": sentence, "losses": []}


def shares(amounts: dict[str, int]) -> dict[str, float] | None:
    """Amounts as shares of their sum; None where there is nothing to share."""
    whole = sum(amounts.values())
    return {name: amount / whole for name, amount in amounts.items()} if whole else None


def _steps(one: Explained) -> dict[str, Any]:
    ledger, typical = one.window.ledger, one.typical if one.window.ledger.n_steps else None
    return {
        "n": ledger.n_steps,
        "found": one.how,
        "step_ns": ledger.step_ns,
        "typical_ns": typical and typical.step_ns,
        "shortest_ns": typical and typical.shortest_ns,
        "longest_ns": typical and typical.longest_ns,
    }


def _window(window: Window | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {
        "duration_ns": window.duration_ns,
        "busy_share": window.busy_share,
        "idle_share": window.idle_share,
        "communication_share": window.communication_share,
        "loader_idle_share": window.loader_idle_share,
        "accounts": {a.name.lower(): ns / window.duration_ns for a, ns in window.ledger.charged_ns.items()},
    }
