"""One job from its start to its one sentence: progress out, stop in, time and memory kept.

Every way a job can end is a `JobResult`; nothing an experiment does is raised at the page.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpututor.errors import ExperimentError
from gpututor.lab.client import WorkerProcess
from gpututor.lab.processes import memory_bytes
from gpututor.lab.protocol import Ended, Run, Started, Stop, Ticked, WireClosed, WireError

State = Literal["done", "stopped", "failed"]

LOOK_EVERY_S = 0.05  # how soon a stop is heard; 0.1 s feels immediate (Nielsen 1993, "Usability Engineering")
GRACE_S = 2.0  # from the wish to stop to the end of the process; a step of a lesson's job takes well under a second
WEIGH_EVERY_S = 0.1  # a process fills memory at some GB/s, so it is seen within a few hundred MB of its limit
START_LIMIT_S = 120.0  # importing torch from a slow network disk takes the better part of a minute
BACKUP_S = 10.0  # the worker's own limit comes this much after ours
LONGEST_S = 7 * 86_400.0  # a week; also what "no budget" means


@dataclass(frozen=True, slots=True)
class Report:
    """How far a job is: `k` of `n` steps; `n` is 0 while that isn't known. `partial` is the newest one reported."""

    phase: Literal["queued", "starting", "running"]
    k: int = 0
    n: int = 0
    note: str = ""
    partial: Any = None
    run_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job handed back. `sentence` is empty when it is done; `log` is for the curious.

    Stopped and failed jobs keep in `data` what they reported last, or None.
    """

    state: State
    data: Any = None
    sentence: str = ""
    log: str = ""
    run_s: float = 0.0

    def require(self) -> Any:
        """The data of a job that is done.

        Raises:
            ExperimentError: it isn't done; with the job's sentence.
        """
        if self.state != "done":
            raise ExperimentError(self.sentence)
        return self.data


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may take. `memory_bytes` is the worker process's resident memory, torch included; None is no limit."""

    budget_s: float
    memory_bytes: int | None = None
    grace_s: float = GRACE_S

    @property
    def wall_limit_s(self) -> float:
        """Seconds after which the worker ends itself if nobody else did."""
        return min(self.budget_s, LONGEST_S) + self.grace_s + BACKUP_S


def failed(sentence: str, log: str = "") -> JobResult:
    """A failed job that never ran."""
    return JobResult("failed", sentence=as_sentence(sentence), log=log)


def as_sentence(text: str) -> str:
    """With a capital and a full stop.

    >>> as_sentence("no card is called X")
    'No card is called X.'
    """
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


class Attendance:
    """Follows one job in one worker until it has ended, one way or another."""

    def __init__(
        self,
        worker: WorkerProcess,
        run: Run,
        limits: Limits,
        on_progress: Callable[[Report], None],
        should_stop: Callable[[], bool],
    ) -> None:
        self._worker, self._run, self._limits = worker, run, limits
        self._on_progress, self._should_stop = on_progress, should_stop
        self._report = Report("starting")
        self._log_position = worker.log.position
        self._began_s = self._asked_s = 0.0
        self._why = ""
        self._weigh_s = 0.0

    def attend(self) -> JobResult:
        """Send the job and stay with it to its end. The worker lives on unless the job wouldn't end."""
        try:
            return self._attend()
        except (WireClosed, WireError) as error:
            return self._crashed(error)

    def _attend(self) -> JobResult:
        self._began_s = time.monotonic()
        self._worker.send(self._run)
        self._on_progress(self._report)
        while True:
            message = self._worker.receive(LOOK_EVERY_S)
            if isinstance(message, Ended) and message.job == self._run.job:
                return self._ended(message)
            if isinstance(message, Started):
                self._began_s = time.monotonic()
                self._tell(Report("running"))
            elif isinstance(message, Ticked) and message.job == self._run.job:
                partial = self._report.partial if message.partial is None else message.partial
                self._tell(Report("running", message.k, message.n, message.note, partial, self._run_s))
            elif message is None and not self._worker.alive:
                raise WireClosed  # a child of the worker may still hold the wire open
            if (cut := self._keep_limits()) is not None:
                return cut

    def _tell(self, report: Report) -> None:
        self._report = report
        self._on_progress(report)

    @property
    def _run_s(self) -> float:
        return 0.0 if self._report.phase == "starting" else time.monotonic() - self._began_s

    def _keep_limits(self) -> JobResult | None:
        now_s = time.monotonic()
        if self._why:
            return self._cut_off() if now_s - self._asked_s > self._limits.grace_s else None
        if self._should_stop():
            self._ask("stop")
        elif self._report.phase == "starting":
            if now_s - self._began_s > START_LIMIT_S:
                return self._end(
                    f"the experiment's process was not ready after {START_LIMIT_S:.0f} s and was ended; run it again."
                )
        elif now_s - self._began_s > self._limits.budget_s:
            self._ask("budget")
        return self._weigh(now_s)

    def _ask(self, why: Literal["stop", "budget"]) -> None:
        self._why, self._asked_s = why, time.monotonic()
        self._worker.send(Stop(self._run.job))

    def _weigh(self, now_s: float) -> JobResult | None:
        limit = self._limits.memory_bytes
        if limit is None or now_s < self._weigh_s:
            return None
        self._weigh_s = now_s + WEIGH_EVERY_S
        held = memory_bytes(self._worker.pid)
        if held is None or held <= limit:
            return None
        return self._end(
            f"the experiment's process took {held / 2**20:,.0f} MiB of memory, more than the {limit / 2**20:,.0f} MiB "
            "it may have, and was ended; try a smaller batch or model."
        )

    def _cut_off(self) -> JobResult:
        if self._why == "stop":
            gone = self._end("you stopped it; it did not answer, so its process was ended.")
            return replace(gone, state="stopped")
        budget_s, grace_s = self._limits.budget_s, self._limits.grace_s
        return self._end(
            f"the experiment was still running {grace_s:g} s after its time of {budget_s:g} s was over and did not "
            "answer, so its process was ended; is there a loop without an end?"
        )

    def _end(self, sentence: str) -> JobResult:
        """End the process; what was reported last is kept."""
        run_s = self._run_s
        self._worker.end()
        return JobResult("failed", self._report.partial, as_sentence(sentence), self._log(), run_s)

    def _ended(self, message: Ended) -> JobResult:
        log = "\n".join(filter(None, (self._log().strip(), message.log)))
        data, sentence = message.data, message.sentence
        if message.state == "failed":
            data = self._report.partial
        elif message.state == "stopped":
            data = self._report.partial if data is None else data
            sentence = "you stopped it."
            if self._why == "budget":
                sentence = f"that was its time budget of {self._limits.budget_s:g} s."
        state: State = "done" if message.state == "done" else "stopped" if message.state == "stopped" else "failed"
        return JobResult(state, data, as_sentence(sentence) if sentence else "", log, self._run_s)

    def _crashed(self, error: Exception) -> JobResult:
        if isinstance(error, WireError):
            return self._end(f"the experiment's process was ended, because it sent {error}; run it again.")
        how, run_s = self._worker.how_it_ended(), self._run_s
        self._worker.end()
        sentence = f"the experiment's process ended by itself ({how}); nothing else is affected; run it again."
        return JobResult("failed", self._report.partial, as_sentence(sentence), self._log(), run_s)

    def _log(self) -> str:
        return self._worker.log.since(self._log_position)
