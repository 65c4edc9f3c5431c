"""What the instructor sees: who is on which lesson, which exercises are done, and who waits for a run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from gpututor.exercises.ex19 import RAISED
from gpututor.exercises.keeping import standing
from gpututor.exercises.leaderboard import board
from gpututor.exercises.registry import EXERCISES
from gpututor.lab.line import InLine
from gpututor.lab.pool import Lab
from gpututor.lab.processes import memory_bytes
from gpututor.store import Store
from gpututor.workshop import pages
from gpututor.workshop.keys import Holder, Keys
from gpututor.workshop.visits import Visits

REFRESH_S = 10
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Done:
    """A learner's exercises by their numbers: right, right in part, wrong, and answered but never checked."""

    right: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One learner. `seen_s_ago` is None before their first visit since the server started."""

    id: str
    name: str
    lessons: tuple[str, ...]
    done: Done
    running: str
    waiting: str
    seen_s_ago: float | None


@dataclass(frozen=True, slots=True)
class Told:
    """The whole board at one moment."""

    rows: tuple[Row, ...]
    n_open: int
    n_running: int
    n_waiting: int
    n_runners: int
    server_bytes: int | None
    workers_bytes: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    def as_page(self) -> bytes:
        """As a page that renews itself."""
        here = sum(bool(row.lessons) for row in self.rows)
        memory = " + ".join(f"{size / MIB:,.0f}" for size in ((self.server_bytes or 0), *self.workers_bytes))
        facts = (
            f"{here} of {len(self.rows)} learners have a lesson open. {self.n_running} of {self.n_runners} runners "
            f"are at work, {self.n_waiting} wait. Memory: {memory} MiB for the server and its workers."
        )
        head = "".join(f'<th scope="col">{title}</th>' for title in ("Learner", "Open", "Exercises", "Runs", "Seen"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_line, self.rows))}</tbody></table>"
        links = '<p><a href="?file=00_start_here.py&amp;instructor=1">The course with your notes</a></p>'
        table += _cheapest()
        body = f'<h1>Workshop</h1><p class="soft">{facts}</p><div class="wide">{table}</div>{links}'
        return pages.page("Workshop", body.replace('href="?', 'href="./?'), _renewed())


def _renewed() -> str:
    return f'<meta http-equiv="refresh" content="{REFRESH_S}">'


def _cheapest() -> str:
    """Who reached lesson 19's loss for the least, of those who wish to be listed; empty while nobody is."""
    listed = board(RAISED)
    lines = "".join(
        f'<tr><th scope="row">{escape(each.name)}<br><small>{escape(each.learner)}</small></th>'
        f"<td>${each.cheapest.usd:.6f}</td><td>{escape(each.cheapest.machine)}</td></tr>"
        for each in listed
    )
    head = "".join(f'<th scope="col">{title}</th>' for title in ("Name chosen", "To the loss", "Machine"))
    title = f"<h2>Exercise {RAISED.number}, the cheapest</h2>"
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>" if listed else ""


def _line(row: Row) -> str:
    done = row.done
    counts = ((done.right, "right"), (done.partial, "in part"), (done.wrong, "not yet"), (done.unchecked, "unchecked"))
    told = "; ".join(f"{words} {', '.join(numbers)}" for numbers, words in counts if numbers)
    runs = ", ".join(filter(None, (row.running and f"running: {row.running}", row.waiting and f"waits: {row.waiting}")))
    cells = (", ".join(row.lessons), f"{len(done.right)} of {len(EXERCISES)}", runs, _ago(row.seen_s_ago))
    first, second, *rest = map(escape, cells)
    more = "".join(f"<td>{cell}</td>" for cell in rest)
    return (
        f'<tr><th scope="row">{escape(row.name or row.id)}<br><small>{escape(row.id)}</small></th><td>{first}</td>'
        f"<td>{second}<br><small>{escape(told)}</small></td>{more}</tr>"
    )


def _ago(seconds: float | None) -> str:
    """How long ago, in words.

    >>> _ago(None), _ago(20.0), _ago(150.0)
    ('not yet', 'now', '2 min ago')
    """
    if seconds is None:
        return "not yet"
    return "now" if seconds < 60 else f"{seconds / 60:.0f} min ago"


class Board:
    """Gathers the board. A progress file is read again only when it has changed."""

    def __init__(self, visits: Visits, lab: Lab, n_runners: int, clock: Callable[[], float] = time.time) -> None:
        self._visits, self._lab, self._n_runners, self._clock = visits, lab, n_runners, clock
        self._done: dict[str, tuple[int, Done]] = {}
        self._reading = threading.Lock()

    def now(self, keys: Keys) -> Told:
        """The board as it stands."""
        line = self._lab.line.seen()
        with self._reading:
            rows = tuple(self._row(holder, line) for holder in keys.learners)
        workers = tuple(size for pid in self._lab.worker_pids if (size := memory_bytes(pid)) is not None)
        n_running = sum(each.runs for each in line)
        server_bytes = memory_bytes(os.getpid())
        return Told(rows, self._visits.n_open, n_running, len(line) - n_running, self._n_runners, server_bytes, workers)

    def _row(self, holder: Holder, line: list[InLine]) -> Row:
        mine = [each for each in line if each.owner == holder.id]
        running, waiting = (", ".join(_what(each.what) for each in mine if each.runs is runs) for runs in (True, False))
        seen_s = self._visits.last_seen_s(holder.id)
        lessons = tuple(Path(file).stem.replace("_", " ") for file in self._visits.open_files(holder.id) if file)
        ago_s = None if seen_s is None else max(0.0, self._clock() - seen_s)
        return Row(holder.id, holder.name, lessons, self._done_by(holder.id), running, waiting, ago_s)

    def _done_by(self, learner: str) -> Done:
        store = Store(learner)
        try:
            stamp = store.path.stat().st_mtime_ns
        except OSError:
            return Done()
        known = self._done.get(learner)
        if known is None or known[0] != stamp:
            known = self._done[learner] = (stamp, done(store))
        return known[1]


def done(store: Store) -> Done:
    """What a learner has answered, by what came of it."""
    still = store.still()
    states = {one.number: standing(still, one).state for one in EXERCISES}

    def those(state: str) -> tuple[str, ...]:
        return tuple(number for number, each in states.items() if each == state)

    return Done(those("right"), those("partial"), those("wrong"), those("not checked"))


def _what(experiment: str) -> str:
    """An experiment's name as an instructor reads it.

    >>> _what("gpututor.experiments.batches:run"), _what("exercise 3.2")
    ('batches', 'exercise 3.2')
    """
    module, colon, _ = experiment.partition(":")
    return module.rpartition(".")[2].replace("_", " ") if colon else experiment
