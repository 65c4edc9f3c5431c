"""Plays a tape on a machine with several cards: prices of links and collectives, and who drives which card.

Where threads share Python's lock, each holds it for the interpreter's part of an op and for nothing else: torch
lets it go inside its operators. So of n threads an op takes the longer of its own time and n times its Python time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpututor.errors import TimelineError
from gpututor.links import Wiring, wiring
from gpututor.model.cards_queue import CardsQueue
from gpututor.model.collectives import Team, exchange_ns, peer_copy_ns, sent_share
from gpututor.model.exchange import CardsExchange, PeerCopy, RanksExchange, Threads, WaitExchange
from gpututor.model.host import op_host
from gpututor.model.lanes import AUTOGRAD, MAIN
from gpututor.model.priced import PricedOp
from gpututor.model.spec import HostKind
from gpututor.model.tape import IN_BACKWARD, Entry, Player, Pricer, Sync, TapeOp, UseStream
from gpututor.model.what_if import AS_IT_IS, WhatIf
from gpututor.timeline import KernelWork, Span

if TYPE_CHECKING:
    from gpututor.cards import Machine

LAUNCHES_OF_A_COLLECTIVE = 3
"""Driver calls for one: mark the current stream, let the other stream wait for the mark, launch. Source: c10d."""


class CardsPricer(Pricer):
    """Prices on a machine with several cards, or on several machines joined by `network`."""

    def __init__(self, machine: Machine, network: str | None = None, what_if: WhatIf = AS_IT_IS) -> None:
        super().__init__(machine, what_if)
        self.wiring = wiring(machine, network)
        self._lanes, self._sharing = (MAIN, AUTOGRAD), 1
        self._tables: dict[tuple[int, int, int], dict[int, tuple[TapeOp, PricedOp]]] = {}
        self.drive(MAIN, AUTOGRAD, 1)

    def drive(self, main_lane: int, autograd_lane: int, n_sharing: int) -> None:
        """Ops are run by the threads on these lanes, and `n_sharing` threads share Python's lock."""
        self._lanes, self._sharing = (main_lane, autograd_lane), n_sharing
        self._ops = self._tables.setdefault((main_lane, autograd_lane, n_sharing), {})

    def lane(self, phase: str) -> int:
        """The lane of the thread that runs an op of this phase."""
        return self._lanes[phase in IN_BACKWARD]

    def _price(self, op: TapeOp) -> PricedOp:
        priced = super()._price(op)
        own_ns = priced.python_ns + priced.dispatch_ns + priced.launch_ns * len(priced.kernels)
        waits_ns = max(0, self._sharing * priced.python_ns - own_ns)
        return PricedOp(
            priced.name, self.lane(op.phase), priced.python_ns + waits_ns, priced.dispatch_ns, priced.launch_ns,
            priced.kernels,
        )  # fmt: skip

    def call_ns(self, kind: HostKind, phase: str, n_launches: int) -> int:
        """Nanoseconds of the host for one call."""
        host = op_host(kind, phase, n_launches, self.machine.host)
        return host.python_ns + host.dispatch_ns + n_launches * host.launch_ns

    def team(self, n: int, n_machines: int = 1, *, busy: bool = False) -> Team:
        """So many cards of so many machines of this kind; `busy` ones compute meanwhile."""
        own = self.wiring
        return Team(n, n_machines, Wiring(own.cards.busy(), own.network) if busy else own)

    def work(self, kind: str, n_bytes: int, n: int) -> KernelWork:
        """What a collective's kernel does on one card; the bytes are those it sends."""
        return KernelWork(
            kind="collective",
            moved_bytes=sent_share(kind, n) * n_bytes,
            n_blocks=self.wiring.cards.n_blocks,
            blocks_per_sm=1,
        )


