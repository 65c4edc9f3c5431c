"""A run that was kept, played on any machine: the same work with another card, another host, one step of it.

Everything here is cheap enough for a slider. Tapes and what they gave are kept in memory by file, so that
several readers of one page share them; nothing in here belongs to a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Card, Machine, scaled
from gpututor.errors import TimelineError
from gpututor.ledger import Ledger, charge
from gpututor.ledger.device import SHOWN_BY_NVIDIA_SMI, covered_by
from gpututor.model import tape_file
from gpututor.model.clocks import window_of
from gpututor.model.host import COST_NAMES
from gpututor.model.queue import KERNEL_GAP_NS, LAUNCH_LATENCY_NS
from gpututor.model.tape import Tape
from gpututor.model.uncollected import uncollected
from gpututor.model.what_if import AS_IT_IS, WhatIf
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


def play(tape: Tape, machine: Machine, what_if: WhatIf = AS_IT_IS) -> Played:
    """The run as `machine` would have done it, perhaps with some constants of the model set otherwise.

    Where one process uses several cards, the ledger is that of the first.
    """
    with uncollected():
        timeline = tape.price(machine, what_if=what_if)
        return Played(machine, timeline, charge(timeline, machine.card, device=0 if tape.n_cards > 1 else None))


@lru_cache(maxsize=64)
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
def _play_file(path: Path, changed_ns: int, machine: SameMachine, steps: tuple[int, int] | None) -> Played:
    tape = _read(path, changed_ns)
    return play(tape if steps is None else tape.steps(*steps), machine.machine)


@dataclass(frozen=True, slots=True)
class SameMachine:
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
    return _play_file(path, path.stat().st_mtime_ns, SameMachine(machine), steps)


@lru_cache(maxsize=512)
def _step_ns(path: Path, changed_ns: int, on: SameMachine) -> float:
    tape = _read(path, changed_ns)
    with uncollected():
        window_ns = window_of(tape, on.machine)
    if not tape.n_steps:
        raise TimelineError("the run has no steps, so there is no time of a step")
    return window_ns / tape.n_steps


def step_ns(path: Path, machine: Machine) -> float:
    """Mean wall time of a step of the run in this file, in nanoseconds: `play_file(…).step_ns`, some times as quick.

    Raises:
        TimelineError: the file is gone or damaged, or the run has no steps.
    """
    read_tape(path)
    return _step_ns(path, path.stat().st_mtime_ns, SameMachine(machine))


def with_card(machine: Machine, card: Card) -> Machine:
    """The same host with another card in it; nobody quotes a price for that."""
    if card.name == machine.card.name:
        return machine
    return replace(machine, name=f"{machine.name} with {card.name}", card=card, n_cards=1, usd_per_hour=None)


def with_slower_host(machine: Machine, times: float) -> Machine:
    """The same machine with a host that takes `times` as long for everything it does; below 1 it is faster."""
    host = replace(machine.host, costs=scaled(machine.host.costs, times))
    return replace(machine, name=f"{machine.name}, host {times:g} times as slow", host=host)


def host_sweep(path: Path, machine: Machine, factors: Sequence[float], step: int) -> list[tuple[float, float]]:
    """For each factor: microseconds of host time per launch, and the busy share that step `step` then has."""
    found = []
    for factor in factors:
        played = play_file(path, with_slower_host(machine, factor), (step, step + 1))
        found.append((played.host_ns_per_launch / 1e3, played.ledger.gpu_util_share))
    return found


# --- what the answer hangs on ----------------------------------------------------------------------------------------

PYTHON = ("python", "python_module", "python_view", "python_optimizer", "python_list")
FRAMEWORK = tuple(name for name in COST_NAMES if name not in (*PYTHON, "launch", "copy_latency"))


def with_host_costs(machine: Machine, times: float, *names: str) -> Machine:
    """The same machine, with these amounts of its host's table `times` as large."""
    costs = {name: us * times if name in names else us for name, us in machine.host.costs.items()}
    return replace(machine, host=replace(machine.host, costs=costs))


