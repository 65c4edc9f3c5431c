"""The lab itself: a few warm worker processes, and a line of jobs waiting for them.

One `Lab` serves all pages of a server. It is safe to use from many threads at once; each caller
blocks until its own job is over.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from gpututor.lab.client import Kind, WorkerProcess
from gpututor.lab.job import LOOK_EVERY_S, Attendance, JobResult, Limits, Report, failed
from gpututor.lab.processes import machine_memory_bytes
from gpututor.lab.protocol import MAX_MESSAGE_BYTES, NotData, Run, to_json

ALLOWED = ("gpututor.jobs", "gpututor.experiments")
N_WORKERS = 2  # one for the reader and one for a neighbour; a laptop keeps cores for the browser
DEFAULT_BUDGET_S = 60.0  # a lesson's run takes seconds; nobody waits longer for a figure
MEMORY_SHARE = 0.75  # of the machine's memory: we end a job before the system ends somebody else's
WAITING = "waiting for another run to end"


def n_workers_wanted() -> int:
    """How many experiments may run at once: GPUTUTOR_LAB_WORKERS when that is a number from 1 to 64, else 2."""
    text = os.environ.get("GPUTUTOR_LAB_WORKERS", "")
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) <= 64 else N_WORKERS


def why_not_allowed(experiment: str, allowed: Sequence[str]) -> str | None:
    """One sentence if `experiment` isn't "module:function" of one of the allowed packages, else None."""
    module, colon, name = experiment.partition(":")
    parts = module.split(".")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in parts):
        return f'"{experiment}" is no experiment\'s name; it must read "package.module:function".'
    if name.startswith("_") or not any(f"{module}.".startswith(f"{package}.") for package in allowed):
        return f'the lab does not run "{experiment}"; it runs public functions of {", ".join(allowed)}.'
    return None


def _nothing(report: Report) -> None:
    return None


def _never() -> bool:
    return False


class Lab:
    """Runs experiments in worker processes. `torch=False` gives workers that start without importing it."""

    def __init__(self, n_workers: int | None = None, *, allowed: Sequence[str] = ALLOWED, torch: bool = True) -> None:
        self._n_workers = n_workers_wanted() if n_workers is None else n_workers
        self._allowed, self._torch = tuple(allowed), torch
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._n_taken = 0
        self._line: list[object] = []
        self._change = threading.Condition()
        self._closed, self._pid = False, os.getpid()

    def warm(self, kind: Kind = "simulated") -> None:
        """Have a worker of this kind ready, or getting ready; returns at once. Harmless when one is there already."""
        with self._change:
            alive = [worker for worker in (*self._idle, *self._busy) if worker.kind == kind and worker.alive]
            if self._closed or alive or self._n_taken + len(self._idle) >= self._n_workers:
                return
            try:
                self._idle.append(WorkerProcess(kind, torch=self._torch))
            except OSError:
                return  # the run itself will say so

    def run(
        self,
        experiment: str,
        params: Mapping[str, Any] | None = None,
        *,
        budget_s: float = DEFAULT_BUDGET_S,
        on_progress: Callable[[Report], None] = _nothing,
        should_stop: Callable[[], bool] = _never,
        results_dir: Path | str | None = None,
        seed: int = 0,
        kind: Kind = "simulated",
        limits: Limits | None = None,
    ) -> JobResult:
        """What `experiment` handed back, or the one sentence why not. Blocks until then.

        `experiment` is "package.module:function" of a function `f(progress, **params)` that returns JSON
        data. `on_progress` is called here, on the caller's thread, five times a second at most;
        `should_stop` is asked twenty times a second. The time budget begins when the experiment does,
        not while it waits in line. `limits` replaces `budget_s` and the default memory limit.
        """
        params = dict(params or {})
        folder = None if results_dir is None else str(Path(results_dir).resolve())
        limits = limits or Limits(budget_s, int(MEMORY_SHARE * machine_memory_bytes()))
        if (refusal := why_not_allowed(experiment, self._allowed) or _why_not_sent(params)) is not None:
            return failed(refusal)
        request = Run(uuid4().hex, experiment, params, folder, seed, limits.wall_limit_s)
        try:
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
            worker = self._take(kind, on_progress, should_stop)
        except OSError as error:
            return failed(f"the experiment could not be started ({error}); free some memory or disk and run it again.")
        if worker is None:
            return JobResult("stopped", sentence="It had not begun.")
        try:
            return Attendance(worker, request, limits, on_progress, should_stop).attend()
        except BaseException:  # the caller's own callback raised: don't leave its job running
            worker.end()
            raise
        finally:
            self._give_back(worker)

    def close(self) -> None:
        """End all workers and everything they run. Running jobs end with a sentence; later ones don't begin."""
        if os.getpid() != self._pid:  # a fork of the lab's process doesn't own its workers
            return
        with self._change:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
            self._change.notify_all()
        for worker in workers:
            worker.end()

    def _take(
        self, kind: Kind, on_progress: Callable[[Report], None], should_stop: Callable[[], bool]
    ) -> WorkerProcess | None:
        """A worker for the caller alone, first come first served; None when the caller stopped waiting."""
        ticket = object()
        told = False
        with self._change:
            self._line.append(ticket)
        try:
            while True:
                with self._change:
                    if self._closed:
                        return None
                    if self._line[0] is ticket and self._n_taken < self._n_workers:
                        return self._pick(kind)
                    self._change.wait(LOOK_EVERY_S if told else 0)
                if should_stop():
                    return None
                if not told:
                    on_progress(Report("queued", note=WAITING))
                    told = True
        finally:
            with self._change:
                self._line.remove(ticket)
                self._change.notify_all()

    def _pick(self, kind: Kind) -> WorkerProcess:
        """An idle worker of this kind, else a new one; an idle one of the other kind makes room."""
        dead = [worker for worker in self._idle if not worker.alive]
        fitting = [worker for worker in self._idle if worker.kind == kind and worker.alive]
        room_needed = not fitting and self._n_taken + len(self._idle) - len(dead) >= self._n_workers
        others = [worker for worker in self._idle if worker.alive][: 1 if room_needed else 0]
        for worker in (*dead, *others):
            self._idle.remove(worker)
            worker.end()
        if fitting:
            worker = fitting[-1]
            self._idle.remove(worker)
        else:
            worker = WorkerProcess(kind, torch=self._torch)
        self._busy.add(worker)
        self._n_taken += 1
        return worker

    def _give_back(self, worker: WorkerProcess) -> None:
        with self._change:
            self._busy.discard(worker)
            self._n_taken -= 1
            if worker.alive and not self._closed:
                self._idle.append(worker)
            self._change.notify_all()


def _why_not_sent(params: dict[str, Any]) -> str | None:
    try:
        size_bytes = len(to_json(params))
    except NotData as fault:
        return f"the experiment's parameters are not plain data: {fault}."
    if size_bytes > MAX_MESSAGE_BYTES // 2:
        return f"the experiment's parameters take {size_bytes / 2**20:.0f} MiB; pass big inputs as a file."
    return None


_lab: Lab | None = None
_lab_pid = 0
_making = threading.Lock()


def the_lab() -> Lab:
    """This process's one lab; made at the first call, ended with the process."""
    global _lab, _lab_pid
    with _making:
        if _lab is None or _lab_pid != os.getpid():  # a forked process starts its own
            _lab, _lab_pid = Lab(), os.getpid()
            atexit.register(_lab.close)
        return _lab
