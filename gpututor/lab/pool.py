"""The lab itself: a few warm worker processes, and a line of jobs waiting for them.

One `Lab` serves all pages of a server. It is safe to use from many threads at once; each caller
blocks until its own job is over. `Rules` say how it serves a class instead of one reader.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from gpututor.lab.client import Kind
from gpututor.lab.job import Attendance, JobResult, Limits, Report, failed
from gpututor.lab.line import Line, LineFull, Ticket
from gpututor.lab.processes import machine_memory_bytes
from gpututor.lab.protocol import MAX_MESSAGE_BYTES, NotData, Run, to_json
from gpututor.lab.workers import Workers

ALLOWED = ("gpututor.jobs", "gpututor.experiments")
N_WORKERS = 2  # one for the reader and one for a neighbour; a laptop keeps cores for the browser
DEFAULT_BUDGET_S = 60.0  # a lesson's run takes seconds; nobody waits longer for a figure
MEMORY_SHARE = 0.75  # of the machine's memory: we end a job before the system ends somebody else's
WAITING = "waiting for another run to end"
PACED = (
    "gpututor.experiments.feeding:run",
    "gpututor.experiments.data_in_memory:run",
    "gpututor.experiments.preparing:run",
)
"""Experiments on a simulated card that measure this computer's time; those of kind "real" do anyway."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a lab serves. With `fair`, readers are told their place and nobody takes more than theirs (see `line`).

    Workers without work end after `idle_s` seconds. A run's worker holds `memory_bytes` at most; None leaves it to
    the share of the machine that one reader's run may take. `apart` is entered while a learner's code is checked.
    """

    fair: bool = False
    idle_s: float | None = None
    memory_bytes: int | None = None
    apart: Callable[[], AbstractContextManager[object]] = nullcontext


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

    def __init__(
        self,
        n_workers: int | None = None,
        *,
        allowed: Sequence[str] = ALLOWED,
        torch: bool = True,
        rules: Rules | None = None,
    ) -> None:
        n_workers = n_workers_wanted() if n_workers is None else n_workers
        self._allowed, self._rules = tuple(allowed), rules or Rules()
        self._workers = Workers(n_workers, torch=torch, idle_s=self._rules.idle_s)
        self.line = Line(n_workers, fair=self._rules.fair)
        self._pid = os.getpid()

    def warm(self, kind: Kind = "simulated") -> None:
        """Have a worker of this kind ready, or getting ready; returns at once. Harmless when one is there already."""
        self._workers.warm(kind)

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
        owner: str = "",
    ) -> JobResult:
        """What `experiment` handed back, or the one sentence why not. Blocks until then.

        `experiment` is "package.module:function" of a function `f(progress, **params)` that returns JSON
        data. `on_progress` is called here, on the caller's thread, five times a second at most;
        `should_stop` is asked twenty times a second. The time budget begins when the experiment does,
        not while it waits in line. `limits` replaces `budget_s` and the default memory limit.
        """
        params = dict(params or {})
        folder = None if results_dir is None else str(Path(results_dir).resolve())
        limits = limits or Limits(budget_s, self._rules.memory_bytes or int(MEMORY_SHARE * machine_memory_bytes()))
        if (refusal := why_not_allowed(experiment, self._allowed) or _why_not_sent(params)) is not None:
            return failed(refusal)
        request = Run(uuid4().hex, experiment, params, folder, seed, limits.wall_limit_s)
        try:
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
            ticket = self.line.join(owner, experiment, alone=kind == "real" or experiment in PACED)
        except LineFull as full:
            return failed(str(full))
        except OSError as error:
            return _not_started(error)
        try:
            return self._run(ticket, request, kind, limits, on_progress, should_stop)
        finally:
            self.line.leave(ticket)

    def _run(
        self,
        ticket: Ticket,
        request: Run,
        kind: Kind,
        limits: Limits,
        on_progress: Callable[[Report], None],
        should_stop: Callable[[], bool],
    ) -> JobResult:
        """Wait in line, then run."""
        if not self.line.wait(ticket, lambda ahead: on_progress(Report("queued", note=self._told(ahead))), should_stop):
            return JobResult("stopped", sentence="It had not begun.")
        try:
            worker = self._workers.pick(kind)
        except OSError as error:
            return _not_started(error)
        try:
            return Attendance(worker, request, limits, on_progress, should_stop).attend()
        except BaseException:  # the caller's own callback raised: don't leave its job running
            worker.end()
            raise
        finally:
            self._workers.give_back(worker)

    @contextmanager
    def turn(self, owner: str, what: str, tell: Callable[[str], None], longest_s: float) -> Iterator[bool]:
        """Hold a place in line while the block checks a learner's code; False if none came free in `longest_s`.

        Only where the rules are a class's; one reader never waits. `tell` gets one sentence on the place in line.

        Raises:
            LineFull: `owner` has too much in line already.
        """
        if not self._rules.fair:
            yield True
            return
        until_s = time.monotonic() + longest_s
        ticket = self.line.join(owner, what, short=True)
        try:
            came = self.line.wait(ticket, lambda ahead: tell(self._told(ahead)), lambda: time.monotonic() > until_s)
            with self._rules.apart() if came else nullcontext():
                yield came
        finally:
            self.line.leave(ticket)

    def _told(self, ahead: int) -> str:
        if not self._rules.fair:
            return WAITING
        return "You are next in line." if ahead == 0 else f"{ahead} in line before you."

    @property
    def worker_pids(self) -> list[int]:
        """The processes that the lab holds now."""
        return self._workers.pids

    def close(self) -> None:
        """End all workers and everything they run. Running jobs end with a sentence; later ones don't begin."""
        if os.getpid() != self._pid:  # a fork of the lab's process doesn't own its workers
            return
        self.line.close()
        self._workers.close()


def _not_started(error: OSError) -> JobResult:
    return failed(f"the experiment could not be started ({error}); free some memory or disk and run it again.")


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


def open_lab(n_workers: int, rules: Rules) -> Lab:
    """Make this process's lab one that serves by `rules`; to be called before the first page is."""
    global _lab, _lab_pid
    with _making:
        if _lab is not None and _lab_pid == os.getpid():
            _lab.close()
        _lab, _lab_pid = Lab(n_workers, rules=rules), os.getpid()
        atexit.register(_lab.close)
        return _lab
