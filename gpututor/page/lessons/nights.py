"""What lesson 18's forty nights say, as its page shows them: which got slower, what the library finds, what you find.

A night is called slower where what was planted in it, noise aside, makes a sample take longer than on a usual night.
That depends on the card, so it is reckoned for each. A larger batch makes a step longer and a sample shorter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gpututor.cards import Machine
from gpututor.experiments.nights import (
    FIRST_NIGHT,
    N_NIGHTS,
    SAMPLES_A_NIGHT,
    SLOWER_SHARE,
    Cause,
    Episode,
    Night,
    entry_of,
    episodes,
    has_all,
    ledger_of,
    nights,
    timeline_of,
)
from gpututor.history import Entry
from gpututor.history.changes import Change, changes
from gpututor.ledger import Ledger
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.repeats import lasted
from gpututor.replay import Played, SameMachine, read_tape
from gpututor.text import percent

NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Counted:
    """Nights that somebody called slower, held against those that were."""

    found: frozenset[int]
    missed: frozenset[int]
    false: frozenset[int]

    @property
    def text(self) -> str:
        """All three in words, without a full stop."""
        n = len(self.found) + len(self.missed)
        return (
            f"{len(self.found)} of {n} found, {len(self.missed)} missed, {len(self.false)} called slower that weren't"
        )


@dataclass(frozen=True, slots=True)
class Nights:
    """The nights of a run on one machine: their ledgers and entries by number, and samples without noise.

    `usual_ns` is a sample on a usual night and `planted_ns` one by night and cause, both without noise, in nanoseconds.
    Empty where the run was stopped before all forms of the job were there.
    """

    machine: Machine
    all: tuple[Night, ...] = ()
    ledgers: Mapping[int, Ledger] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    episodes: tuple[Episode, ...] = ()
    changes: tuple[Change, ...] = ()
    usual_ns: float = 0.0
    planted_ns: Mapping[int, float] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether there are nights."""
        return bool(self.all)

    def night(self, number: int) -> Night:
        """The night of this number."""
        return self.all[number - 1]

    def entry(self, number: int) -> Entry:
        """Its entry in the history."""
        return self.entries[number - 1]

    # --- who was slower, and who says so -----------------------------------------------------------------------------

    def longer_share(self, number: int) -> float:
        """By how much what was planted makes a sample longer; negative where it makes it shorter."""
        return self.planted_ns.get(number, self.usual_ns) / self.usual_ns - 1

    @property
    def slower(self) -> frozenset[int]:
        """The nights that really got slower."""
        return frozenset(n for n in self.planted_ns if self.longer_share(n) >= SLOWER_SHARE)

    @property
    def called(self) -> frozenset[int]:
        """The nights that the library calls slower: those of changes that lasted."""
        found = (change for change in self.changes if change.slower and lasted(change))
        return frozenset(n for c in found for n in range(c.since.number or 0, (c.until.number or 0) + 1))

    def counted(self, called: Collection[int]) -> Counted:
        """These nights against those that were slower."""
        slower = self.slower
        return Counted(slower & frozenset(called), slower - frozenset(called), frozenset(called) - slower)

    @property
    def found_share(self) -> float | None:
        """Share of the slower nights that the library finds; None without nights, or with none that was slower."""
        slower = self.slower
        return len(slower & self.called) / len(slower) if slower else None

    # --- figures of an episode ---------------------------------------------------------------------------------------

    def is_slower(self, episode: Episode) -> bool:
        """Whether any of its nights was."""
        return bool(self.slower & frozenset(episode.numbers))

    def step_share(self, episode: Episode) -> float:
        """By how much the steps of its last night are longer than usual ones, noise aside."""
        night = self.night(episode.last)
        return self.planted_ns[episode.last] * night.n_samples / (self.usual_ns * self.all[0].n_samples) - 1

    def night_ns(self, number: int | None = None) -> float:
        """How long a night's job takes, without noise; that of a usual one without a number."""
        return SAMPLES_A_NIGHT * (self.usual_ns if number is None else self.planted_ns.get(number, self.usual_ns))

    @property
    def lost_ns(self) -> float:
        """What the slower nights took more than usual ones, together."""
        return sum(self.night_ns(n) - self.night_ns() for n in self.slower)

    # --- sentences ---------------------------------------------------------------------------------------------------

    @property
    def counted_said(self) -> str:
        """How many nights were slower, and what the library made of them."""
        found = self.counted(self.called)
        false = self._false_said(found)
        return (
            f"Of {N_NIGHTS} nights {len(self.slower)} really were slower. `gpututor history regressions` finds "
            f"{len(found.found)} of them{false}."
        )

    def _false_said(self, found: Counted) -> str:
        if not found.false:
            return ", and calls no other night slower"
        return f", and calls {len(found.false)} slower in which a sample took no longer"

    @property
    def told_said(self) -> str:
        """What became of the planted things that are easily misjudged."""
        return f"{self.loader_said}{self.hidden_said} {self.batch_said} {self.heat_said}"

    @property
    def loader_said(self) -> str:
        """What became of the loader that got slower night by night, and why."""
        one = next(each for each in self.episodes if each.cause is Cause.LOADER)
        grown, n = self.longer_share(one.last), len(one.numbers)
        hits = len(self.called & frozenset(one.numbers) & self.slower)
        began = f"From night {one.first} on the loader got a little slower every night, {percent(grown)} after {n}."
        if not hits:
            return f"{began} Each night lay within the room that the nights before had left, so nobody called it."
        return f"{began} On this card a night adds enough to leave the room: {hits} of them are called."

    @property
    def hidden_said(self) -> str:
        """What came after the loader and wasn't called, because the room had moved up; empty where nothing was."""
        last = next(each.last for each in self.episodes if each.cause is Cause.LOADER)
        later = [each for each in self.episodes if each.first > last and self.is_slower(each)]
        hidden = [n for each in later if not frozenset(each.numbers) & self.called for n in each.numbers]
        if not hidden:
            return ""
        return f" What came after it lay in the room that it had left: nights {as_ranges(hidden)} are missed too."

    @property
    def heat_said(self) -> str:
        """What low clocks did on this card."""
        one = next(each for each in self.episodes if each.cause is Cause.HEAT)
        night, share = self.night(one.first), self.longer_share(one.first)
        held = f"In nights {one.first} to {one.last} the card's clocks were held at {percent(night.clock_share)}."
        if share < SLOWER_SHARE:
            return f"{held} A sample took {percent(max(0.0, share))} longer: here the host sets the pace, not the card."
        return f"{held} A sample took {percent(share)} longer: only the part in which the card sets the pace grew."

    @property
    def batch_said(self) -> str:
        """What the larger batch did to steps and samples."""
        one = next(each for each in self.episodes if each.cause is Cause.BATCH)
        step, sample = self.step_share(one), self.longer_share(one.first)
        way = "shorter" if sample < 0 else "longer"
        began = f"In nights {one.first} to {one.last} a step is {percent(step)} longer"
        return f"{began} and a sample {percent(abs(sample))} {way}."


