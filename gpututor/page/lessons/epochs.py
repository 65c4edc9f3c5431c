"""An epoch split into steps and pauses, and the lengths of a tape's steps, for lesson 15."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median

from gpututor.cards import Machine
from gpututor.model.marks import EndPause
from gpututor.model.tape import HostWork, Player, Pricer
from gpututor.replay import SameMachine, read_tape
from gpututor.timeline import Activity

PARTS = ("validation", "checkpoint", "histograms")


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch on one machine: all of it, what its steps take alone, and each pause by its part."""

    total_ns: float
    steps_ns: float
    parts_ns: Mapping[str, float]

    @property
    def reading_ns(self) -> float:
        """What is neither steps nor a pause: the host waits for the loss of each step."""
        return max(0.0, self.total_ns - self.steps_ns - sum(self.parts_ns.values()))

    @property
    def trained_share(self) -> float:
        """The share of the time that trains."""
        return min(1.0, self.steps_ns / self.total_ns)


@dataclass(frozen=True, slots=True)
class Clocked:
    """A tape's clocks on one machine: all of it, where steps begin and the last one ends, and each pause by name."""

    total_ns: int
    marks_ns: tuple[int, ...]
    pauses: tuple[tuple[str, int], ...]


def clocked(path: Path, machine: Machine) -> Clocked:
    """A tape on a machine; only the clocks move, so thousands of steps take a blink."""
    return _clocked(path, path.stat().st_mtime_ns, SameMachine(machine))


@lru_cache(maxsize=128)
def _clocked(path: Path, changed_ns: int, on: SameMachine) -> Clocked:
    player = Player(Pricer(on.machine))
    pauses: list[tuple[str, int]] = []
    for entry in read_tape(path).entries:
        if type(entry) is EndPause and player.pauses:
            name, began_ns = player.pauses[-1]
            pauses.append((name, player.queue.host_ns - began_ns))
        elif type(entry) is HostWork and entry.activity is Activity.PAUSE:
            pauses.append((entry.name, entry.long_ns))
        player.play(entry)
    marks = (*(at for at, _ in player.begins), player.end_ns or player.queue.host_ns)
    return Clocked(marks[-1] - marks[0], marks, tuple(pauses))


def middles(values: Sequence[int], n: int) -> list[tuple[int, float]]:
    """Each value's number, from `n` on, and the middle one of the last `n` values.

    >>> middles([1, 9, 2, 3], 3)
    [(3, 2.0), (4, 3.0)]
    """
    return [(k, float(median(values[k - n : k]))) for k in range(n, len(values) + 1)]


def step_lengths(path: Path, machine: Machine) -> list[int]:
    """Nanoseconds of each step of a tape on a machine."""
    return [b - a for a, b in pairwise(clocked(path, machine).marks_ns)]
