"""Distributed training in one process: every rank really runs, on a simulated card of its own.

`launch(fn, "p3.8xlarge", 4)` calls `fn(rank)` for four ranks, as torch.multiprocessing.spawn would. Inside,
torch.distributed works as under torchrun (`init_process_group("nccl")`, RANK, LOCAL_RANK and WORLD_SIZE), and torch's
own DistributedDataParallel with its buckets and hooks runs on it. Ranks take turns, one thread at a time, so that
sums are real and runs repeat. With `in_step` only rank 0 runs, and the others are taken to do what it does: for many
ranks.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from gpututor.errors import NoSteps
from gpututor.lookup import machine_named
from gpututor.model.cards_player import CardsPlayer, CardsPricer
from gpututor.model.exchange import RanksExchange
from gpututor.model.ranks import Meeting, RankTapes
from gpututor.model.tape import Sync, Tape
from gpututor.simgpu.cards.ddp_seams import install, own_world
from gpututor.simgpu.cards.mail import Mail
from gpututor.simgpu.cards.numbers import ghosts
from gpututor.simgpu.cards.process_group import RanksGroup
from gpututor.simgpu.cards.turns import Turns
from gpututor.simgpu.private.ranks import WORLD
from gpututor.simgpu.recording import number_of
from gpututor.simgpu.register import register
from gpututor.simgpu.session import Session, current, thread
from gpututor.timeline import Timeline

if TYPE_CHECKING:
    from gpututor.cards import Machine

Step = Callable[[int], Any]
ENVIRONMENT = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")


class RankSeat:
    """What one rank has for itself: its machine's clocks, random generators, environment and process groups."""

    def __init__(self, world: World, rank: int) -> None:
        machine, self.rank = world.machine, rank
        self.local_rank = rank % machine.n_cards
        self.session = Session(machine, numerics=world.numerics, what=world.what)
        self.session.player = CardsPlayer(CardsPricer(machine, world.network), None, machine.n_cards)
        self.session.drives_cards = False
        self.groups = own_world()
        self.n_exchanges = 0
        self.n_calls: Counter[tuple[int, ...]] = Counter()
        self.world = world
        self._kept: tuple[Any, ...] = _generators()
        self._outside: tuple[Any, ...] = ()
        values = (rank, self.local_rank, world.n_ranks, min(machine.n_cards, world.n_ranks), rank // machine.n_cards)
        self._environment = dict(zip(ENVIRONMENT, [*map(str, values), "localhost", "29500"], strict=True))

    def take(self) -> None:
        """The rank's turn begins: put all of it in place."""
        self._outside = (current.session, WORLD.now())
        current.session = self.session
        WORLD.put(self.groups)
        _set_generators(self._kept)
        os.environ.update(self._environment)
        self.world.seat = self

    def leave(self) -> None:
        """Keep it for the next turn."""
        self._kept = _generators()
        current.session, groups = self._outside
        WORLD.put(groups)
        self.world.seat = None


def _generators() -> tuple[Any, ...]:
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy is not None else None


def _set_generators(states: tuple[Any, ...]) -> None:
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


class World:
    """All ranks of one launch."""

    running: World | None = None

    def __init__(
        self, machine: Machine, n_ranks: int, *, numerics: bool, in_step: bool, network: str | None, what: str
    ) -> None:
        self.machine, self.n_ranks, self.network = machine, n_ranks, network
        self.numerics, self.what, self.in_step = numerics, what, in_step
        self.seats = [RankSeat(self, rank) for rank in range(1 if in_step else n_ranks)]
        self.seat: RankSeat | None = None
        self.turns = Turns(list(self.seats))
        self.store = dist.HashStore()  # type: ignore[attr-defined]
        players = {s.rank: s.session.player for s in self.seats}
        self.mail = Mail()
        self.meeting = Meeting(machine.n_cards, players)  # type: ignore[arg-type]  # seats make CardsPlayers
        self._given: dict[tuple[tuple[int, ...], int], dict[int, Any]] = defaultdict(dict)

    @property
    def own(self) -> RankSeat:
        """The seat of the rank whose turn it is."""
        assert self.seat is not None, "a rank's process group was used outside its turn"
        return self.seat

    def next_number(self) -> int:
        """A number for the rank's next collective."""
        self.own.n_exchanges += 1
        return self.own.n_exchanges

    def group(self, ranks: Sequence[int]) -> RanksGroup:
        """The rank's end of a new process group."""
        return RanksGroup(self, list(ranks).index(self.own.rank), tuple(ranks))

    def meet(self, exchange: RanksExchange, given: Any, combine: Callable[[list[Any]], None]) -> None:
        """The rank has come to a collective with these tensors; go on when all of its ranks have."""
        seat = self.own
        seat.n_calls[exchange.ranks] += 1
        call = (exchange.ranks, seat.n_calls[exchange.ranks])
        seat.session.account(exchange)
        all_here = self.meeting.come(seat.rank, exchange)
        given_by = self._given[call]
        given_by[seat.rank] = given
        if not all_here:
            self.turns.wait_until(lambda: call not in self._given, f"{exchange.kind} of {exchange.n_bytes:,} bytes")
            return
        with torch.no_grad():
            if len(given_by) < len(exchange.ranks):
                combine(ghosts(given, exchange.kind, len(exchange.ranks)))
            else:
                combine([given_by[rank] for rank in exchange.ranks])
        del self._given[call]


@dataclass(slots=True)
class RanksRun:
    """What `launch` gives: each rank's return value, and the tapes, which any machine with such cards can price."""

    results: list[Any]
    tapes: RankTapes
    machine: Machine
    network: str | None = None
    sessions: list[Session] = field(default_factory=list)

    def timeline(self) -> Timeline:
        """The run on the machine it was simulated on.

        Raises:
            TimelineError: nothing was done.
        """
        return self.tapes.price(self.machine, self.network, (("torch", torch.__version__),))


def launch(
    fn: Callable[..., Any],
    machine: str | Machine | None = None,
    n_ranks: int | None = None,
    args: Sequence[Any] = (),
    *,
    numerics: bool = True,
    in_step: bool = False,
    network: str | None = None,
    what: str = "",
) -> RanksRun:
    """Run `fn(rank, *args)` once for each of `n_ranks` simulated processes, each with a card of its own.

    By default as many ranks as the machine has cards; more of them take several machines of the kind, joined by
    `network` (a name in data/links.toml). A rank's current device is the card of its local rank. Random generators
    start in every rank as they are now.

    Raises:
        RankFailed: a rank raised; its error is the cause.
        RanksDisagree: the ranks of a group don't call the same collectives, or wait for one that has ended.
        SessionRunning: a simulated GPU is already at work in this thread.
    """
    register()
    install(World)
    wanted = machine_named(machine)
    n = n_ranks or wanted.n_cards
    hook, environment = sys.excepthook, {name: os.environ.get(name) for name in ENVIRONMENT}
    with Session(wanted, keep_tape=False):
        world = World(wanted, n, numerics=numerics, in_step=in_step, network=network, what=what)
        results: list[Any] = [None] * len(world.seats)

        def work(rank: int) -> None:
            thread.card = world.seats[rank].local_rank
            results[rank] = fn(rank, *args)

        World.running = world
        try:
            world.turns.run(work)
        finally:
            World.running = None
            sys.excepthook = hook
            _restore(environment)
    tapes = RankTapes([s.session.tape for s in world.seats], n, what)
    return RanksRun(results, tapes, wanted, network, [s.session for s in world.seats])


def _restore(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def tape_ranks(
    make_step: Callable[[int], Step],
    machine: str | Machine | None = None,
    n_ranks: int | None = None,
    *,
    n_steps: int = 3,
    warmup: int = 2,
    n_samples: int | None = None,
    numerics: bool = True,
    in_step: bool = False,
    network: str | None = None,
    what: str = "",
) -> RankTapes:
    """Tapes of `n_steps` steps of every rank, after `warmup` steps that are not kept (DDP arranges its buckets there).

    `make_step(rank)` builds the rank's model and gives its step, a function of the step's number that may
    return its loss. The process group is there already. `n_samples` is what one rank works through in a step.

    Raises:
        NoSteps: `n_steps` is not positive.
        RankFailed: a rank raised; its error is the cause.
    """
    if n_steps < 1:
        raise NoSteps(f"{n_steps} steps were asked for; a recording needs at least one")
    losses: list[float | None] = []

    def run(rank: int) -> int:
        dist.init_process_group("simgpu")
        step, session = make_step(rank), current.session
        for k in range(warmup):
            step(k)
        session.account(Sync("synchronize before recording"))
        dist.barrier()
        first = len(session.tape.entries)
        for k in range(warmup, warmup + n_steps):
            session.begin_step(n_samples)
            loss = number_of(step(k))
            if rank == 0:
                losses.append(loss)
        session.account(Sync("synchronize after recording"))
        session.end_run()
        return first

    options: dict[str, Any] = {"numerics": numerics, "in_step": in_step, "network": network, "what": what}
    done = launch(run, machine, n_ranks, **options)
    kept = [
        Tape(what, tape.entries[first:], [], tape.n_cards)
        for tape, first in zip(done.tapes.tapes, done.results, strict=True)
    ]
    return RankTapes(kept, done.tapes.n_ranks, what, losses)


def spawn(fn: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = 1, join: bool = True, **_: Any) -> RanksRun:
    """In the place of torch.multiprocessing.spawn, on the default machine's card: `launch` with its arguments."""
    return launch(fn, None, nprocs, args)
