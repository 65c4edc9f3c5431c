"""Batches of lesson 14 dealt to several cards: what each waits for the longest text of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gpututor.experiments.length_plans import Way, dealt
from gpututor.experiments.ragged import long_plan, long_texts
from gpututor.model.exchange import RanksExchange
from gpututor.model.ranks import RankTapes
from gpututor.model.tape import BeginStep, EndRun, Entry, Sync, Tape
from gpututor.replay import SameMachine, read_tape
from gpututor.timeline import NS_PER_S

N_WARMUP = 2  # steps of several cards before the first that is kept
DEALT: Mapping[str, tuple[Way, bool]] = {
    "as they come": (Way.SHUFFLED, False),
    "neighbours in length, dealt as they come": (Way.BUCKETED, False),
    "neighbours in length, at once to all": (Way.BUCKETED, True),
    "a budget of tokens, at once to all": (Way.TOKENS, True),
}
"""How several cards get their batches: what lies together, and whether the cards of a step get neighbours in length."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Several cards, each with a batch of its own: the mean step, what they read, and how much they compute nothing."""

    step_ns: float
    words_per_s: float
    idle_share: float


def part_of(tape: Tape, n_ranks: int, batches: Sequence[int]) -> Tape:
    """One rank's own tape: of a tape with every batch, the steps of these batches, for so many ranks together."""
    steps: list[list[Entry]] = []
    for entry in tape.entries:
        if type(entry) is BeginStep:
            steps.append([])
        if steps and type(entry) is not EndRun:
            steps[-1].append(entry)
    entries = [entry for k in batches for entry in steps[(k - N_WARMUP) % len(steps)]]
    ranks = tuple(range(n_ranks))
    told = [replace(each, ranks=ranks) if type(each) is RanksExchange else each for each in entries]
    return Tape(tape.what, [*told, Sync("synchronize"), EndRun()])


@lru_cache(maxsize=64)
def shared_by(path: Path, changed_ns: int, on: SameMachine, way: Way, together: bool, n_ranks: int) -> Shared:
    """The run in this file, which has every batch of a way, dealt to the cards of a machine."""
    tape, machine = read_tape(path), on.machine
    lengths, batches = _of_way(tape, way)
    parts = dealt(n_ranks, batches, lengths, together=together)
    ranks = RankTapes([part_of(tape, n_ranks, part) for part in parts], n_ranks)
    clocks = ranks.clocks(machine, as_in_training=True)
    n_words = sum(lengths[i] for part in parts for k in part for i in batches[k])
    seconds = clocks.duration_ns / NS_PER_S
    return Shared(clocks.duration_ns / len(parts[0]), n_words / seconds, clocks.idle_share)


def _of_way(tape: Tape, way: Way) -> tuple[Sequence[int], list[list[int]]]:
    """The lengths of the texts in a tape of GPT-2, and which lie in a batch together."""
    n = n_texts(tape)
    return long_texts(n), long_plan(way, n)


def n_texts(tape: Tape) -> int:
    """How many texts a tape's steps read together."""
    return sum(entry.n_samples or 0 for entry in tape.entries if type(entry) is BeginStep)
