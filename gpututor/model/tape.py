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
from gpututor.model.cost import Priced, copy_ns, price
from gpututor.model.costs.rnn_layer import kernels_on
from gpututor.model.entries import (
    MODULE_CALL,
    BeginStep,
    CopyCall,
    EndRun,
    Entry,
    GraphReplay,
    HostWork,
    ModuleCall,
    OneCardEntry,
    RecordEvent,
    Sync,
    TapeOp,
    UseStream,
    WaitEvent,
)
from gpututor.model.host import module_ns, op_host, sync_ns
from gpututor.model.lanes import AUTOGRAD, MAIN
from gpututor.model.marks import LAUNCH_BLOCKING, BeginPause, EndPause, LaunchBlocking, MarkEntry, one_by_one
from gpututor.model.priced import PricedGraph, PricedOp
from gpututor.model.queue import Queue
from gpututor.model.spec import HostKind, KernelSpec
from gpututor.model.what_if import AS_IT_IS, WhatIf
from gpututor.timeline import Activity, KernelWork, Label, Origin, Span, Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine

__all__ = [
    "CLOCKS",
    "IN_BACKWARD",
    "MODULE_CALL",
    "REAL_HOST",
    "BeginStep",
    "CopyCall",
    "EndRun",
    "Entry",
    "GraphReplay",
    "HostWork",
    "ModuleCall",
    "OneCardEntry",
    "Player",
    "Pricer",
    "RecordEvent",
    "Sync",
    "Tape",
    "TapeOp",
    "UseStream",
    "WaitEvent",
]

IN_BACKWARD = ("backward", "compiled_backward")
CLOCKS = ("virtual", "paced")
REAL_HOST = "this computer in real time (paced)"  # in the label: such a timeline doesn't repeat


class Pricer:
    """Prices of tape entries on one machine, each worked out once."""

    def __init__(self, machine: Machine, what_if: WhatIf = AS_IT_IS) -> None:
        self.machine, self.what_if = machine, what_if
        self.sync_ns = sync_ns(machine.host)
        self.module_ns = module_ns(machine.host)
        self.ops: dict[int, tuple[TapeOp, PricedOp]] = {}  # by identity: hashing an op costs more than playing it
        self._kernels: dict[KernelSpec, Priced] = {}
        self._copies: dict[CopyCall, tuple[int, int]] = {}
        self._graphs: dict[int, tuple[GraphReplay, PricedGraph]] = {}  # by identity, like the ops

    def op(self, op: TapeOp) -> PricedOp:
        """The op with durations on this machine."""
        known = self.ops.get(id(op))
        if known is None:
            known = self.ops[id(op)] = (op, self._price(op))
        return known[1]

    def _price(self, op: TapeOp) -> PricedOp:
        card = self.machine.card
        specs = kernels_on(op.kernels, card)
        host = op_host(op.host, op.phase, len(specs), self.machine.host)
        kernels = []
        for spec in specs:
            priced = self._kernels.get(spec)
            if priced is None:  # a recurrent layer has the same kernels step after step
                priced = self._kernels[spec] = price(spec, card)
            kernels.append((spec.name, self.what_if.kernel_ns(spec, priced.duration_ns), priced.work))
        lane = AUTOGRAD if op.phase in IN_BACKWARD else MAIN
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

    def graph(self, replay: GraphReplay) -> PricedGraph:
        """The graph with durations on this machine; the launch call takes as long as a kernel's."""
        known = self._graphs.get(id(replay))
        if known is None:
            work: list[tuple[str, int, KernelWork]] = []
            for node in replay.nodes:
                if isinstance(node, TapeOp):
                    work += self.op(node).kernels
                else:
                    kind = "copy to GPU" if node.to_gpu else "copy to host"
                    work.append((node.name, self.copy(node)[0], KernelWork(kind, moved_bytes=float(node.n_bytes))))
            call = op_host(HostKind.VIEW, "no_grad", 1, self.machine.host)  # Python and a thin C++ call, no operator
            priced = PricedGraph("replay", call.python_ns + call.dispatch_ns, call.launch_ns, tuple(work))
            known = self._graphs[id(replay)] = (replay, priced)
        return known[1]


