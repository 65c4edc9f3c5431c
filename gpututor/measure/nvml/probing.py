"""One question to one GPU: asked when it is due, believed where it makes sense, and remembered by how it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from time import perf_counter_ns

from gpututor.measure.nvml.columns import Column
from gpututor.measure.nvml.contact import Answer, Contact, Entries
from gpututor.measure.nvml.failures import UNKNOWN, Meaning, Refusal, refusal_of
from gpututor.measure.nvml.library import gate
from gpututor.measure.nvml.metrics import Metric
from gpututor.measure.nvml.questions import Question

NEVER = 2**62
"""A time that no run reaches."""

LONGEST_WAIT_NS = 60 * 10**9
"""Our choice: a question that keeps failing is tried once a minute."""

MOST_TIME_SHARE = 0.05
"""Our choice: a question takes at most a twentieth of the time. Slow calls hold a lock that programs need."""


class State(Enum):
    """How a metric stands."""

    UNTRIED = "not asked yet"
    LIVE = "live"
    UNSUPPORTED = "not supported"
    FAILED = "failed"


# By names of this module: a member looked up in its class runs a property's code up to Python 3.11.
_LIVE, _UNSUPPORTED = State.LIVE, State.UNSUPPORTED


@dataclass(slots=True)
class Standing:
    """One metric of one GPU: its state, its values, and why there is none just now."""

    metric: Metric
    column: Column
    state: State = State.UNTRIED
    n_failed: int = 0
    refusal: Refusal | None = None
    latest: float | None = None
    latest_ns: int = 0

    @property
    def words(self) -> str:
        """The state in words."""
        return f"failed {self.n_failed} times in a row" if self.state is State.FAILED else self.state.value

    def take(self, answer: Answer, at_ns: int) -> Refusal | None:
        """Keep a value; the refusal where there is none."""
        if isinstance(answer, Refusal):
            return self.refuse(answer)
        if isinstance(answer, Entries):
            wrong = None
            for time_ns, value in zip(answer.times_ns, answer.values, strict=True):
                wrong = self._believed(float(value), time_ns) or wrong
            return wrong
        return self._believed(float(answer), at_ns)

    def keep(self, value: float, at_ns: int) -> bool:
        """Keep a value; False, and nothing else, where it can't be."""
        metric = self.metric
        if not metric.lowest <= value <= metric.highest:  # NaN is in no range either
            return False
        self.column.append(at_ns, value)
        self.latest, self.latest_ns = value, at_ns
        self.refusal = None
        if self.state is not _LIVE:
            self.state, self.n_failed = _LIVE, 0
        return True

    def _believed(self, value: float, at_ns: int) -> Refusal | None:
        if self.keep(value, at_ns):
            return None
        return self.refuse(Refusal(None, f"the driver said {value:g} {self.metric.unit}, which can't be"))

    def refuse(self, refusal: Refusal) -> Refusal | None:
        """There is no value now; what is worth telling comes back."""
        if refusal.meaning is Meaning.NOTHING_NEW:
            self.refusal = self.refusal or refusal
            return None
        self.latest, self.refusal = None, refusal
        if refusal.meaning in {Meaning.NOT_HERE, Meaning.LOST}:
            self.state = State.UNSUPPORTED if refusal.meaning is Meaning.NOT_HERE else State.FAILED
        else:
            self.state, self.n_failed = State.FAILED, self.n_failed + 1
        return refusal


class Probe:
    """A question with the standing of each metric that it gives."""

    def __init__(self, question: Question, standings: Sequence[Standing], interval_ns: int) -> None:
        self.question = question
        self.standings = tuple(standings)
        self.interval_ns = interval_ns
        self.every_ns = int(question.every_s * 1e9)
        self.slow_ns = interval_ns // 20
        self.due_ns = 0
        self.way = 0
        self.n_calls = self.n_failures = 0
        self.spent_ns = self.longest_ns = 0

    @property
    def dead(self) -> bool:
        """Whether it will never be asked again."""
        return self.due_ns == NEVER

    def ask(self, gpu: Contact) -> Sequence[tuple[Metric, Refusal]]:
        """Ask once; the refusals that are worth telling come back. Raises nothing that a driver may raise.

        Numbers of live metrics take the shortest way, since a core that slept fetches all code anew.
        """
        began = perf_counter_ns()
        answer = self._answer(gpu)
        took = perf_counter_ns() - began
        self.n_calls += 1
        self.spent_ns += took
        self.longest_ns = max(self.longest_ns, took)
        now_ns, n_kept = gpu.now_ns, 0
        if took <= self.slow_ns and answer.__class__ is tuple:
            for standing in self.standings:
                one = answer[n_kept]
                if one.__class__ is not float or standing.state is not _LIVE or not standing.keep(one, now_ns):
                    break
                n_kept += 1
            else:
                self.n_failures, self.due_ns = 0, now_ns + self.every_ns
                return ()
        return self._weighed(answer, took, now_ns, n_kept)

    def _weighed(
        self, answer: Sequence[Answer] | Refusal, took_ns: int, now_ns: int, n_kept: int
    ) -> Sequence[tuple[Metric, Refusal]]:
        """Take the parts of the answer that are not kept yet, whatever they are."""
        told = []
        answers = [answer] * len(self.standings) if isinstance(answer, Refusal) else answer
        for standing, one in zip(self.standings[n_kept:], answers[n_kept:], strict=True):
            if standing.state is _UNSUPPORTED:
                continue
            refusal = standing.take(self._meant(one, standing), now_ns)
            if refusal is not None:
                told.append((standing.metric, refusal))
        self.due_ns = self._next(now_ns, answer, took_ns)
        return told

    def _answer(self, gpu: Contact) -> Sequence[Answer] | Refusal:
        """The answer by the first way that this driver and binding know."""
        ways = self.question.ways
        while True:
            lock = gate()
            lock.acquire()  # not by a with statement: waiting for the next round has fetched the code of this one
            try:
                answer = ways[self.way](gpu)
            except Exception as error:  # noqa: BLE001  # what a binding raises differs by its age
                answer = refusal_of(error)
            finally:
                lock.release()
            if not isinstance(answer, Refusal):
                return answer
            if answer.meaning is not Meaning.NOT_HERE or self.way == len(ways) - 1:
                return answer
            self.way += 1

    def _meant(self, answer: Answer, standing: Standing) -> Answer:
        """The answer, with "unknown error" at the first try turned into what some drivers mean by it."""
        new = standing.state is State.UNTRIED or (standing.state is State.FAILED and not standing.column.n)
        if self.question.unknown_is_never and new and isinstance(answer, Refusal) and answer.code == UNKNOWN:
            return Refusal(UNKNOWN, answer.said, Meaning.NOT_HERE)
        return answer

    def _next(self, now_ns: int, answer: Sequence[Answer] | Refusal, took_ns: int) -> int:
        """When to ask again."""
        if all(standing.state is _UNSUPPORTED for standing in self.standings):
            return NEVER
        wait_ns = max(self.every_ns, int(took_ns / MOST_TIME_SHARE) if took_ns > self.slow_ns else 0)
        if isinstance(answer, Refusal):
            if answer.meaning is Meaning.NOTHING_NEW:
                return now_ns if self.question.soon else now_ns + wait_ns
            self.n_failures += 1
            n = min(self.n_failures, 16)
            return now_ns + max(wait_ns, min(LONGEST_WAIT_NS, self.interval_ns << n))
        self.n_failures = 0
        return now_ns + wait_ns
