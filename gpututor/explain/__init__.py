"""Why a trace is slow: from any torch.profiler trace to its ledger, its causes, and what a change would gain."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpututor.explain.explained import Explained, explain
    from gpututor.explain.windows import Window

# The front page has a place to drop a trace, and doesn't wait for the reader of one.
LATER = {
    "Explained": "gpututor.explain.explained",
    "Window": "gpututor.explain.windows",
    "explain": "gpututor.explain.explained",
}

__all__ = ["Explained", "Window", "explain"]


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'gpututor.explain' has no attribute {name!r}")
    return getattr(import_module(LATER[name]), name)
