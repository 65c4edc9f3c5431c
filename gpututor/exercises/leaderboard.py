"""Who did an exercise that is about money for the least: a learner's cheapest verified answer, shown if they wish.

The sum is the judge's (`Judged.usd`), never the learner's word. In a class all progress lies on the server, whose pages
read it there; nobody is listed who has not asked for it, and only under the name that they chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpututor.exercises.form import Case, Exercise
from gpututor.store import Store, everybody

LONGEST_NAME = 24  # our choice: what a table on a phone holds


@dataclass(frozen=True, slots=True)
class Cheapest:
    """A learner's cheapest verified answer: US dollars, the machine, and when it was judged (UTC, ISO 8601)."""

    usd: float
    machine: str
    at: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the board; `learner` is the id, which no other learner is shown."""

    learner: str
    name: str
    cheapest: Cheapest


def keep_cheapest(store: Store, one: Exercise, case: Case, usd: float) -> None:
    """Keep what an answer cost that was judged just now, if none before it cost as little."""
    before = cheapest(store, one)
    if before is None or usd < before.usd:
        machine = str(case.get("machine") or one.machine)
        store.put(_lesson(one), f"{one.key} cheapest", {"usd": usd, "machine": machine, "at": store.time()})


def cheapest(store: Store, one: Exercise) -> Cheapest | None:
    """A learner's cheapest verified answer; None without one."""
    return _cheapest(store.get(_lesson(one), f"{one.key} cheapest"))


def join(store: Store, one: Exercise, name: str) -> None:
    """Show this learner on the board, under this name; an empty one takes them off."""
    store.put(_lesson(one), f"{one.key} board", " ".join(name.split())[:LONGEST_NAME])


def name_on_board(store: Store, one: Exercise) -> str:
    """The name that a learner chose, empty where they are not shown."""
    return _name(store.get(_lesson(one), f"{one.key} board"))


def board(one: Exercise) -> tuple[Listed, ...]:
    """Everybody on this machine who wishes to be listed and has an answer that was verified, the cheapest first."""
    found = []
    for learner, values in everybody(_lesson(one)).items():
        name, best = _name(values.get(f"{one.key} board")), _cheapest(values.get(f"{one.key} cheapest"))
        if name and best is not None:
            found.append(Listed(learner, name, best))
    return tuple(sorted(found, key=lambda each: (each.cheapest.usd, each.cheapest.at)))


def _name(told: Any) -> str:
    return told if isinstance(told, str) else ""


def _cheapest(told: Any) -> Cheapest | None:
    if not isinstance(told, Mapping):
        return None
    try:
        return Cheapest(float(told["usd"]), str(told["machine"]), str(told["at"]))
    except (KeyError, TypeError, ValueError):
        return None


def _lesson(one: Exercise) -> str:
    return f"{one.lesson:02d}"