class CardsPlayer(Player):
    """Plays tapes of one process with several cards, or of one rank among several."""

    pricer: CardsPricer
    queue: CardsQueue

    def __init__(self, pricer: CardsPricer, sink: list[Span] | None = None, n_cards: int = 1) -> None:
        self._n_cards = n_cards
        super().__init__(pricer, sink, n_cards)
        self._threads: Threads | None = None
        self._streams = list(range(n_cards))  # the current stream of each card
        self.came_ns: dict[int, int] = {}  # by number of the collective: when this rank came to it
        self.done_ns: dict[int, int] = {}  # and when it was done
        self.waited_ns = 0  # until when a stream waited for a collective at last

    def make_queue(self, sink: list[Span] | None, n_cards: int) -> CardsQueue:
        """The clocks to move."""
        pricer, what_if = self.pricer, self.pricer.what_if
        return CardsQueue(
            pricer.sync_ns,
            sink,
            n_cards=n_cards,
            n_sms=pricer.machine.card.n_sms,
            launch_latency_ns=what_if.launch_latency_ns,
            kernel_gap_ns=what_if.kernel_gap_ns,
            link_name=pricer.wiring.cards.kind,
        )

    def _other(self, entry: Entry) -> None:
        match entry:
            case PeerCopy():
                self._peer_copy(entry)
            case CardsExchange():
                self._cards_exchange(entry)
            case RanksExchange():
                self._come(entry)
            case WaitExchange():
                self._wait_exchange(entry)
            case Threads():
                self._start_or_join(entry)
            case Sync() if not isinstance(entry.stream, int):
                self.queue.finish_talk(entry.name, entry.stream)
                super()._other(entry)
            case UseStream():
                super()._other(entry)
                self._streams[self.queue.stream_card[entry.stream]] = entry.stream
                self._drive()
            case _:
                super()._other(entry)

    def _peer_copy(self, copy: PeerCopy) -> None:
        pricer = self.pricer
        link_ns = peer_copy_ns(copy.n_bytes, pricer.wiring.cards)
        call_ns = pricer.call_ns(HostKind.COPY, copy.phase, 1)
        streams = self._streams[copy.source], self._streams[copy.target]
        self.queue.peer_copy(copy.name, *streams, copy.n_bytes, link_ns, call_ns, pricer.lane(copy.phase))

    def _cards_exchange(self, exchange: CardsExchange) -> None:
        pricer, n = self.pricer, len(exchange.cards)
        long_ns = exchange_ns(exchange.kind, exchange.n_bytes, pricer.team(n))
        call_ns = pricer.call_ns(HostKind.LIGHT, exchange.phase, 1)
        self.queue.cards_exchange(
            exchange.kind,
            [self._streams[card] for card in exchange.cards],
            long_ns,
            call_ns,
            pricer.lane(exchange.phase),
            pricer.work(exchange.kind, exchange.n_bytes, n),
        )

    def _come(self, exchange: RanksExchange) -> None:
        pricer = self.pricer
        call_ns = pricer.call_ns(HostKind.LIGHT, exchange.phase, LAUNCHES_OF_A_COLLECTIVE)
        came = self.queue.come_to_exchange(exchange.kind, exchange.card, call_ns, pricer.lane(exchange.phase))
        self.came_ns[exchange.number] = came

    def finish(self, exchange: RanksExchange, start_ns: int, end_ns: int) -> None:
        """The collective that this rank came to starts and ends at these times."""
        work = self.pricer.work(exchange.kind, exchange.n_bytes, len(exchange.ranks))
        came = self.came_ns.pop(exchange.number)
        within = len({rank // self._n_cards for rank in exchange.ranks}) == 1
        beside_share = (self.pricer.wiring.cards if within else self.pricer.wiring.network).beside_share
        self.queue.run_exchange(exchange.kind, exchange.card, came, start_ns, end_ns, work, beside_share)
        self.done_ns[exchange.number] = end_ns

    def _wait_exchange(self, wait: WaitExchange) -> None:
        if wait.number not in self.done_ns:
            raise TimelineError(
                f"this tape is one rank's part of a run, and it waits for collective {wait.number} of all ranks; "
                "price the run as a whole (RankTapes.price)"
            )
        self.waited_ns = done_ns = self.done_ns.pop(wait.number)
        self.queue.stream_waits_until(self._streams[wait.card], done_ns)
        if wait.host:
            self.queue.host_waits_until(done_ns, "waiting for other ranks")

    def _start_or_join(self, threads: Threads) -> None:
        if threads.cards:
            self._threads = threads
            self.queue.start_threads(threads.cards)
        else:
            self._threads = None
            self.queue.join_threads()
        self._drive()

    def _drive(self) -> None:
        """Let prices and lanes be those of the thread that is at work."""
        threads, queue = self._threads, self.queue
        if threads is None:
            lanes = MAIN, AUTOGRAD
        else:
            card = queue.stream_card[queue.stream]
            lanes = queue.thread_lane(card, False), queue.thread_lane(card, True)
        queue.main_lane = lanes[0]
        self.pricer.drive(*lanes, len(threads.cards) if threads and threads.interpreter else 1)


def player_for(
    machine: Machine, sink: list[Span] | None, n_cards: int, what_if: WhatIf = AS_IT_IS, network: str | None = None
) -> Player:
    """A player for so many cards of the machine; a single card's is the simpler and quicker one."""
    if n_cards == 1 and network is None:
        return Player(Pricer(machine, what_if), sink)
    return CardsPlayer(CardsPricer(machine, network, what_if), sink, n_cards)
