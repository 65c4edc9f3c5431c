"""An exercise's card: what is kept of an answer, and what stands there at the next visit."""

from __future__ import annotations

from types import SimpleNamespace

import marimo as mo
import pytest

from gpututor.exercises.form import Check, Exercise, Judged
from gpututor.exercises.keeping import given, kept_case
from gpututor.page.exercise import answer_control, exercise_card
from gpututor.store import Store

CASE = {"words": {"what": "the answer"}}


def judge(answer, case) -> Judged:
    if answer == "forty":
        return Judged("partial", "Nearly <b>so</b>.", (Check("is a number", True, 0.4), Check("is right", False, 0.6)))
    return Judged("right" if answer == "42" else "wrong", f"You said {answer}.")


NUMBER = Exercise("7.1", "A question", "number", "What is {what}?", ("Think.",), judge, marks=5, unit="units")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Store("ann")


def card(store: Store, answer, *, pressed: bool, one: Exercise = NUMBER) -> str:
    return mo.as_html(
        exercise_card(one, SimpleNamespace(value=answer), SimpleNamespace(value=pressed), CASE, store)
    ).text


def test_before_anything_is_typed_it_is_not_answered(store):
    assert "Not answered yet." in card(store, "", pressed=False)


def test_typing_alone_judges_nothing(store):
    assert "Not answered yet." in card(store, "42", pressed=False)


def test_the_button_does(store):
    assert "Right. " in card(store, "42", pressed=True)


def test_the_verdict_stands_there_at_the_next_visit(store):
    card(store, "42", pressed=True)

    assert "You said 42." in card(Store("ann"), "42", pressed=False)


def test_it_goes_when_the_answer_changes(store):
    card(store, "42", pressed=True)

    assert "Not answered yet." in card(store, "43", pressed=False)


def test_answer_and_marks_are_kept(store):
    card(store, "forty", pressed=True)
    kept = store.get("07", "exercise 7.1")

    assert (kept["answer"], kept["marks"], kept["earned"]) == ("forty", 5, 2.0)


def test_case_and_time_are_kept_beside_the_answer(store):
    card(store, "forty", pressed=True)
    kept = store.get("07", "exercise 7.1")

    assert (kept["case"], kept["at"][-6:]) == (CASE, "+00:00")


def test_the_case_is_kept_as_soon_as_the_exercise_is_shown(store):
    answer_control(NUMBER, store, CASE)

    assert kept_case(Store("ann"), NUMBER) == CASE


def test_what_is_typed_is_kept_without_the_button(store):
    answer_control(NUMBER, store, CASE)._on_change("17")

    assert given(Store("ann"), NUMBER).answer == "17"


def test_what_was_looked_at_is_listed_with_its_part(store):
    shown = card(store, "forty", pressed=True)

    assert "In part. " in shown
    assert "60 of 100" in shown


def test_nothing_that_a_learner_wrote_becomes_markup(store):
    assert "<b>so</b>" not in card(store, "forty", pressed=True)


def test_the_gap_of_the_task_is_filled(store):
    assert "What is the answer?" in card(store, "", pressed=False)


def test_a_judge_that_fails_leaves_the_page_alive(store):
    def broken(answer, case):
        raise KeyError("gone")

    shown = card(store, "1", pressed=True, one=Exercise("7.1", "", "number", "?", ("Think.",), broken))

    assert "could not be drawn" in shown


def test_the_control_holds_what_was_given_last_time(store):
    store.put("07", "exercise 7.1 answer", "17")

    assert answer_control(NUMBER, store, CASE).value == "17"


def test_options_of_the_case_take_the_place_of_the_exercises(store):
    choice = Exercise("7.1", "", "choice", "?", ("Think.",), judge, options=("a", "b"))

    assert list(answer_control(choice, store, {"options": ["b", "c"]}).options) == ["b", "c"]
