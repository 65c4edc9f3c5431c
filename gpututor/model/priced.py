"""What a launch queue takes: work whose length on one machine is known."""

from __future__ import annotations

from dataclasses import dataclass, field
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

    # the host's nanoseconds before the first kernel's part, for each kernel until its launch has returned, and after
    # the last one: dispatch is spread evenly around the launches, and what is left of the division comes first
    before_ns: int = field(init=False, repr=False, compare=False)
    each_ns: int = field(init=False, repr=False, compare=False)
    after_ns: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out once what every run of the op needs."""
        part, rest = divmod(self.dispatch_ns, len(self.kernels) + 1)
        object.__setattr__(self, "before_ns", self.python_ns + rest)
        object.__setattr__(self, "each_ns", part + self.launch_ns)
        object.__setattr__(self, "after_ns", part)


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
