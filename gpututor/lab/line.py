"""Who runs next: a line of people in front of a few places.

For one reader it is first come, first served. For a class it is fair: nobody has more than one thing running and one
waiting, a check of an exercise, which takes seconds, goes before experiments, and what measures real time runs alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gpututor.errors import GpututorError

LOOK_EVERY_S = 0.05  # how soon somebody who waits sees that the wish to run is withdrawn
SHORT_IN_A_ROW = 3  # so many checks go before an experiment that waits, and then it is its turn


class LineFull(GpututorError, RuntimeError):
    """Somebody has one run under way and one waiting already; nobody may fill the line."""


@dataclass(eq=False, slots=True)
class Ticket:
    """Somebody's place in line. `since_s` is when it was taken, and later when it began, on the monotonic clock."""

    owner: str
    what: str
    alone: bool
    short: bool
    runs: bool = False
    since_s: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class InLine:
    """What can be told of a ticket: whose, what, whether it runs, and for how many seconds it has run or waited."""

    owner: str
    what: str
    runs: bool
    for_s: float


class Line:
    """`n_places` things at once. With `fair` it keeps to the rules of a class, else to the order of coming."""

    def __init__(self, n_places: int, *, fair: bool = False) -> None:
        self.n_places, self.fair = n_places, fair
        self._tickets: list[Ticket] = []
        self._short_in_a_row = 0
        self._closed = False
        self._change = threading.Condition()

    def join(self, owner: str = "", what: str = "", *, alone: bool = False, short: bool = False) -> Ticket:
        """A place at the end of the line.

        Raises:
            LineFull: `owner` has one running and one waiting, or two waiting.
        """
        with self._change:
            mine = [ticket for ticket in self._tickets if ticket.owner == owner]
            if self.fair and len(mine) > 1:
                raise LineFull(
                    "you have one run under way and one waiting, here or on another of your pages; "
                    "wait until one ends, or stop it"
                )
            ticket = Ticket(owner, what, alone, short)
            self._tickets.append(ticket)
            return ticket

    def wait(self, ticket: Ticket, tell: Callable[[int], None], should_stop: Callable[[], bool]) -> bool:
        """Block until it is this ticket's turn; False when the wish is withdrawn or the line is closed.

        `tell` gets the number of those who go before, whenever it has changed; nothing is told who needn't wait.
        """
        told: int | None = None
        while True:
            with self._change:
                if self._closed:
                    return False
                if self._next() is ticket:
                    self._begin(ticket)
                    return True
                if told is not None:
                    self._change.wait(LOOK_EVERY_S)
                    if self._next() is ticket:
                        continue
                ahead = self._ahead(ticket)
            if should_stop():
                return False
            if ahead != told:
                tell(ahead)
                told = ahead

    def leave(self, ticket: Ticket) -> None:
        """Give the place back, taken or not; harmless twice."""
        with self._change:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
            self._change.notify_all()

    def close(self) -> None:
        """Nobody's turn comes any more."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def seen(self) -> list[InLine]:
        """Who runs and who waits, in the order in which they go."""
        with self._change:
            now_s = time.monotonic()
            running = [ticket for ticket in self._tickets if ticket.runs]
            return [
                InLine(each.owner, each.what, each.runs, now_s - each.since_s) for each in running + self._waiting()
            ]

    def _begin(self, ticket: Ticket) -> None:
        ticket.runs, ticket.since_s = True, time.monotonic()
        self._short_in_a_row = self._short_in_a_row + 1 if ticket.short else 0

    def _waiting(self) -> list[Ticket]:
        """Those who wait: short ones first, unless too many of them went before somebody else."""
        waiting = [ticket for ticket in self._tickets if not ticket.runs]
        if not self.fair or self._short_in_a_row >= SHORT_IN_A_ROW:
            return waiting
        return sorted(waiting, key=lambda ticket: not ticket.short)

    def _next(self) -> Ticket | None:
        """Whose turn it is now; None while all places are taken, or one who runs is to be alone."""
        running = [ticket for ticket in self._tickets if ticket.runs]
        if len(running) >= self.n_places or (self.fair and any(ticket.alone for ticket in running)):
            return None
        busy = {ticket.owner for ticket in running} if self.fair else set()
        first = next((ticket for ticket in self._waiting() if ticket.owner not in busy), None)
        if first is not None and self.fair and first.alone and running:
            return None  # it waits for the others to end, and nobody overtakes it
        return first

    def _ahead(self, ticket: Ticket) -> int:
        waiting = self._waiting()
        return waiting.index(ticket) if ticket in waiting else 0
