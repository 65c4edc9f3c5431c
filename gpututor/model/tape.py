"""What a run did, without saying on which machine; `price` plays it on one and gives a `Timeline`.

A tape is written once, by a program that really ran, and can be priced for any card and host
in milliseconds. It holds only what doesn't depend on the machine: ops with their kernels, copies,
waits, step marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpututor.errors import TimelineError
from gpututor.model.cost import copy_ns, price
from gpututor.model.host import op_host, sync_ns
from gpututor.model.queue import AUTOGRAD, MAIN, PricedOp, Queue, lanes
from gpututor.model.spec import HostKind, KernelSpec
from gpututor.timeline import Activity, Label, Origin, Span, Step, Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine

PHASES = ("forward", "no_grad", "backward", "optimizer")


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
class BeginStep:
    """A training step begins here and lasts until the next one begins or the run ends."""

    n_samples: int | None = None


@dataclass(frozen=True, slots=True)
class EndRun:
    """What follows belongs to no step any more."""


Entry = TapeOp | CopyCall | Sync | HostWork | UseStream | RecordEvent | WaitEvent | BeginStep | EndRun


class Pricer:
    """Prices of tape entries on one machine, each worked out once."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sync_ns = sync_ns(machine.host)
        self._ops: dict[int, tuple[TapeOp, PricedOp]] = {}  # by identity: hashing an op costs more than playing it
        self._copies: dict[CopyCall, tuple[int, int]] = {}

    def op(self, op: TapeOp) -> PricedOp:
        """The op with durations on this machine."""
        known = self._ops.get(id(op))
        if known is None:
            known = self._ops[id(op)] = (op, self._price(op))
        return known[1]

    def _price(self, op: TapeOp) -> PricedOp:
        host = op_host(op.host, op.phase, len(op.kernels), self.machine.host)
        kernels = []
        for spec in op.kernels:
            priced = price(spec, self.machine.card)
            kernels.append((spec.name, priced.duration_ns, priced.work))
        lane = AUTOGRAD if op.phase == "backward" else MAIN
        return PricedOp(op.name, lane, host.python_ns, host.dispatch_ns, host.launch_ns, tuple(kernels))

    def copy(self, copy: CopyCall) -> tuple[int, int]:
        """Nanoseconds on the link, and of the host's call before it."""
        known = self._copies.get(copy)
        if known is None:
            machine = self.machine
            direction = "to GPU" if copy.to_gpu else "to host"
            call = op_host(HostKind.COPY, copy.phase, 1, machine.host)
            known = self._copies[copy] = (
                copy_ns(copy.n_bytes, machine.card, machine.host, direction, pinned=copy.pinned),
                call.python_ns + call.dispatch_ns + call.launch_ns,
            )
        return known


class Player:
    """Plays tape entries into a queue, live or from a tape, and keeps the step marks."""

    def __init__(self, pricer: Pricer, sink: list[Span] | None = None, n_cards: int = 1) -> None:
        self.pricer = pricer
        self.queue = Queue(pricer.sync_ns, sink, n_cards=n_cards, n_sms=pricer.machine.card.n_sms)
        self.events: dict[int, int] = {}
        self.begins: list[tuple[int, int | None]] = []
        self.end_ns: int | None = None

    def play(self, entry: Entry) -> None:
        """Move the clocks by one entry."""
        if type(entry) is TapeOp:
            self.queue.op(self.pricer.op(entry))
        else:
            self._other(entry)

    def _other(self, entry: Entry) -> None:
        queue = self.queue
        match entry:
            case CopyCall():
                link_ns, call_ns = self.pricer.copy(entry)
                queue.copy(entry.name, entry.to_gpu, entry.n_bytes, link_ns, call_ns, entry.blocking)
            case Sync():
                waited = (entry.stream,) if isinstance(entry.stream, int) else entry.stream
                queue.synchronize(entry.name, waited)
            case HostWork():
                queue.host_work(entry.activity, entry.name, entry.long_ns)
            case UseStream():
                queue.use_stream(entry.stream, entry.card)
            case RecordEvent():
                self.events[entry.event] = queue.event_ns(entry.stream)
            case WaitEvent():
                self._wait(entry)
            case BeginStep():
                self.begins.append((queue.host_ns, entry.n_samples))
                self.end_ns = None
            case EndRun():
                self.end_ns = queue.host_ns

    def _wait(self, wait: WaitEvent) -> None:
        reached_ns = self.events.get(wait.event, 0)
        if wait.stream is not None:
            self.queue.stream_waits_until(wait.stream, reached_ns)
        else:
            late_ns = max(0, reached_ns - self.queue.host_ns) + self.pricer.sync_ns
            self.queue.host_work(Activity.SYNC, "event.synchronize", late_ns)


@dataclass(slots=True)
class Tape:
    """The entries of one run in order, the losses of its steps, what the run was, and how many cards it could use."""

    what: str = ""
    entries: list[Entry] = field(default_factory=list)
    losses: list[float | None] = field(default_factory=list)
    n_cards: int = 1

    @property
    def n_steps(self) -> int:
        """How many steps were marked."""
        return sum(type(e) is BeginStep for e in self.entries)

    def steps(self, first: int, end: int) -> Tape:
        """Steps `first` to `end` (not included) as a tape of their own.

        Raises:
            TimelineError: there are not that many steps.
        """
        marks = [k for k, e in enumerate(self.entries) if type(e) in (BeginStep, EndRun)]
        n = self.n_steps
        if not 0 <= first < end <= n:
            raise TimelineError(f"steps {first} to {end} were asked for, but the run has {n}")
        begins = [k for k in marks if type(self.entries[k]) is BeginStep]
        stop = begins[end] if end < n else marks[-1] if marks[-1] > begins[-1] else len(self.entries)
        part = [*self.entries[begins[first] : stop], EndRun()]
        return Tape(self.what, part, self.losses[first:end], self.n_cards)

    def price(self, machine: Machine, versions: Sequence[tuple[str, str]] = ()) -> Timeline:
        """What this run would have looked like on `machine`, as a simulated timeline.

        Raises:
            TimelineError: the tape is empty, or the run used more cards than the machine has.
        """
        spans: list[Span] = []
        if self.n_cards > 1 and machine.n_cards < self.n_cards:
            raise TimelineError(
                f"the run used a machine with {self.n_cards} cards and {machine.name} has {machine.n_cards}; "
                "price it on a machine with as many"
            )
        player = Player(Pricer(machine), spans, self.n_cards)
        for entry in self.entries:
            player.play(entry)
        label = Label(Origin.SIMULATED, machine.card.name, machine.name, self.what, tuple(versions), machine.card.n_sms)
        return timeline_of(player, spans, label, self.losses)


def timeline_of(player: Player, spans: list[Span], label: Label, losses: Sequence[float | None]) -> Timeline:
    """The timeline of everything played: the window runs from the first step to the end of the last.

    Raises:
        TimelineError: nothing was played.
    """
    end_ns = player.end_ns if player.end_ns is not None else player.queue.end_ns
    begins = player.begins or [(0, None)]
    if end_ns <= begins[0][0]:
        raise TimelineError("the run did nothing on host or card, so there is no time to account for")
    ends = [at for at, _ in begins[1:]] + [end_ns]
    steps = tuple(
        Step(start, end, n, losses[k] if k < len(losses) else None)
        for k, ((start, n), end) in enumerate(zip(begins, ends, strict=True))
    )
    return Timeline(
        lanes(player.queue.stream_card), tuple(spans), (begins[0][0], end_ns), label, steps if player.begins else ()
    )
