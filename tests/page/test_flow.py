"""What every lesson has: the guess comes first, the run decides the answer, exercises wait for their case."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import marimo as mo
import pytest

import gpututor.page as gt
from gpututor.exercises.form import Exercise, Judged
from gpututor.page.course import lesson
from gpututor.paths import data_dir
from gpututor.results import StoredResult
from gpututor.store import Store

RESULT = StoredResult(data_dir() / "recordings", "done", "x:y", {}, {"tape": "seq2seq.tape.gz"}, "", "", 1, 1)
KEPT = gt.Kept({"tape": data_dir() / "recordings" / "seq2seq.tape.gz"}, result=RESULT)
QUESTION = gt.Question("bigger", "It gets…", {"slower": lambda times: times < 1, "faster": lambda times: times >= 1})
TAUGHT = SimpleNamespace(RECALL=(("What was it?", "That."), ("And then?", "This.")), NOTES="Ask first.")
NUMBER = Exercise("3.1", "A question", "number", "How many?", ("Think.",), lambda answer, case: Judged("right", "Yes."))


@dataclass
class Started:
    """In the place of a runner: notes what was started."""

    asked: list = field(default_factory=list)
    trouble: str = ""
    result: StoredResult | None = None

    def start(self, experiment, params, *, budget_s):
        self.asked.append((experiment, params, budget_s))

    def stop(self):
        self.asked.append("stop")

    def caught_up(self, now):
        return now


@pytest.fixture
def flow(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    monkeypatch.setattr(mo, "query_params", dict)
    monkeypatch.setattr("gpututor.page.links.mo.running_in_notebook", lambda: False)
    experiment = gt.Experiment("a:run", "Train it", "a:measure", "sentence", 7.0, hint="Keep it quiet.")
    made = gt.Flow(lesson(3), QUESTION, experiment, TAUGHT)
    made.runner = Started()
    return made


def text(shown) -> str:
    return mo.as_html(shown).text


# --- guess -----------------------------------------------------------------------------------------------------


def test_before_the_run_the_card_asks(flow):
    guess = flow.guess_control("ready")

    assert "Your guess first" in text(flow.guess_card("ready", guess, None))


def test_a_choice_is_kept_at_once(flow):
    flow.guess_control("ready")._on_change("faster")

    assert flow.store.tries("03", "bigger")[-1].answer == "faster"


def test_once_it_runs_the_card_says_what_was_guessed_and_what_it_was(flow):
    flow.store.guess("03", "bigger", "slower")
    said = text(flow.guess_card("done", flow.guess_control("done"), "faster"))

    assert "<b>slower</b>" in said
    assert "<b>faster</b>" in said


def test_the_run_decides_the_answer(flow):
    assert (flow.decide(0.5), flow.decide(2.0), flow.decide(None)) == ("slower", "faster", None)


# --- run -------------------------------------------------------------------------------------------------------


def test_without_a_guess_the_button_is_closed(flow):
    (button,) = flow.run_buttons("ready", None)

    assert button._component_args["disabled"]
    assert "Opens once you have guessed." in text(flow.run_panel([button], gt.Shown("ready"), None))


def test_with_a_guess_the_button_runs_the_experiment(flow):
    (button,) = flow.run_buttons("ready", "faster", {"n": 3})
    button._on_click(None)

    assert flow.runner.asked == [("a:run", {"n": 3}, 7.0)]
    assert "Keep it quiet." in text(flow.run_panel([button], gt.Shown("ready"), "faster"))


def test_the_panel_says_what_it_runs_on(flow):
    assert "V100" in text(flow.run_panel([], gt.Shown("ready"), "faster"))
    assert "a list" in text(flow.run_panel([], gt.Shown("ready"), "faster", mo.md("a list")))


@pytest.mark.parametrize(("phase", "there"), [("ready", True), ("running", True), ("done", False), ("failed", False)])
def test_questions_from_earlier_lessons_stand_there_until_the_run_is_over(flow, phase, there):
    assert (flow.recall(phase) is not None) == there


def test_what_the_run_left_is_found(flow):
    flow.runner.result = RESULT

    assert flow.kept("done") == KEPT
    assert flow.kept("running") == gt.Kept()


# --- exercises and end -----------------------------------------------------------------------------------------


def test_an_exercise_without_its_case_is_not_shown(flow):
    assert flow.answer_controls(NUMBER, None) == (None, None)
    assert flow.exercise_card(NUMBER, None, None, None) is None


def test_an_exercise_with_its_case_is_judged(flow):
    control, check = flow.answer_controls(NUMBER, {})
    shown = flow.exercise_card(NUMBER, SimpleNamespace(value="4"), SimpleNamespace(value=True), {})

    assert (type(control), type(check)) == (mo.ui.text, mo.ui.run_button)
    assert "Yes." in text(shown)


def test_the_end_comes_after_the_run(flow):
    assert flow.ending(gt.Kept(), "Take it.") is None
    assert "Take it." in text(flow.ending(KEPT, "Take it."))


def test_the_readers_own_machine_comes_after_the_run(flow):
    flow.own = gt.OwnMachine.__new__(gt.OwnMachine)

    assert flow.own_section([], gt.Shown("ready"), gt.Kept()) is None


# --- what a run left -------------------------------------------------------------------------------------------


def test_a_kept_run_knows_its_tapes_and_its_data():
    assert (KEPT.has("tape"), KEPT.has("tape", "other"), gt.Kept().has("tape")) == (True, False, False)
    assert (KEPT.data["tape"], gt.Kept().data) == ("seq2seq.tape.gz", {})


def test_a_flow_has_its_readers_store(flow):
    assert isinstance(flow.store, Store)
