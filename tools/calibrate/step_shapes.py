"""When the collectives of a training step come, from recordings of our workloads: the shape of a step on any card.

A shape is computed with links that take no time. `together_s` then plays it with others: computing goes on while
collectives follow one another, until the step waits for them. It does by hand, and a thousand times quicker, what
gpututor/model/cards_queue.py does with every kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gpututor.bench.accuracy.points import Point
from gpututor.bench.accuracy.resolve import Asked, resolve
from gpututor.cards import Card, Machine
from gpututor.links import Link, Wiring
from gpututor.model import tape_file
from gpututor.model.cards_player import CardsPlayer, CardsPricer
from gpututor.model.collectives import Team, exchange_ns
from gpututor.model.exchange import RanksExchange, WaitExchange
from gpututor.model.tape import Tape
from gpututor.workloads.setting import Job, Setting

GIB = 2**30
SMALL_BYTES = 100_000  # losses and counts: their time is latency alone
ONE_BUCKET = 2  # of GNMT's round of sentence lengths, the middle one


@dataclass(frozen=True, slots=True)
class Shape:
    """Seconds of a step with one card; and with several: (seconds computed, bytes), a wait where bytes are None."""

    n_steps: int
    alone_s: float
    units: float
    events: tuple[tuple[float, int | None], ...]
    computing_s: float


class _Noting(CardsPlayer):
    """Notes when collectives come and where the current stream waits for them."""

    noted: list[tuple[float, int | None]]

    def _come(self, exchange: RanksExchange) -> None:
        super()._come(exchange)
        came = self.came_ns[exchange.number]
        self.noted.append((came * 1e-9, exchange.n_bytes))
        self.finish(exchange, came, came)

    def _wait_exchange(self, wait: WaitExchange) -> None:
        self.noted.append((self.queue.stream_ns[self._streams[wait.card]] * 1e-9, None))
        super()._wait_exchange(wait)


def asked_for(point: Point, batch: int | None) -> Asked:
    """What to predict for a point, at another batch."""
    asked = resolve(point)
    assert isinstance(asked, Asked), asked
    options = dict(asked.setting.options)
    if asked.workload.name == "gnmt":
        options["bucket"] = ONE_BUCKET
    return replace(asked, setting=replace(asked.setting, batch=batch or asked.setting.batch, options=options))


def recorded(asked: Asked, n_cards: int, keep: Path) -> tuple[Tape, float, int]:
    """One card's tape of such steps, kept as a file; its units of work in a step, and how many steps it holds."""
    setting, machine = replace(asked.setting, n_cards=n_cards), _roomy(asked.machine, n_cards)
    n_steps = 1 if asked.workload.long_step else 2
    name = f"{asked.workload.name}-{setting.precision}-b{setting.batch}-{n_cards}.tape.gz"
    path, count = keep / name, keep / f"{name}.units"
    if not path.exists():
        tape, units = _record(asked, setting, machine, n_steps)
        path.write_bytes(tape_file.to_bytes(tape))
        count.write_text(str(units))
    return tape_file.from_bytes(path.read_bytes()), float(count.read_text()), n_steps


def _record(asked: Asked, setting: Setting, machine: Machine, n_steps: int) -> tuple[Tape, float]:
    from gpututor.simgpu.cards.distributed import tape_ranks
    from gpututor.simgpu.recording import tape_steps
    from gpututor.workloads.training import number_formats

    made: list[Job] = []

    def step(k: int) -> object:
        if not made:
            made.append(asked.workload.build(setting, "simgpu"))
        return made[0].step(k)

    with number_formats(setting):
        if setting.n_cards == 1:
            tape = tape_steps(step, n_steps=n_steps, warmup=n_steps, machine=machine, numerics=False)
        else:
            tapes = tape_ranks(
                lambda rank: step,
                machine,
                setting.n_cards,
                n_steps=n_steps,
                warmup=n_steps,
                numerics=False,
                in_step=True,
            )
            tape = tapes.tapes[0]
    return tape, made[0].n_per_step


def _roomy(machine: Machine, n_cards: int) -> Machine:
    return replace(machine, n_cards=n_cards, card=replace(machine.card, memory_bytes=256 * GIB))


def shape_of(asked: Asked, on: Card, keep: Path, free: Link) -> Shape:
    """The shape of a step on this card in the point's host."""
    one, units, n_steps = recorded(asked, 1, keep)
    two, _, _ = recorded(asked, 2, keep)
    machine = replace(asked.machine, card=on, n_cards=2)
    alone_s = one.price(replace(machine, n_cards=1)).duration_ns * 1e-9 / n_steps  # of one step, the rest is of all
    pricer = CardsPricer(machine)
    pricer.wiring = Wiring(free, free)
    player = _Noting(pricer, None, 2)
    player.noted = []
    for entry in two.entries:
        player.play(entry)
    end_s = (player.end_ns if player.end_ns is not None else player.queue.end_ns) * 1e-9
    begin_s = player.begins[0][0] * 1e-9
    events = tuple((max(0.0, at - begin_s), n) for at, n in player.noted if n is None or n > SMALL_BYTES)
    return Shape(n_steps, alone_s, units * n_steps, events, end_s - begin_s)


def together_s(shape: Shape, scale: float, n: int, link: Link) -> float:
    """Seconds of the shape's steps, `scale` times as slow, on `n` cards, of which all wait for the slowest."""
    team = Team(n, 1, Wiring(link.busy(), link))
    pace = scale * (1 + link.late_of(n))
    now = talk_end = done = 0.0  # real time, and seconds computed so far
    talks: list[tuple[float, float]] = []

    def compute_until(at: float) -> None:
        nonlocal now, done
        left, done = max(0.0, at - done) * pace, max(done, at)
        for begin, end in talks:
            if end <= now:
                continue
            alone = max(0.0, begin - now)
            if left <= alone:
                break
            left -= alone
            now = max(now, begin)
            could = (end - now) * (1 - link.beside_share)
            if left <= could:
                now += left / (1 - link.beside_share)
                return
            left -= could
            now = end
        now += left

    for at, n_bytes in shape.events:
        compute_until(at)
        if n_bytes is None:
            now = max(now, talk_end)
        else:
            begin = max(now, talk_end)
            talk_end = begin + exchange_ns("all_reduce", n_bytes, team) * 1e-9
            talks.append((begin, talk_end))
    compute_until(shape.computing_s)
    return now
