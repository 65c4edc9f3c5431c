"""An epoch split into steps and pauses, and the lengths of a tape's steps, for lesson 15."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from gpututor.cards import Machine
from gpututor.model.tape import Player, Pricer
from gpututor.replay import read_tape

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


def middles(values: Sequence[int], n: int) -> list[tuple[int, float]]:
    """Each value's number, from `n` on, and the middle one of the last `n` values.

    >>> middles([1, 9, 2, 3], 3)
    [(3, 2.0), (4, 3.0)]
    """
    return [(k, float(median(values[k - n : k]))) for k in range(n, len(values) + 1)]


def step_lengths(path: Path, machine: Machine) -> list[int]:
    """Nanoseconds of each step of a tape on a machine; only the clocks move, so thousands of steps take a blink."""
    player = Player(Pricer(machine))
    for entry in read_tape(path).entries:
        player.play(entry)
    begins = [at for at, _ in player.begins]
    return [b - a for a, b in pairwise([*begins, player.end_ns or player.queue.host_ns])]
