"""Several processes, each with a card of its own, priced together: what each waits for the others.

Each rank has its own clock. All play on until their next collective, which starts when the last of its ranks has come
to it; from there they play on again. What a rank waits for the others lies on its communication stream as
a span of kind "waiting for ranks", and the exchange itself behind it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from gpututor.errors import RanksDisagree, TimelineError
from gpututor.model.cards_player import CardsPlayer, CardsPricer
from gpututor.model.collectives import exchange_ns
from gpututor.model.exchange import RanksExchange
from gpututor.model.messages import MESSAGES, Messages
from gpututor.model.played import without_padding
from gpututor.model.tape import IN_BACKWARD, Tape
from gpututor.model.what_if import AS_IT_IS, WhatIf
from gpututor.timeline import Label, Lane, LaneKind, Origin, Span, Step, Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine

GroupCall = tuple[tuple[int, ...], int]  # the ranks of a group, and which of its collectives


class Meeting:
    """Lets the collectives of several ranks start together; `players` are the ranks that are really played.

    Ranks lie on machines in order, as many on each as it has cards. With `as_in_training`, the slowest card comes
    later than those that are played, by a share of the time since they last waited, and collectives of a backward pass
    share the card with its kernels.
    """

    def __init__(
        self, cards_per_machine: int, players: Mapping[int, CardsPlayer], as_in_training: bool = False
    ) -> None:
        self._cards_per_machine, self._players, self._as_in_training = cards_per_machine, players, as_in_training
        self._n_calls: Counter[tuple[int, tuple[int, ...]]] = Counter()  # by rank and group
        self._messages = Messages(cards_per_machine, players)
        self._came: dict[GroupCall, dict[int, RanksExchange]] = defaultdict(dict)

    def come(self, rank: int, exchange: RanksExchange) -> list[int]:
        """`rank` has come to a collective; the ranks that may go on, if it was the last, else none.

        After a message its sender may go on, and so may its receiver once both are there.

        Raises:
            RanksDisagree: another rank of the group is at another collective, or at one of another size.
        """
        if exchange.kind in MESSAGES:
            return self._messages.come(rank, exchange)
        self._n_calls[rank, exchange.ranks] += 1
        call = (exchange.ranks, self._n_calls[rank, exchange.ranks])
        came = self._came[call]
        for other, theirs in came.items():
            if (theirs.kind, theirs.n_bytes) != (exchange.kind, exchange.n_bytes):
                raise RanksDisagree(
                    f"rank {rank} calls {exchange.kind} of {exchange.n_bytes:,} bytes where rank {other} calls "
                    f"{theirs.kind} of {theirs.n_bytes:,} bytes; on real cards both would wait for ever, so let all "
                    "ranks of a group call the same collectives in the same order"
                )
            break
        came[rank] = exchange
        if any(r not in came for r in exchange.ranks if r in self._players):
            return []
        del self._came[call]
        self._start(came)
        return list(came)

    def _start(self, came: Mapping[int, RanksExchange]) -> None:
        first = next(iter(came.values()))
        pricer = next(iter(self._players.values())).pricer
        n_machines = len({rank // self._cards_per_machine for rank in first.ranks})
        start_ns = max(self._comes_ns(self._players[rank], own) for rank, own in came.items())
        busy = self._as_in_training and first.phase in IN_BACKWARD
        team = pricer.team(len(first.ranks), n_machines, busy=busy)
        end_ns = start_ns + exchange_ns(first.kind, first.n_bytes, team)
        for rank, own in came.items():
            self._players[rank].finish(own, start_ns, end_ns)

    def _comes_ns(self, player: CardsPlayer, own: RanksExchange) -> int:
        """When the slowest card comes that works like this one."""
        came_ns = player.came_ns[own.number]
        if not self._as_in_training:
            return came_ns
        late_share = player.pricer.wiring.cards.late_of(len(own.ranks))
        return came_ns + max(0, round(late_share * (came_ns - player.waited_ns)))


@dataclass(frozen=True, slots=True)
class RankClocks:
    """A run of several ranks in two numbers: how long it took, and how long kernels ran on each rank's card."""

    duration_ns: int
    busy_ns: tuple[int, ...]

    @property
    def idle_share(self) -> float:
        """The part of all cards' time in which they computed nothing: waiting for others, exchanging, or for work."""
        return 1 - sum(self.busy_ns) / (len(self.busy_ns) * self.duration_ns)


