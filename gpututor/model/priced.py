"""What a launch queue takes: work whose length on one machine is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpututor.timeline import KernelWork, Span


@dataclass(frozen=True, slots=True)
class PricedOp:
    """One framework op on one machine: host nanoseconds around its launches, and its kernels."""

    name: str
    host_lane: int
    python_ns: int
    dispatch_ns: int
    launch_ns: int  # each
    kernels: tuple[tuple[str, int, KernelWork], ...]  # name, duration in ns, work


@dataclass(frozen=True, slots=True)
class PricedGraph:
    """A captured graph on one machine: what the host does for a replay, and its kernels and copies in order."""

    name: str
    before_ns: int
    launch_ns: int
    work: tuple[tuple[str, int, KernelWork], ...]  # name, duration in ns, work


class SpanSink(Protocol):
    """Where finished spans go; a list's `append` fits."""

    def append(self, span: Span, /) -> None:
        """Take one finished span."""