class Player:
    """Plays tape entries into a queue, live or from a tape, and keeps the step marks."""

    def __init__(self, pricer: Pricer, sink: list[Span] | None = None, n_cards: int = 1) -> None:
        self.pricer, self.priced_ops = pricer, pricer.ops
        self.queue = self.make_queue(sink, n_cards)
        self.events: dict[int, int] = {}
        self.begins: list[tuple[int, int | None]] = []
        self.useful_shares: list[float | None] = []  # of each step
        self.end_ns: int | None = None
        self.pauses: list[tuple[str, int]] = []  # open ones: name, and when they began
        self.launches_wait = False

    def make_queue(self, sink: list[Span] | None, n_cards: int) -> Queue:
        """The clocks to move."""
        pricer = self.pricer
        return Queue(
            pricer.sync_ns,
            sink,
            n_cards=n_cards,
            n_sms=pricer.machine.card.n_sms,
            launch_latency_ns=pricer.what_if.launch_latency_ns,
            kernel_gap_ns=pricer.what_if.kernel_gap_ns,
        )

    def play(self, entry: Entry) -> None:
        """Move the clocks by one entry."""
        if self.launches_wait:
            self._play_and_wait(entry)
        elif type(entry) is TapeOp:
            self.queue.op(self.pricer.op(entry))
        elif type(entry) is ModuleCall:
            self.queue.host_work(Activity.PYTHON, "module", self.pricer.module_ns)
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
            case GraphReplay():
                queue.replay(self.pricer.graph(entry))
            case BeginStep():
                self.begins.append((queue.host_ns, entry.n_samples))
                self.useful_shares.append(entry.useful_share)
                self.end_ns = None
            case EndRun():
                self.end_ns = queue.host_ns
            case BeginPause() | EndPause() | LaunchBlocking():
                self._mark(entry)

    def _mark(self, mark: MarkEntry) -> None:
        match mark:
            case BeginPause():
                self.pauses.append((mark.name, self.queue.host_ns))
            case EndPause() if self.pauses:  # a tape cut inside a pause has the end alone
                name, began_ns = self.pauses.pop()
                long_ns, self.queue.host_ns = self.queue.host_ns - began_ns, began_ns  # over the time that has passed
                self.queue.host_work(Activity.PAUSE, name, long_ns)
            case LaunchBlocking():
                self.launches_wait = mark.on

    def _play_and_wait(self, entry: Entry) -> None:
        """The same where each launch waits for what it started."""
        queue = self.queue
        if type(entry) is TapeOp:
            for piece in one_by_one(self.pricer.op(entry)):
                queue.op(piece)
                if piece.kernels:
                    queue.synchronize(LAUNCH_BLOCKING, (queue.stream,))
        elif type(entry) is ModuleCall:
            queue.host_work(Activity.PYTHON, "module", self.pricer.module_ns)
        else:
            self._other(entry)
            if type(entry) is GraphReplay or (type(entry) is CopyCall and not entry.blocking):
                queue.synchronize(LAUNCH_BLOCKING, (queue.stream,))

    def _wait(self, wait: WaitEvent) -> None:
        reached_ns = self.events.get(wait.event, 0)
        if wait.stream is not None:
            self.queue.stream_waits_until(wait.stream, reached_ns)
        else:
            late_ns = max(0, reached_ns - self.queue.host_ns) + self.pricer.sync_ns
            self.queue.host_work(Activity.SYNC, "event.synchronize", late_ns)


@dataclass(slots=True)
class Tape:
    """The entries of one run in order, the losses of its steps, what the run was, and how many cards it could use.

    With `n_ranks` it is one process of as many that all do the same, each with a card of its own.
    """

    what: str = ""
    entries: list[Entry] = field(default_factory=list)
    losses: list[float | None] = field(default_factory=list)
    n_cards: int = 1
    clock: str = "virtual"  # or "paced": the host's time was real, and lies between the entries as host work
    n_ranks: int = 1

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
        return Tape(self.what, part, self.losses[first:end], self.n_cards, self.clock, self.n_ranks)

    def price(self, machine: Machine, versions: Sequence[tuple[str, str]] = (), what_if: WhatIf = AS_IT_IS) -> Timeline:
        """What this run would have looked like on `machine`, as a simulated timeline.

        With `what_if` some of the model's own constants are others, to see how much hangs on them. Ranks lie on as
        many machines of the kind as they need, and exchange data as they do in training (`RankTapes.price`).

        Raises:
            TimelineError: the tape is empty, or the run used more cards than the machine has.
        """
        from gpututor.model.cards_player import player_for
        from gpututor.model.played import timeline_of

        if self.n_ranks > 1:
            from gpututor.model.ranks import RankTapes

            ranks = RankTapes([self], self.n_ranks, self.what, self.losses)
            return ranks.price(machine, None, versions, as_in_training=True, what_if=what_if)
        spans: list[Span] = []
        if self.n_cards > 1 and machine.n_cards < self.n_cards:
            raise TimelineError(
                f"the run used a machine with {self.n_cards} cards and {machine.name} has {machine.n_cards}; "
                "price it on a machine with as many"
            )
        player = player_for(machine, spans, self.n_cards, what_if)
        for entry in self.entries:
            player.play(entry)
        host = machine.name if self.clock == "virtual" else REAL_HOST
        label = Label(Origin.SIMULATED, machine.card.name, host, self.what, tuple(versions), machine.card.n_sms)
        return timeline_of(player, spans, label, self.losses)
