"""Several ranks in one process: threads of which exactly one runs, and hands on only where it waits for the others.

So every run of a program takes the same turns. What a process has for itself and threads share (random generators,
environment variables, torch.distributed's groups, the running session) is put in place at each turn.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Protocol

from gpututor.errors import RankFailed, RanksDisagree


class RankStopped(BaseException):
    """Raised in a rank that waits when another has failed, or the run was interrupted."""


class Seat(Protocol):
    """What one rank has for itself."""

    def take(self) -> None:
        """Put it in place; the rank's turn begins."""

    def leave(self) -> None:
        """Keep it for the next turn."""


class Turns:
    """Runs one function for each seat; `wait_until` inside of them lets others have their turn."""

    def __init__(self, seats: list[Seat]) -> None:
        self._seats = seats
        self._go = [threading.Semaphore(0) for _ in seats]
        self._back = threading.Semaphore(0)
        self._waits_for: list[tuple[str, Callable[[], bool]] | None] = [None] * len(seats)
        self._errors: dict[int, BaseException] = {}
        self._running = -1
        self._stopping = False
        self._done: set[int] = set()
        self._threads: list[threading.Thread] = []

    def wait_until(self, reached: Callable[[], bool], what: str) -> None:
        """Called by the rank whose turn it is: go on only when `reached()`, and let the others run until then."""
        rank = self._running
        while not reached():
            self._waits_for[rank] = (what, reached)
            self._seats[rank].leave()
            self._back.release()
            self._go[rank].acquire()
            self._waits_for[rank] = None
            if self._stopping:
                raise RankStopped
            self._seats[rank].take()

    def run(self, work: Callable[[int], None]) -> None:
        """Call `work(rank)` for every rank, in turns, until all are done.

        Raises:
            RankFailed: a rank raised; its error is the cause.
            RanksDisagree: ranks wait for one that has ended, or for each other.
        """
        n = len(self._seats)
        self._threads = [threading.Thread(target=self._rank, args=(rank, work), daemon=True) for rank in range(n)]
        for thread in self._threads:
            thread.start()
        try:
            while len(self._done) < n and not self._errors:
                self._turn(self._next())
        except BaseException:
            self._stop()
            raise
        self._stop()
        if self._errors:
            rank, error = next(iter(self._errors.items()))
            raise RankFailed(
                f"rank {rank} raised {type(error).__name__}: {error}; the other ranks were stopped"
            ) from error

    def _rank(self, rank: int, work: Callable[[int], None]) -> None:
        self._go[rank].acquire()
        try:
            if not self._stopping:
                self._seats[rank].take()
                work(rank)
        except RankStopped:
            pass
        except BaseException as error:
            self._errors[rank] = error
        finally:
            if not self._stopping:
                self._seats[rank].leave()
            self._done.add(rank)
            self._back.release()

    def _turn(self, rank: int) -> None:
        self._running = rank
        self._go[rank].release()
        self._back.acquire()

    def _next(self) -> int:
        """The lowest rank that can go on."""
        for rank, waits in enumerate(self._waits_for):
            if rank not in self._done and (waits is None or waits[1]()):
                return rank
        waiting = "; ".join(f"rank {k} waits in {w[0]}" for k, w in enumerate(self._waits_for) if w is not None)
        ended = ", ".join(map(str, sorted(self._done))) or "none"
        raise RanksDisagree(
            f"no rank can go on: {waiting}; ended: {ended}. On real cards they would wait for ever, so let all ranks "
            "of a group call the same collectives in the same order"
        )

    def _stop(self) -> None:
        """Let every rank that is not done end: those that wait at once, one in the middle of its turn as well."""
        self._stopping = True
        for rank, thread in enumerate(self._threads):
            if rank in self._done:
                continue
            if self._running == rank and self._waits_for[rank] is None and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(RankStopped))
            self._go[rank].release()
        for thread in self._threads:
            thread.join(timeout=30)
