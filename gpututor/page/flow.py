"""What every lesson has, in the order in which a reader meets it: guess, run, results, own machine, exercises, end.

Each method is a cell's line or two. What follows a control or a state must stand in another cell than the one that
makes it (marimo's rule), so the cells pass on what the methods give: phases, controls, what the run left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import marimo as mo

from gpututor.cards import DEFAULT_MACHINE, machine
from gpututor.exercises.form import Case, Exercise
from gpututor.page.course import Lesson
from gpututor.page.endings import ending
from gpututor.page.exercise import answer_control, check_button, exercise_card
from gpututor.page.guess import Question, guess_card, guess_control, guess_locked
from gpututor.page.head import header, recall
from gpututor.page.kept import Kept, kept_tapes
from gpututor.page.measured import OwnGpu
from gpututor.page.own import OwnMachine
from gpututor.page.run import progress_line, run_buttons, run_panel
from gpututor.page.runner import Phase, Runner, Shown
from gpututor.store import Store
from gpututor.text import dollars

CLOSED = "Opens once you have guessed."


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a lesson runs: a function as "module:function", and how the page speaks of it.

    `label` stands on the button, `what` is what it counts ("sentence"), and `budget_s` ends it. `measure` is its like
    that measures on the reader's own machine. `on` says what it runs on, the default machine unless it is given, and
    `hint` is a line for those who may run it.
    """

    run: str
    label: str
    measure: str
    what: str = "step"
    budget_s: float = 120.0
    on: str = ""
    hint: str = ""


class Taught(Protocol):
    """A lesson's module of exercises, such as gpututor.exercises.ex03, as far as its page asks it."""

    @property
    def RECALL(self) -> Sequence[tuple[str, str]]:  # noqa: N802  a constant of the module
        """Two questions from earlier lessons with their answers."""

    @property
    def NOTES(self) -> str:  # noqa: N802
        """What instructors should know."""


class Flow:
    """One reader's way through one lesson. Make it in the set-up cell; nothing runs before `states` is called."""

    runner: Runner
    own: OwnMachine | OwnGpu

    def __init__(
        self,
        lesson: Lesson,
        question: Question,
        experiment: Experiment,
        taught: Taught,
        own: type[OwnMachine | OwnGpu] = OwnMachine,
    ) -> None:
        self.lesson, self.taught = lesson, taught
        self.question, self.experiment = question, experiment
        self.store = Store(str(mo.query_params().get("learner") or ""))
        self._own_kind = own

    def header(self, lead: str, *, hero: str = "") -> mo.Html:
        """Place line, title and lead; see `page.head.header`."""
        return header(self.lesson, lead, hero=hero)

    def states(self) -> tuple[Callable[[], Phase], Callable[[], Shown], Callable[[], Phase], Callable[[], Shown]]:
        """Getters of phase and progress, of the lesson's run and of the one that measures on the reader's machine.

        Call it in a cell that never runs again, and bind each to a name of its own: marimo follows a state by name.
        """
        self.runner = Runner(self.store, self.lesson.key)
        self.own = self._own_kind(self.store, self.lesson.key, self.experiment.measure)
        return self.runner.get_phase, self.runner.get_shown, self.own.get_phase, self.own.get_shown

    # --- guess -------------------------------------------------------------------------------------------------------

    def guess_control(self, phase: Phase) -> mo.ui.radio:
        """The question's options; each choice is kept at once, and none can be made once a run has begun."""
        key, asked = self.lesson.key, self.question
        return guess_control(
            list(asked.options),
            self.store.tries(key, asked.key),
            lambda choice: self.store.guess(key, asked.key, choice),
            locked=phase != "ready",
        )

    def guess_card(self, phase: Phase, guess: object, answer: str | None) -> mo.Html:
        """The question with its options; once a run has begun, what was guessed and what it was."""
        if phase == "ready":
            return guess_card(self.question.text, guess)
        return guess_locked(self.question.text, self.store.tries(self.lesson.key, self.question.key), answer)

    # --- run ---------------------------------------------------------------------------------------------------------

    def run_buttons(
        self, phase: Phase, guessed: str | None, params: Mapping[str, Any] | None = None
    ) -> list[mo.ui.button]:
        """The button that runs the experiment with `params`, closed until something is guessed; Stop while it runs."""
        return run_buttons(
            phase,
            lambda: self.runner.start(self.experiment.run, params, budget_s=self.experiment.budget_s),
            self.runner.stop,
            label=self.experiment.label,
            open_to_run=guessed is not None,
        )

    def run_panel(self, buttons: Sequence[object], now: Shown, guessed: str | None, chosen: object = None) -> mo.Html:
        """The card to run it with; `chosen` is a control with which its machine is chosen, where there is one."""
        usual = machine(DEFAULT_MACHINE)
        its_price = f"{dollars(usual.usd_per_hour or 0)} an hour"
        said = self.experiment.on or f"Simulated {usual.card.name} · {usual.name} · {its_price}"
        return run_panel(
            buttons,
            progress_line(self.runner.caught_up(now), self.experiment.what),
            machine=said if chosen is None else chosen,
            hint=self.experiment.hint if guessed is not None else CLOSED,
            trouble=self.runner.trouble or self.store.trouble,
        )

    def recall(self, phase: Phase) -> mo.Html | None:
        """Two questions from earlier lessons, until the run is over."""
        return recall(self.taught.RECALL) if phase in ("ready", "queued", "running") else None

    # --- results -----------------------------------------------------------------------------------------------------

    def kept(self, phase: Phase) -> Kept:
        """What the newest run left, on this visit or an earlier one; nothing while one is under way."""
        return kept_tapes(self.runner.result, phase)

    def decide(self, outcome: float | None) -> str | None:
        """The option that this outcome of the run makes the answer; None while the run has none.

        From now on the store knows that the answer was shown.
        """
        if outcome is None:
            return None
        self.store.reveal(self.lesson.key, self.question.key)
        return self.question.answer(outcome)

    # --- the reader's own machine ------------------------------------------------------------------------------------

    def own_buttons(self, phase: Phase, params: Mapping[str, Any] | None = None) -> list[mo.ui.button]:
        """The button that measures on the reader's machine, and Stop while it does."""
        return self.own.buttons(phase, params or {})

    def own_section(self, buttons: Sequence[object], now: Shown, kept: Kept) -> mo.Html | None:
        """The card to measure with, and what was measured beside the same simulated; nothing before the run."""
        assert isinstance(self.own, OwnMachine)
        return self.own.section(buttons, now, kept) if kept.tapes else None

    # --- exercises and end -------------------------------------------------------------------------------------------

    def answer_controls(self, one: Exercise, case: Case | None) -> tuple[Any, mo.ui.run_button | None]:
        """What an exercise is answered with, and its Check button; None for both while the run has no case for it."""
        return (None, None) if case is None else (answer_control(one, self.store, case), check_button())

    def exercise_card(
        self, one: Exercise, control: Any, check: mo.ui.run_button | None, case: Case | None
    ) -> object | None:
        """The exercise with its verdict; nothing while the run has no case for it."""
        return None if case is None or check is None else exercise_card(one, control, check, case, self.store)

    def ending(self, kept: Kept, sentence: str) -> mo.Html | None:
        """After the run: the sentence to take away, the way on, and an instructor's notes."""
        return ending(self.lesson, sentence, self.taught.NOTES) if kept.tapes else None
