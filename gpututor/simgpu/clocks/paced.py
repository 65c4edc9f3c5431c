"""The paced clock: the host's time is this computer's own, only the card is simulated.

What the program does between two calls of the device really takes as long as it takes: Python, torch's own code,
a DataLoader with its workers. It is written on the tape as host work. A call of the device lasts as long as the
driver's launch call would on the machine's host, because that driver isn't there; what our own accounting and the
CPU's arithmetic take in its place is not charged. So the host's clock may fall behind the computer's: whenever the
program waits for the simulated card it sleeps only until both agree again, and what is left is `lag_ns`. With
numerics off it stays small; with numerics on and large tensors the CPU falls behind, and loader workers
get more time than a real card would leave them.

Meanwhile a thread publishes the session's counters, so that `gpututor watch` shows the simulated card (telling.py).

Two such runs at once spoil each other's host time. The lock that keeps them apart is the lab's, taken by experiments;
a session takes none, since it may also be opened where nothing is measured.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gpututor.model.host import COMPILED
from gpututor.model.spec import HostKind
from gpututor.model.tape import CopyCall, HostWork, TapeOp
from gpututor.simgpu.clocks.telling import Teller
from gpututor.simgpu.session import Session
from gpututor.simgpu.watching import watch_of
from gpututor.timeline import Activity

if TYPE_CHECKING:
    from gpututor.model.tape import Entry

SHORTEST_SLEEP_NS = 100_000
"""Below this a sleep takes longer than asked for (Linux wakes a thread some 50 µs late); it is left to the next one."""

ON_ITS_OWN = {Activity.PYTHON: "Python", Activity.INPUT: "next batch"}


class PacedClock:
    """Turns this computer's time into the host's time of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.activity = Activity.PYTHON  # what the program does between two calls
        self._began_ns = self._left_ns = time.perf_counter_ns()
        self._real: dict[int, tuple[TapeOp, TapeOp]] = {}
        self._inside = False  # the program is in a call of the device
        self.teller: Teller | None = None

    @property
    def lag_ns(self) -> int:
        """How far the session's clock is behind the computer's: time that only the simulation took."""
        return self._left_ns - self._began_ns - self.session.host_ns

    def now_ns(self) -> int:
        """Where the session's clock is now, for another thread to ask.

        While the program waits for the card or is on its own, this runs with the computer's clock; while this
        computer computes in the card's place, it stands.
        """
        host_ns, real_ns = self.session.host_ns, time.perf_counter_ns()
        if host_ns >= real_ns - self._began_ns:
            return real_ns - self._began_ns
        return host_ns if self._inside else host_ns + real_ns - self._left_ns

    def enter(self, charged: bool = True) -> None:
        """The program calls the device; `charged` unless it stands for code that isn't there on a real host."""
        self._inside = True
        own_ns = time.perf_counter_ns() - self._left_ns
        if charged and own_ns > 0:
            Session.account(self.session, HostWork(self.activity, ON_ITS_OWN[self.activity], own_ns))

    def leave(self) -> None:
        """The call is over: wait until the computer's clock has reached the session's."""
        ahead_ns = self.session.host_ns - (time.perf_counter_ns() - self._began_ns)
        if ahead_ns >= SHORTEST_SLEEP_NS:
            time.sleep(ahead_ns / 1e9)
        self._left_ns = time.perf_counter_ns()
        self._inside = False

    def as_real(self, entry: Entry) -> Entry:
        """The entry without the host time that was really spent; compiled code keeps it, for it isn't really run."""
        if type(entry) is TapeOp:
            if entry.phase in COMPILED or entry.host is HostKind.CALL:
                return entry
            known = self._real.get(id(entry))
            if known is None:
                known = self._real[id(entry)] = (entry, replace(entry, phase="paced"))
            return known[1]
        return replace(entry, phase="paced") if type(entry) is CopyCall else entry


def start(session: Session) -> None:
    """Let the session's clock be paced from now on, and tell others how the run goes."""
    clock = watch_of(session).clock = PacedClock(session)
    clock.teller = Teller(clock)


def end(session: Session) -> None:
    """The session is over: nothing more is told of it."""
    clock = clock_of(session)
    if clock is not None and clock.teller is not None:
        clock.teller.stop()


def clock_of(session: Session) -> PacedClock | None:
    """The session's paced clock, or None on the virtual one."""
    return None if session.watch is None else session.watch.clock