@dataclass(slots=True)
class RankTapes:
    """The tapes of a run of `n_ranks` processes. With one tape only, all the others are taken to do as rank 0 does."""

    tapes: list[Tape]
    n_ranks: int
    what: str = ""
    losses: list[float | None] = field(default_factory=list)

    def price(
        self,
        machine: Machine,
        network: str | None = None,
        versions: Sequence[tuple[str, str]] = (),
        *,
        as_in_training: bool = False,
        what_if: WhatIf = AS_IT_IS,
    ) -> Timeline:
        """The run on machines of this kind, as many as the ranks need, joined by `network`, as one timeline.

        Every lane belongs to a rank, whose number is the lane's `device`. A step begins with rank 0's and
        counts the samples of all ranks. With `as_in_training` the cards of a box differ, and collectives reach what
        they do beside other kernels, both as far as runs on boxes with this link show; without, all is as good as
        it can be.

        Raises:
            TimelineError: nothing was done, or a rank waits for one that has ended.
            RanksDisagree: the ranks of a group don't call the same collectives.
            LinkNotKnown: no link is called `network`.
        """
        sinks: list[list[Span]] = [[] for _ in self.tapes]
        players = {
            rank: CardsPlayer(CardsPricer(machine, network, what_if), sinks[rank], machine.n_cards)
            for rank in range(len(self.tapes))
        }
        self._play(players, Meeting(machine.n_cards, players, as_in_training))
        lanes: list[Lane] = []
        spans: list[Span] = []
        for rank, player in players.items():
            _add(lanes, spans, rank, player, sinks[rank])
        window, steps = self._steps(list(players.values()))
        label = Label(
            Origin.SIMULATED, machine.card.name, self._host(machine), self.what, tuple(versions), machine.card.n_sms
        )
        return Timeline(tuple(lanes), tuple(spans), window, label, steps)

    def clocks(self, machine: Machine, network: str | None = None, *, as_in_training: bool = False) -> RankClocks:
        """How long all of it takes there and how long each card computes, without a timeline: some times as quick.

        Raises:
            TimelineError: nothing was done, or a rank waits for one that has ended.
            RanksDisagree: the ranks of a group don't call the same collectives.
            LinkNotKnown: no link is called `network`.
        """
        players = {
            rank: CardsPlayer(CardsPricer(machine, network), None, machine.n_cards) for rank in range(len(self.tapes))
        }
        self._play(players, Meeting(machine.n_cards, players, as_in_training))
        (begin_ns, end_ns), _ = self._steps(list(players.values()))
        return RankClocks(end_ns - begin_ns, tuple(player.queue.summed_kernel_ns for player in players.values()))

    def _play(self, players: Mapping[int, CardsPlayer], meeting: Meeting) -> None:
        """Every rank plays until its next collective, in order of ranks, again and again."""
        left = {rank: iter(tape.entries) for rank, tape in enumerate(self.tapes)}
        may_go_on = list(left)
        while may_go_on:
            rank = may_go_on.pop(0)
            player = players[rank]
            for entry in left[rank]:
                player.play(entry)
                if type(entry) is RanksExchange:
                    may_go_on += meeting.come(rank, entry)
                    break
            else:
                del left[rank]
        if left:
            waiting = ", ".join(map(str, left))
            raise TimelineError(
                f"rank {waiting} waits in a collective for a rank that has ended; record all ranks to the end"
            )

    def _steps(self, players: Sequence[CardsPlayer]) -> tuple[tuple[int, int], tuple[Step, ...]]:
        ends = [p.end_ns if p.end_ns is not None else p.queue.end_ns for p in players]
        begins = players[0].begins or [(0, None)]
        end_ns = max(ends)
        if end_ns <= begins[0][0]:
            raise TimelineError("the ranks did nothing on host or card, so there is no time to account for")
        stops = [at for at, _ in begins[1:]] + [end_ns]
        steps = tuple(
            Step(at, stop, self._samples(players, k), self.losses[k] if k < len(self.losses) else None)
            for k, ((at, _), stop) in enumerate(zip(begins, stops, strict=True))
        )
        return (begins[0][0], end_ns), steps if players[0].begins else ()

    def _samples(self, players: Sequence[CardsPlayer], step: int) -> int | None:
        counts = [p.begins[step][1] for p in players if step < len(p.begins)]
        if not counts or any(n is None for n in counts):
            return None
        return sum(n or 0 for n in counts) * (self.n_ranks // len(players))

    def _host(self, machine: Machine) -> str:
        n_machines = -(-self.n_ranks // machine.n_cards)
        return machine.name if n_machines == 1 else f"{n_machines} x {machine.name}"


def _add(lanes: list[Lane], spans: list[Span], rank: int, player: CardsPlayer, own: Sequence[Span]) -> None:
    """Put one rank's used lanes and its spans behind those of the ranks before it."""
    rows, placed = player.queue.placed(without_padding(player, own))
    where: dict[int, int] = {}
    for row in sorted({s.lane for s in placed}):
        where[row] = len(lanes)
        lanes.append(Lane(rows[row].kind, f"rank {rank}, {_short(rows[row])}", rank))
    spans += (
        structs.replace(s, lane=where[s.lane], launch=None if s.launch is None else _launch_of(rank, s.launch))
        for s in placed
    )


def _short(lane: Lane) -> str:
    """The lane's name without the number of the rank's card, which the rank already says."""
    if lane.kind is LaneKind.COPY:
        return "copies to the host" if "host" in lane.name else "copies to the GPU"
    return lane.name.partition(" of GPU ")[0]


def _launch_of(rank: int, launch: int) -> int:
    """A number that no other rank's launch has: ranks have the low 16 bits."""
    return launch << 16 | rank
