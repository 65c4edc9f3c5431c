"""What an exercise is: a task, an answer, and a judge that never shares a process with the answer.

The learner's side gives an answer: a number as typed, a chosen option, or code. For code the lab runs it in a process
of its own and hands back data only. A judge takes the answer and the `Case`, data drawn from the learner's own run,
and gives a `Judged`. Solutions and typical wrong answers lie in tests/exercises, where no page can reach them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpututor.cards import DEFAULT_MACHINE
from gpututor.errors import GpututorError

Kind = Literal["number", "choice", "diagnosis", "code"]
State = Literal["unanswered", "wrong", "partial", "right"]
Points = tuple[tuple[float, float | None], ...]
Case = Mapping[str, Any]
"""JSON data from the learner's run; the judge's, but for three entries. "words" maps the gaps of the task to texts,
"options" takes the place of the exercise's, and against "limit", a number and its unit, a typed number is drawn."""

MOST_HINTS = 3


class ExerciseError(GpututorError, ValueError):
    """An exercise that isn't whole: no hint, no options, a share that isn't one."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked at, in a few words, whether it holds, and its share of the marks."""

    words: str
    holds: bool
    share: float


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of an answer.

    `text` is one sentence: the first miss, or what the right answer means. `theirs` and `ours` are the points of the
    picture that is shown before it, `hint` the number (from 1) of the hint that would help, where one would. `usd` is
    what the judged work cost, where an exercise is about money and the work is good enough to be compared.
    """

    state: State
    text: str
    checks: tuple[Check, ...] = ()
    theirs: Points = ()
    ours: Points = ()
    hint: int | None = None
    usd: float | None = None

    @property
    def earned_share(self) -> float:
        """Share of the full marks, between 0 and 1.

        >>> Judged("partial", "", (Check("runs", True, 0.4), Check("is fast", False, 0.6))).earned_share
        0.4
        """
        if self.checks:
            return round(sum(check.share for check in self.checks if check.holds), 9)
        return 1.0 if self.state == "right" else 0.0


NOT_ANSWERED = Judged("unanswered", "Not answered yet.")


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise. `judge(answer, case)` decides; an untouched answer is judged `NOT_ANSWERED`.

    `task` and `hints` are Markdown; `task` may have gaps in braces that the case's "words" fill. `options` are what can
    be chosen (kinds "choice" and "diagnosis"), `unit` what a number is asked in, `starter` the code to begin with,
    `x_title` the level axis of the picture of what code does, `picture` what its upright axis holds, and `marks` the
    full score. A case may bring "options" of its own, in an order drawn for the learner. `needs_run` is false where the
    judge does without a case, and `machine` is the one on which what code launches is priced, unless the case has one.

    Two are for grading alone. `hidden(rng)` draws another case of the same kind, plain data that hang on `rng` and on
    nothing else. `case_from(case)` gives the case that a run of ours leads to on the machine that a learner's case
    names, or None where it can't tell.

    Raises:
        ExerciseError: it isn't whole.
    """

    number: str
    title: str
    kind: Kind
    task: str
    hints: tuple[str, ...]
    judge: Callable[[Any, Case], Judged]
    marks: int = 10
    options: tuple[str, ...] = ()
    unit: str = ""
    starter: str = ""
    x_title: str = ""
    picture: Literal["share", "number"] = "number"
    needs_run: bool = True
    machine: str = DEFAULT_MACHINE
    hidden: Callable[[random.Random], Case] | None = None
    case_from: Callable[[Case], Case | None] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.hints) <= MOST_HINTS:
            raise ExerciseError(f"exercise {self.number} has {len(self.hints)} hints; it takes 1 to {MOST_HINTS}")
        if (self.kind in ("choice", "diagnosis")) != bool(self.options):
            raise ExerciseError(f"exercise {self.number} is a {self.kind} and has {len(self.options)} options")
        if (self.kind == "code") != bool(self.starter):
            raise ExerciseError(f"exercise {self.number} is a {self.kind}; code, and only code, begins with a starter")

    @property
    def lesson(self) -> int:
        """The lesson it belongs to.

        >>> Exercise("3.1", "", "number", "", ("Look.",), lambda answer, case: NOT_ANSWERED).lesson
        3
        """
        return int(self.number.partition(".")[0])

    @property
    def key(self) -> str:
        """Under which the answer lies in a progress file, such as "exercise 3.1"."""
        return f"exercise {self.number}"

    def asked(self, case: Case) -> str:
        """The task with its gaps filled from the learner's run."""
        return self.task.format(**case["words"]) if case.get("words") else self.task

    def is_untouched(self, answer: Any) -> bool:
        """Whether nothing was typed, chosen, or changed in the starter."""
        if answer is None:
            return True
        text = str(answer).strip()
        return not text or text == self.starter.strip()

    def check(self, answer: Any, case: Case) -> Judged:
        """The judge's word on an answer; an untouched one isn't judged."""
        return NOT_ANSWERED if self.is_untouched(answer) else self.judge(answer, case)