def with_faster_memory(machine: Machine, times: float) -> Machine:
    """The same machine, its card with `times` the memory bandwidth."""
    return replace(
        machine, card=replace(machine.card, bandwidth_bytes_per_s=machine.card.bandwidth_bytes_per_s * times)
    )


def with_faster_arithmetic(machine: Machine, times: float) -> Machine:
    """The same machine, its card with `times` the FLOP/s in every number format."""
    rates = {name: rate * times for name, rate in machine.card.peak_flop_per_s.items()}
    return replace(machine, card=replace(machine.card, peak_flop_per_s=rates))


def with_slower_wake_up(machine: Machine, times: float) -> Machine:
    """The same machine, whose host goes on `times` as long after the GPU is done as it does now."""
    return replace(machine, host=replace(machine.host, sync_us=machine.host.sync_us * times))


def with_slower_copies(machine: Machine, times: float) -> Machine:
    """The same machine, whose copies between host and card take `times` as long; the host's calls for them don't."""
    slower = with_host_costs(machine, times, "copy_latency")
    host = replace(
        slower.host,
        pinned_bytes_per_s=slower.host.pinned_bytes_per_s / times,
        pageable_bytes_per_s=slower.host.pageable_bytes_per_s / times,
    )
    return replace(slower, host=host)


Change = Callable[[Machine, float], tuple[Machine, WhatIf]]


def _of_machine(change: Callable[[Machine, float], Machine]) -> Change:
    return lambda machine, times: (change(machine, times), AS_IT_IS)


def _of_model(change: Callable[[float], WhatIf]) -> Change:
    return lambda machine, times: (machine, change(times))


LEVERS: dict[str, Change] = {
    "host: all of it": _of_machine(with_slower_host),
    "host: the framework": _of_machine(lambda machine, times: with_host_costs(machine, times, *FRAMEWORK)),
    "host: Python": _of_machine(lambda machine, times: with_host_costs(machine, times, *PYTHON)),
    "host: the launch call": _of_machine(lambda machine, times: with_host_costs(machine, times, "launch")),
    "host: wake-up after a sync": _of_machine(with_slower_wake_up),
    "kernels: their floor": _of_model(lambda times: WhatIf(floor_times=times)),
    "kernels: recurrent steps": _of_model(lambda times: WhatIf(recurrent_times=times)),
    "card: memory bandwidth": _of_machine(with_faster_memory),
    "card: arithmetic rates": _of_machine(with_faster_arithmetic),
    "queue: launch latency": _of_model(lambda times: WhatIf(launch_latency_ns=round(LAUNCH_LATENCY_NS * times))),
    "queue: gap between kernels": _of_model(lambda times: WhatIf(kernel_gap_ns=round(KERNEL_GAP_NS * times))),
    "link: copies": _of_machine(with_slower_copies),
}
"""The groups of constants that an answer may hang on, and how each is changed; a new one is one more line."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One group of constants at `times` its value: the busy share and the mean time of a step that follow."""

    lever: str
    times: float
    busy_share: float
    step_ns: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What becomes of a run when the model's constants change; `as_it_is` has them all at 1."""

    n_steps: int
    as_it_is: Moved
    moved: tuple[Moved, ...]


def sensitivity(tape: Tape, machine: Machine, factors: Sequence[float] = (0.5, 2.0)) -> Sensitivity:
    """The busy share and the step for each group of the model's constants and each factor, on this machine.

    Raises:
        TimelineError: the run has no steps.
    """
    moved = [
        _moved(name, times, tape.price(changed, what_if=what_if))
        for name, change in LEVERS.items()
        for times in factors
        for changed, what_if in (change(machine, times),)
    ]
    return Sensitivity(tape.n_steps, _moved("as it is", 1.0, tape.price(machine)), tuple(moved))


def _moved(lever: str, times: float, timeline: Timeline) -> Moved:
    if not timeline.steps:
        raise TimelineError("the run has no steps, so there is no time of a step")
    busy_ns = covered_by(timeline.spans, timeline.window_ns, lambda span: span.activity in SHOWN_BY_NVIDIA_SMI)
    return Moved(lever, times, busy_ns / timeline.duration_ns, timeline.duration_ns / len(timeline.steps))
