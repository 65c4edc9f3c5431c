"""The lab's worker processes: some with a job, some ready for one, and never more than so many."""

from __future__ import annotations

import threading
import time

from gpututor.lab.client import Kind, WorkerProcess


class Workers:
    """At most `n_most` processes. Those without work end after `idle_s` seconds, if that isn't None.

    Safe from many threads.
    """

    def __init__(self, n_most: int, *, torch: bool, idle_s: float | None) -> None:
        self._n_most, self._torch = n_most, torch
        self._idle: dict[WorkerProcess, float] = {}  # since when, on the monotonic clock
        self._busy: set[WorkerProcess] = set()
        self._change = threading.Condition()
        self._closed = False
        if idle_s is not None:
            threading.Thread(target=self._end_idle_ones, args=(idle_s,), daemon=True, name="idle workers").start()

    def warm(self, kind: Kind) -> None:
        """Have one of this kind ready, or getting ready; returns at once. Harmless when one is there already."""
        with self._change:
            alive = [worker for worker in (*self._idle, *self._busy) if worker.kind == kind and worker.alive]
            if self._closed or alive or len(self._busy) + len(self._idle) >= self._n_most:
                return
            try:
                self._idle[WorkerProcess(kind, torch=self._torch)] = time.monotonic()
            except OSError:
                return  # the run itself will say so

    def pick(self, kind: Kind) -> WorkerProcess:
        """An idle worker of this kind, else a new one; an idle one of the other kind makes room.

        Raises:
            OSError: a new one can't be started.
        """
        with self._change:
            dead = [worker for worker in self._idle if not worker.alive]
            fitting = [worker for worker in self._idle if worker.kind == kind and worker.alive]
            room_needed = not fitting and len(self._busy) + len(self._idle) - len(dead) >= self._n_most
            others = [worker for worker in self._idle if worker.alive][: 1 if room_needed else 0]
            for worker in (*dead, *others):
                del self._idle[worker]
                worker.end()
            if fitting:
                worker = fitting[-1]
                del self._idle[worker]
            else:
                worker = WorkerProcess(kind, torch=self._torch)
            self._busy.add(worker)
            if self._closed:
                worker.end()  # its job will say that the process is gone
            return worker

    def give_back(self, worker: WorkerProcess) -> None:
        """The worker's job is over; the next one may have it, if it lives."""
        with self._change:
            self._busy.discard(worker)
            if worker.alive and not self._closed:
                self._idle[worker] = time.monotonic()

    @property
    def pids(self) -> list[int]:
        """The processes that there are now."""
        with self._change:
            return [worker.pid for worker in (*self._idle, *self._busy)]

    def close(self) -> None:
        """End all workers and everything they run."""
        with self._change:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
            self._change.notify_all()
        for worker in workers:
            worker.end()

    def _end_idle_ones(self, idle_s: float) -> None:
        while True:
            with self._change:
                if self._closed:
                    return
                self._change.wait(idle_s / 4)
                until_s = time.monotonic() - idle_s
                tired = [worker for worker, since_s in self._idle.items() if since_s <= until_s]
                for worker in tired:
                    del self._idle[worker]
            for worker in tired:
                worker.end()
