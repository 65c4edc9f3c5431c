"""What stands on a tape, entry by entry: ops with their kernels, copies, waits, the host's own work, steps."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.model.exchange import CardsEntry
from gpututor.model.marks import MarkEntry
from gpututor.model.spec import HostKind, KernelSpec
from gpututor.timeline import Activity


@dataclass(frozen=True, slots=True)
class TapeOp:
    """One framework op: who called it, how much the host does, and which kernels it starts."""

    name: str
    host: HostKind
    phase: str  # one of PHASES
    kernels: tuple[KernelSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyCall:
    """A copy between host memory and the card; `blocking` holds the host until it is done."""

    name: str
    to_gpu: bool
    n_bytes: int
    pinned: bool
    blocking: bool
    phase: str = "no_grad"


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits for one stream or several, or for everything (`stream` None)."""

    name: str
    stream: int | tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class HostWork:
    """The host does something of its own, of stated length."""

    activity: Activity
    name: str
    long_ns: int


@dataclass(frozen=True, slots=True)
class UseStream:
    """Later kernels and copies join this stream of this card; the cards' default streams have the lowest numbers."""

    stream: int
    card: int = 0


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event takes its place at the end of a stream."""

    event: int
    stream: int


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """A stream (or the host, when `stream` is None) goes on only after the event."""

    event: int
    stream: int | None


@dataclass(frozen=True, slots=True)
class GraphReplay:
    """A captured graph runs again: one launch call, then its kernels and copies in order without the host."""

    graph: int
    nodes: tuple[TapeOp | CopyCall, ...]


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """Python calls a module: hooks are looked for, and its forward's own lines run until the first operator."""


@dataclass(frozen=True, slots=True)
class BeginStep:
    """A training step begins here and lasts until the next one begins or the run ends.

    `useful_share` is the part of its kernels' arithmetic that isn't on padding, where the program says so.
    """

    n_samples: int | None = None
    useful_share: float | None = None


@dataclass(frozen=True, slots=True)
class EndRun:
    """What follows belongs to no step any more."""


OneCardEntry = (
    TapeOp
    | ModuleCall
    | CopyCall
    | Sync
    | HostWork
    | UseStream
    | RecordEvent
    | WaitEvent
    | GraphReplay
    | BeginStep
    | EndRun
)
MODULE_CALL = ModuleCall()
Entry = OneCardEntry | CardsEntry | MarkEntry
