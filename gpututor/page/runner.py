"""Runs experiments of one page in the lab, and lets the page's cells follow them.

Make a `Runner` in a cell that never runs again: marimo tells a thread to end when the cell that made
it is re-run. Bind its getters to names of their own (`get_phase = runner.get_phase`), because marimo
tracks a state by the name of its getter. There are two: controls follow the phase, which changes a
few times a run, and the progress line follows the progress, so that a Stop button isn't redrawn under
the finger five times a second.

The runner's thread only sets the progress, which one cell shows; that cell calls `caught_up`, and so the
phase changes on the page's own thread. A thread that set the phase itself would mark its many cells
for a re-run one by one (marimo 0.25.2), while the page already runs those marked so far: a cell below the results
then meets names that don't exist yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import marimo as mo

from gpututor.lab.client import Kind
from gpututor.lab.job import JobResult, Report, as_sentence
from gpututor.lab.pool import Lab, the_lab
from gpututor.results import Results, StoredResult, now_utc
from gpututor.store import Store

Phase = Literal["ready", "queued", "running", "done", "stopped", "failed"]

UNDER_WAY = ("queued", "running")
WARM_AFTER_S = 2.0  # a worker imports torch, which would take the page's own processor while it opens
DAMAGED = "The result of your last run can't be read, so this page goes on without it; run it again."
LOOK_EVERY_S = 0.5  # how soon an idle page's thread notices that its tab is closed


@dataclass(frozen=True, slots=True)
class Shown:
    """What a progress line needs: `k` of `n` steps (0 of 0 while unknown), seconds left, and the newest partial data.

    `left_s` is None while nothing can be said. `note` is the experiment's own while it runs, and then the
    sentence on why it was stopped or failed.
    """

    phase: Phase
    k: int = 0
    n: int = 0
    note: str = ""
    left_s: float | None = None
    partial: Any = None


@dataclass(frozen=True, slots=True)
class _Order:
    experiment: str
    params: dict[str, Any]
    budget_s: float
    seed: int
    kind: Kind


class Runner:
    """One experiment at a time for one page, on a thread of the page, in a process of the lab.

    A result found from an earlier visit puts the runner in phase "done" (or "stopped") at once.
    `experiment` narrows that to one experiment when a lesson has several. `on_result` is called on the
    page's thread with each new result, before the phase changes.
    """

    def __init__(
        self,
        store: Store,
        lesson: str,
        *,
        experiment: str | None = None,
        lab: Lab | None = None,
        on_result: Callable[[StoredResult], None] | None = None,
    ) -> None:
        self._results: Results = store.results(lesson)
        self._owner = store.learner
        self._lab = lab or the_lab()
        self._on_result = on_result
        self._stop = threading.Event()
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        self._starting = threading.Lock()
        self._busy = False
        self.result: StoredResult | None = self._results.latest(experiment)
        self.log = ""
        self.trouble = DAMAGED if self._results.newest_is_damaged else None
        first = _first_shown(self.result)
        # With self loops: a button's cell reads the phase, and its own click must redraw it.
        self.get_phase, self._set_phase = mo.state(first.phase, allow_self_loops=True)
        self.get_shown, self._set_shown = mo.state(first, allow_self_loops=True)
        # marimo runs a page's cells on one thread. When the page is closed that thread ends, but a
        # mo.Thread isn't told (marimo 0.25.2): should_exit speaks of re-run cells only.
        self._kernel = threading.current_thread()
        self._thread = mo.Thread(target=self._work, daemon=True)
        self._thread.start()

    def start(
        self,
        experiment: str,
        params: Mapping[str, Any] | None = None,
        *,
        budget_s: float = 60.0,
        seed: int = 0,
        kind: Kind = "simulated",
    ) -> bool:
        """Start a run and return at once; False (and nothing happens) while another one is under way.

        Call it from a control's callback, not from a cell that reads the phase: that one would start for ever.
        """
        with self._starting:
            if self._busy:
                return False
            self._busy = True
        self._stop.clear()
        self.trouble = None
        self._set_shown(Shown("running"))
        self._set_phase("running")
        self._orders.put(_Order(experiment, dict(params or {}), budget_s, seed, kind))
        return True

    def caught_up(self, now: Shown) -> Shown:
        """What a progress cell shows; the phase follows. Call it in that cell with what `get_shown` gives."""
        if now.phase != self.get_phase():
            self._set_phase(now.phase)
        return now

    def stop(self) -> None:
        """Wish the run to stop; the phase changes when it has."""
        self._stop.set()

    @property
    def closed(self) -> bool:
        """Whether the page is gone: its tab closed for longer than the server waits, or its cell run anew."""
        return self._thread.should_exit or not self._kernel.is_alive()

    def _work(self) -> None:
        warm_at_s: float | None = time.monotonic() + WARM_AFTER_S
        while not self.closed:
            if warm_at_s is not None and time.monotonic() >= warm_at_s:
                self._lab.warm()
                warm_at_s = None
            try:
                order = self._orders.get(timeout=LOOK_EVERY_S)
            except Empty:
                continue
            self._serve(order)
            self._busy = False

    def _serve(self, order: _Order) -> None:
        """Run one order to its end; whatever happens becomes a phase and a sentence."""
        last = Shown("running")

        def follow(report: Report) -> None:
            nonlocal last
            phase: Phase = "queued" if report.phase == "queued" else "running"
            last = Shown(phase, report.k, report.n, report.note, left_s(report), report.partial)
            self._show(last)

        try:
            folder = self._folder()
            job = self._lab.run(
                order.experiment,
                order.params,
                budget_s=order.budget_s,
                on_progress=follow,
                should_stop=lambda: self._stop.is_set() or self.closed,
                results_dir=folder,
                seed=order.seed,
                kind=order.kind,
                owner=self._owner,
            )
            if job.state == "stopped" and self.closed:
                job = replace(job, sentence="The page was closed while it ran.")
            self._keep(order, job, folder, last)
        except Exception as error:  # noqa: BLE001 - a page never goes blank: it says what happened
            job = JobResult("failed", sentence=as_sentence(f"{type(error).__name__}: {error}"))
        self.log = job.log
        self._show(Shown(job.state, _steps_done(job, last), last.n, job.sentence, 0.0, last.partial))

    def _show(self, shown: Shown) -> None:
        if not self.closed:
            self._set_shown(shown)

    def _folder(self) -> Path | None:
        """A folder for the run's files; None, and trouble, when the disk gives none."""
        try:
            return self._results.new_folder()
        except OSError as error:
            self._tell_trouble(error)
            return None

    def _keep(self, order: _Order, job: JobResult, folder: Path | None, last: Shown) -> None:
        """Make the job's data the page's result; a failed job, or a stopped one with no data, leaves the one before."""
        if job.state == "failed" or (job.state == "stopped" and job.data is None):
            return
        at = now_utc().isoformat(timespec="seconds")
        result = StoredResult(
            folder,
            job.state,
            order.experiment,
            order.params,
            job.data,
            job.sentence,
            at,
            _steps_done(job, last),
            last.n,
        )
        try:
            self._results.keep(result)
        except OSError as error:
            self._tell_trouble(error)
        self.result = result
        if self._on_result is not None:
            self._on_result(result)

    def _tell_trouble(self, error: OSError) -> None:
        self.trouble = (
            f"This run's result can't be kept ({error.strerror or error}); it stays on the page until you close it. "
            "Set GPUTUTOR_HOME to a folder that you can write to."
        )


def left_s(report: Report) -> float | None:
    """Seconds left if the rest goes as the steps so far; None before the first step.

    >>> left_s(Report("running", k=1, n=4, run_s=2.0))
    6.0
    """
    if report.k <= 0 or report.n <= 0:
        return None
    return report.run_s / report.k * max(0, report.n - report.k)


def _first_shown(result: StoredResult | None) -> Shown:
    if result is None:
        return Shown("ready")
    phase: Phase = "stopped" if result.state == "stopped" else "done"
    return Shown(phase, result.k, result.n, result.sentence)


def _steps_done(job: JobResult, last: Shown) -> int:
    return last.n if job.state == "done" else last.k
