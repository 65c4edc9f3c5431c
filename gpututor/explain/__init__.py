"""Why a trace is slow: from any torch.profiler trace to its ledger, its causes, and what a change would gain."""

from __future__ import annotations

from gpututor.explain.explained import Explained, explain
from gpututor.explain.windows import Window

__all__ = ["Explained", "Window", "explain"]
