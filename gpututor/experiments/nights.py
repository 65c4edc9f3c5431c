"""Lesson 18's forty nights: one job that runs every night, on a machine to which things happen.

What happens, and when, follows from a seed alone. The job really trained, once in each of its forms; a night is
the tape of one of them, priced on the machine as it was in that night, with a little noise of its own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from gpututor.cards import Machine, scaled
from gpututor.history import Entry
from gpututor.history.entry import accounts_a_step
from gpututor.ledger import Ledger, charge
from gpututor.model.tape import BeginStep, HostWork, Tape
from gpututor.model.tape import Entry as Marked
from gpututor.timeline import Activity, Timeline

N_NIGHTS, N_QUIET = 40, 5  # the first few, in which nothing happens
N_CREEPING = 12  # nights in which the loader gets slower, each by so little that nobody sees it
FIRST_NIGHT = datetime(2026, 3, 2, 2, 0, tzinfo=timezone.utc)
SAMPLES_A_NIGHT = 2_000_000_000  # what the job goes through: some hours
N_SAMPLES: Mapping[str, int] = MappingProxyType({"usual": 256, "reads": 256, "larger": 512})
"""Samples of a step, by the form of the job."""
INPUT_NS_A_SAMPLE = 2_000  # the loader's wait for one picture on a good night: our choice, half a millisecond a batch
SLOWER_SHARE = 0.02  # a sample that takes so much longer, noise aside, is slower: our choice, below what a night varies


class Cause(Enum):
    """What can happen to the nights; the value is what was planted, in words."""

    LOADER = "the disk fills up: every night the loader takes a little longer"
    HEAT = "the card is too hot, so its clocks are held low"
    DRIVER = "a new driver, whose launch call takes longer"
    READS = "a commit that reads a number from each gradient"
    BATCH = "a batch twice as large, in a file of settings"
    CHANCE = "another program had the processor for an hour"


SIZES: Mapping[Cause, tuple[float, float]] = MappingProxyType(
    {Cause.HEAT: (0.5, 0.6), Cause.DRIVER: (1.9, 2.4), Cause.LOADER: (1.035, 1.045)}
)
"""Between what a planted thing is drawn: share of the clocks, times a launch call, times the loader after one night."""

LASTING = (Cause.LOADER, Cause.HEAT, Cause.DRIVER, Cause.READS, Cause.BATCH)


@dataclass(frozen=True, slots=True)
class Night:
    """One night: when, what was planted in it, the job's form, and the machine as it was.

    `launch_times` and `input_times` say how many times as long a launch call and the loader take, `clock_share` at what
    share of their usual rate the SMs run. `host_noise` and `input_noise` are what this night has by chance.
    """

    number: int
    at: str
    cause: Cause | None = None
    form: str = "usual"
    launch_times: float = 1.0
    input_times: float = 1.0
    clock_share: float = 1.0
    host_noise: float = 1.0
    input_noise: float = 1.0
    driver: str = "550.54"
    commit: str = ""

    @property
    def n_samples(self) -> int:
        """Samples of a step."""
        return N_SAMPLES[self.form]

    @property
    def alike(self) -> Night:
        """The same night without chance, number, date and commit: equal for nights in which the same was planted."""
        return replace(self, number=0, at="", commit="", host_noise=1.0, input_noise=1.0)


@dataclass(frozen=True, slots=True)
class Episode:
    """Nights `first` to `last` in which one thing was planted."""

    cause: Cause
    first: int
    last: int

    @property
    def numbers(self) -> range:
        """Its nights."""
        return range(self.first, self.last + 1)


@lru_cache(maxsize=64)
def episodes(seed: int) -> tuple[Episode, ...]:
    """What a seed plants that lasts, in order; two or three usual nights lie between, and none after the last.

    >>> [each.last for each in episodes(1)][-1] == N_NIGHTS
    True
    """
    dice = random.Random(f"episodes {seed}")
    lengths = dice.sample([3, 3, 3, 4], 4)
    todo = [(Cause.LOADER, N_CREEPING), *zip(LASTING[1:], lengths, strict=True)]
    dice.shuffle(todo)
    gaps = [*dice.sample([2, 2, 3, 3], 4), 0]
    found, first = [], N_QUIET + 1
    for (cause, length), gap in zip(todo, gaps, strict=True):
        found.append(Episode(cause, first, first + length - 1))
        first += length + gap
    return tuple(found)


@lru_cache(maxsize=64)
def nights(seed: int) -> tuple[Night, ...]:
    """The forty nights of a seed."""
    dice = random.Random(f"nights {seed}")
    sizes = {
        Cause.HEAT: dice.uniform(0.5, 0.6),
        Cause.DRIVER: dice.uniform(1.9, 2.4),
        Cause.LOADER: dice.uniform(1.035, 1.045),
    }
    planted = {number: each for each in episodes(seed) for number in each.numbers}
    odd = {n for n in range(N_QUIET, N_NIGHTS) if not {n - 1, n, n + 1} & planted.keys()}  # in the middle of a long gap
    commits = _commits(dice, planted)
    found = []
    for number in range(1, N_NIGHTS + 1):
        at = (FIRST_NIGHT + timedelta(days=number - 1)).isoformat(timespec="seconds")
        host_noise, input_noise = dice.lognormvariate(0, 0.005), dice.lognormvariate(0, 0.015)
        night = Night(number, at, commit=commits[number], host_noise=host_noise, input_noise=input_noise)
        if number in planted:
            night = _planted(night, planted[number], sizes)
        elif number in odd:
            night = replace(night, cause=Cause.CHANCE, host_noise=dice.uniform(1.25, 1.45))
        found.append(night)
    return tuple(found)


def _planted(night: Night, episode: Episode, sizes: Mapping[Cause, float]) -> Night:
    night = replace(night, cause=episode.cause)
    size = sizes.get(episode.cause, 1.0)
    match episode.cause:
        case Cause.LOADER:  # it grows by as much every night
            return replace(night, input_times=1 + (size - 1) * (night.number - episode.first + 1))
        case Cause.HEAT:
            return replace(night, clock_share=size)
        case Cause.DRIVER:
            return replace(night, launch_times=size, driver="555.42")
        case Cause.READS:
            return replace(night, form="reads")
        case _:
            return replace(night, form="larger")


def _commits(dice: random.Random, planted: Mapping[int, Episode]) -> dict[int, str]:
    """The commit of each night: a new one where the code or its settings change, and now and then for nothing.

    One for nothing comes with the heat, so that what changed in a night is not taken for what it did.
    """
    changed = {
        n for each in planted.values() if each.cause in (Cause.READS, Cause.BATCH) for n in (each.first, each.last + 1)
    }
    changed |= {each.first for each in planted.values() if each.cause is Cause.HEAT}
    changed |= set(dice.sample(range(2, N_NIGHTS), 5))
    found, commit = {}, ""
    for number in range(1, N_NIGHTS + 1):
        if number in changed or not commit:
            commit = f"{dice.getrandbits(160):040x}"
        found[number] = commit
    return found


# --- a night on a machine ---------------------------------------------------------------------------------------------


def machine_on(machine: Machine, night: Night) -> Machine:
    """The machine as it was in a night: its host's speed, its driver, its card's clocks."""
    costs = dict(scaled(machine.host.costs, night.host_noise))
    costs["launch"] *= night.launch_times
    host = replace(machine.host, costs=costs, sync_us=machine.host.sync_us * night.host_noise)
    card = machine.card
    rates = {name: rate * night.clock_share for name, rate in card.peak_flop_per_s.items()}
    card = replace(card, boost_clock_hz=card.boost_clock_hz * night.clock_share, peak_flop_per_s=rates)
    return replace(machine, host=host, card=card)


def with_input(tape: Tape, each_ns: int) -> Tape:
    """The tape with so long a wait for the loader at the begin of each step."""
    wait = HostWork(Activity.INPUT, "next batch", each_ns)
    entries: list[Marked] = []
    for entry in tape.entries:
        entries += (entry, wait) if type(entry) is BeginStep else (entry,)
    return Tape(tape.what, entries, tape.losses)


def timeline_of(night: Night, tapes: Mapping[str, Tape], machine: Machine) -> Timeline:
    """A night's steps on this machine; `tapes` are the job's forms."""
    input_ns = INPUT_NS_A_SAMPLE * night.n_samples * night.input_times * night.input_noise
    return with_input(tapes[night.form], round(input_ns)).price(machine_on(machine, night))


def ledger_of(night: Night, tapes: Mapping[str, Tape], machine: Machine) -> Ledger:
    """The ledger of a night's steps on this machine."""
    return charge(timeline_of(night, tapes, machine), machine.card)


def entry_of(night: Night, ledger: Ledger, machine: Machine, torch: str) -> Entry:
    """The night as the run history keeps it."""
    step_ns = ledger.step_ns
    assert step_ns is not None
    usd = machine.usd_per_hour
    return Entry(
        kind="job",
        name="nightly.py",
        origin="simulated",
        machine=machine.name,
        card=machine.card.name,
        configuration={"settings": "nightly.toml"},  # what stands in the file isn't known to the history
        versions={"driver": night.driver, "torch": torch},
        commit=night.commit,
        n_steps=SAMPLES_A_NIGHT // night.n_samples,
        step_ns=step_ns,
        busy_share=ledger.busy_share,
        busy_basis="the ledger",
        accounts_ns=accounts_a_step(ledger),
        usd_per_hour=usd,
        usd_per_1000_steps=None if usd is None else 1000 * step_ns / 3.6e12 * usd,
        reasons={} if usd is not None else {"usd_per_1000_steps": "nobody quotes a price for this machine"},
        number=night.number,
        at=night.at,
    )


def has_all(forms: Sequence[str]) -> bool:
    """Whether the job was run in all of its forms."""
    return set(N_SAMPLES) <= set(forms)
