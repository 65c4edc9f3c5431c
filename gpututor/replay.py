"""A run that was kept, played on any machine: the same work with another card, another host, one step of it.

Everything here is cheap enough for a slider. Tapes and what they gave are kept in memory by file, so that
several readers of one page share them; nothing in here belongs to a reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Card, Machine
from gpututor.errors import TimelineError
from gpututor.ledger import Ledger, charge
from gpututor.model import tape_file
from gpututor.model.tape import Tape
from gpututor.timeline import COMPUTING, Activity, Timeline

HOST_WORK = (Activity.PYTHON, Activity.DISPATCH, Activity.LAUNCH)


@dataclass(frozen=True, slots=True)
class Played:
    """A run on one machine: its timeline and its ledger."""

    machine: Machine
    timeline: Timeline
    ledger: Ledger

    @property
    def step_ns(self) -> float:
        """Mean wall time of a step, in nanoseconds.

        Raises:
            TimelineError: the run has no steps.
        """
        if self.ledger.step_ns is None:
            raise TimelineError("the run has no steps, so there is no time of a step")
        return self.ledger.step_ns

    @property
    def typical_step(self) -> int:
        """The step whose wall time is nearest to the mean, for looking at one closely.

        Raises:
            TimelineError: the run has no steps.
        """
        lengths = [s.end_ns - s.start_ns for s in self.timeline.steps]
        return min(range(len(lengths)), key=lambda k: abs(lengths[k] - self.step_ns), default=0)

    @property
    def kernels_us(self) -> list[float]:
        """Length of each kernel in microseconds, in the order in which they started."""
        kernels = sorted((s for s in self.timeline.spans if s.activity in COMPUTING), key=lambda s: s.start_ns)
        return [s.duration_ns / 1e3 for s in kernels]

    @property
    def kernel_ns(self) -> float:
        """Mean length of a kernel, in nanoseconds; 0 without any."""
        kernels = self.kernels_us
        return 1e3 * sum(kernels) / len(kernels) if kernels else 0.0

    @property
    def host_ns_per_launch(self) -> float:
        """Nanoseconds that the host spends in Python, the framework and the driver for each kernel it launches."""
        busy = sum(s.duration_ns for s in self.timeline.on(*HOST_WORK))
        return busy / self.ledger.n_kernels if self.ledger.n_kernels else 0.0


def play(tape: Tape, machine: Machine) -> Played:
    """The run as `machine` would have done it."""
    timeline = tape.price(machine)
    return Played(machine, timeline, charge(timeline, machine.card))


@lru_cache(maxsize=16)
def _read(path: Path, changed_ns: int) -> Tape:
    return tape_file.load(path)


def read_tape(path: Path) -> Tape:
    """The tape in this file.

    Raises:
        TimelineError: the file is gone or damaged.
    """
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError as error:
        raise TimelineError(
            f"the run's file {path.name} is gone ({error.strerror}); run the experiment again"
        ) from error
    return _read(path, changed_ns)


@lru_cache(maxsize=64)
def _play_file(path: Path, changed_ns: int, machine: _ByName, steps: tuple[int, int] | None) -> Played:
    tape = _read(path, changed_ns)
    return play(tape if steps is None else tape.steps(*steps), machine.machine)


@dataclass(frozen=True, slots=True)
class _ByName:
    """A machine that a cache may compare by what was changed in it."""

    machine: Machine

    def __hash__(self) -> int:
        return hash((self.machine.name, self.machine.card.name))


def play_file(path: Path, machine: Machine, steps: tuple[int, int] | None = None) -> Played:
    """The run in this file on `machine`, or its steps from `steps[0]` to before `steps[1]` alone.

    Raises:
        TimelineError: the file is gone or damaged, or has fewer steps.
    """
    read_tape(path)
    return _play_file(path, path.stat().st_mtime_ns, _ByName(machine), steps)


def with_card(machine: Machine, card: Card) -> Machine:
    """The same host with another card in it; nobody quotes a price for that."""
    if card.name == machine.card.name:
        return machine
    return replace(machine, name=f"{machine.name} with {card.name}", card=card, n_cards=1, usd_per_hour=None)


def with_slower_host(machine: Machine, times: float) -> Machine:
    """The same machine with a host that takes `times` as long for everything it does; below 1 it is faster."""
    host = replace(
        machine.host,
        costs={name: us if name == "copy_latency" else us * times for name, us in machine.host.costs.items()},
    )
    return replace(machine, name=f"{machine.name}, host {times:g} times as slow", host=host)


def host_sweep(path: Path, machine: Machine, factors: Sequence[float], step: int) -> list[tuple[float, float]]:
    """For each factor: microseconds of host time per launch, and the busy share that step `step` then has."""
    found = []
    for factor in factors:
        played = play_file(path, with_slower_host(machine, factor), (step, step + 1))
        found.append((played.host_ns_per_launch / 1e3, played.ledger.gpu_util_share))
    return found
