"""Cases from our own runs: what a lesson's experiment leads to on a machine, when nobody can have edited it.

The clock of these lessons is virtual, so a run has one outcome wherever it is made. Its tapes, which know no machine,
lie in data/cases; `tools/canonical_runs.py` makes them. A case is computed from them by the functions that the page
calls with the reader's own run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.exercises import ex01, ex03, ex04, ex05, ex09
from gpututor.exercises.form import Case
from gpututor.experiments.answers import at_length
from gpututor.experiments.one_after_another import ASKED_LENGTH, key_of
from gpututor.experiments.stopwatch import stopwatch
from gpututor.experiments.wider_or_deeper import ASKED_FACTOR, FACTORS
from gpututor.experiments.wider_or_deeper import key_of as size_of
from gpututor.lookup import machine_named
from gpututor.model.tape import Tape
from gpututor.one_kernel import first_span
from gpututor.paths import data_dir
from gpututor.replay import play, read_tape

ADDING = "gauge-add"
WORDS_KEYS = tuple(key_of("lstm", n) for n in (*ex04.KNOWN_LENGTHS, ASKED_LENGTH))
WIDTHS = (1, *FACTORS[-2:], ASKED_FACTOR)
WATCHED_KEYS = tuple(at_length(key, ex09.ASKED_LENGTH) for key in ("both", "silent"))

KEYS: Mapping[str, tuple[str, ...]] = {
    "1.1": (ADDING,),
    "4.1": WORDS_KEYS,
    "5.1": tuple(size_of("wide", factor) for factor in WIDTHS),
    "9.1": WATCHED_KEYS,
}
"""The tapes that a case is made of, by the exercise's number."""

Tapes = Mapping[str, Tape]
MEMORY, BATCHES = "memory.json", (8, 16)
"""Peak memory by batch, which is the same on any card that has it; the batches in the middle of lesson 3's."""


@dataclass(frozen=True, slots=True)
class _Peak:
    """As a point of lesson 3's sweep: the batch, and the bytes that a step asked for at most."""

    n_samples: int
    memory_bytes: int


def _moved(tapes: Tapes, on: Machine) -> Case:
    took_ns, work = first_span(play(tapes[ADDING], on).timeline)
    return ex01.bandwidth_case(ex01.by_adding(work.moved_bytes or 0.0, took_ns, on.card.bandwidth_bytes_per_s))


def _longer(tapes: Tapes, on: Machine) -> Case:
    return ex04.longer_case({key: play(tapes[key], on).step_ns for key in WORDS_KEYS})


def _widest(tapes: Tapes, on: Machine) -> Case:
    played = {factor: play(tapes[size_of("wide", factor)], on) for factor in WIDTHS}
    run_ns = {factor: each.ledger.gpu_util_ns for factor, each in played.items()}
    return ex05.widest_case({factor: each.step_ns for factor, each in played.items()}, run_ns)


def _most(tapes: Tapes, on: Machine) -> Case:
    return ex09.case_most({key: stopwatch(tapes[key], on) for key in WATCHED_KEYS})


MAKE: Mapping[str, Callable[[Tapes, Machine], Case]] = {"1.1": _moved, "4.1": _longer, "5.1": _widest, "9.1": _most}


def case_on(number: str, machine: str) -> Case:
    """The case of an exercise that our own run leads to on a machine, with the machine's name in it.

    Raises:
        GpututorError: there is no such machine, or the tape is gone.
    """
    on = machine_named(machine)
    if number == "3.1":
        told = json.loads((data_dir() / "cases" / MEMORY).read_text("ascii"))
        return {**ex03.memory_case([_Peak(n, told[str(n)]) for n in BATCHES], on.card), "machine": on.name}
    tapes = {key: read_tape(data_dir() / "cases" / f"{key}.tape.gz") for key in KEYS[number]}
    return {**MAKE[number](tapes, on), "machine": on.name}