def priced(kept: Kept, machine: Machine) -> Nights:
    """The nights that a run left, on this machine; empty where it was stopped too early.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    if not has_all(tuple(kept.tapes)):
        return Nights(machine)
    files = tuple((form, path, path.stat().st_mtime_ns) for form, path in sorted(kept.tapes.items()))
    return _priced(files, int(kept.data["seed"]), SameMachine(machine), str(kept.data["torch"]))


@lru_cache(maxsize=32)
def _priced(files: tuple[tuple[str, object, int], ...], seed: int, same: SameMachine, torch: str) -> Nights:
    machine = same.machine
    tapes = {form: read_tape(path) for form, path, _ in files}  # type: ignore[arg-type]
    told = nights(seed)
    ledgers = {night.number: ledger_of(night, tapes, machine) for night in told}
    entries = tuple(entry_of(night, ledgers[night.number], machine, torch) for night in told)
    quiet = ledger_of(Night(0, FIRST_NIGHT.isoformat()), tapes, machine)
    assert quiet.step_ns is not None
    planted: dict[int, float] = {}
    known: dict[Night, float] = {}  # all nights of an episode but the loader's are alike without noise
    for night in told:
        if night.cause in (None, Cause.CHANCE):
            continue
        alike = night.alike
        if alike not in known:
            known[alike] = (ledger_of(alike, tapes, machine).step_ns or 0.0) / night.n_samples
        planted[night.number] = known[alike]
    return Nights(
        machine,
        told,
        ledgers,
        entries,
        episodes(seed),
        changes(entries),
        quiet.step_ns / told[0].n_samples,
        planted,
    )


# --- what a reader marks ---------------------------------------------------------------------------------------------


def numbers_in(text: str, last: int = N_NIGHTS) -> tuple[frozenset[int], str]:
    """The numbers that a reader typed, such as "9-14, 23", and one sentence on what can't be read.

    >>> sorted(numbers_in("9-11, 23")[0]), numbers_in("9 to 11")[0] == numbers_in("9–11")[0]
    ([9, 10, 11, 23], True)
    >>> numbers_in("")
    (frozenset(), '')
    """
    found: set[int] = set()
    for part in re.split(r"[,;]|\band\b", text):
        piece = part.strip()
        if not piece:
            continue
        ends = re.fullmatch(r"(\d{1,3})(?:\s*(?:-|–|to)\s*(\d{1,3}))?", piece)
        if ends is None:
            return NOTHING, f"“{piece[:20]}” is no night; write them like 9-14, 23."
        first, until = int(ends[1]), int(ends[2] or ends[1])
        if not 1 <= first <= until <= last:
            return NOTHING, f"“{piece[:20]}” is not among nights 1 to {last}."
        found |= set(range(first, until + 1))
    return frozenset(found), ""


def as_ranges(numbers: Collection[int]) -> str:
    """Numbers in words, neighbours together.

    >>> as_ranges({9, 10, 11, 23}), as_ranges(())
    ('9 to 11, 23', 'none')
    """
    parts: list[list[int]] = []
    for n in sorted(numbers):
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in parts) or "none"


def rented(kept: Kept) -> Nights:
    """The nights on the machine that the question is about."""
    return priced(kept, machine_named())


def night_played(kept: Kept, found: Nights, number: int) -> Played:
    """One night's steps, for looking at them closely.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    tapes = {form: read_tape(path) for form, path in kept.tapes.items()}
    timeline = timeline_of(found.night(number), tapes, found.machine)
    return Played(found.machine, timeline, found.ledgers[number])
