"""The form of exercises: what makes one whole, what counts as blank, what is earned."""

from __future__ import annotations

import pytest

from gpututor.exercises.form import Check, Exercise, ExerciseError, Judged


def an_exercise(**changed) -> Exercise:
    whole = {
        "number": "4.2",
        "title": "A drawn one",
        "kind": "code",
        "task": "Return {what}.",
        "hints": ("Look.",),
        "judge": lambda answer, case: Judged("right", f"{answer} it is."),
        "starter": "def f():\n    ...\n",
    }
    return Exercise(**(whole | changed))


def test_the_number_says_which_lesson_it_belongs_to():
    assert an_exercise(number="14.1").lesson == 14


def test_gaps_of_the_task_are_filled_from_the_case():
    assert an_exercise().asked({"words": {"what": "the busy share"}}) == "Return the busy share."


@pytest.mark.parametrize("answer", [None, "", " \n", "def f():\n    ...\n", "\ndef f():\n    ..."])
def test_nothing_and_the_starter_are_not_judged(answer):
    assert an_exercise().check(answer, {}).state == "unanswered"


def test_a_changed_starter_is_judged():
    assert an_exercise().check("def f():\n    return 1\n", {}).state == "right"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hints": ()}, "0 hints"),
        ({"hints": ("a", "b", "c", "d")}, "4 hints"),
        ({"starter": ""}, "begins with a starter"),
        ({"kind": "number"}, "begins with a starter"),
        ({"kind": "choice", "starter": ""}, "0 options"),
        ({"options": ("this", "that")}, "2 options"),
    ],
)
def test_one_that_is_not_whole_is_refused(changed, said):
    with pytest.raises(ExerciseError, match=said):
        an_exercise(**changed)


def test_what_holds_earns_its_share():
    checks = (Check("is right", True, 0.5), Check("is quick", False, 0.3), Check("is short", True, 0.2))

    assert Judged("partial", "", checks).earned_share == pytest.approx(0.7)


@pytest.mark.parametrize(("state", "share"), [("right", 1.0), ("wrong", 0.0), ("unanswered", 0.0)])
def test_without_checks_it_is_all_or_nothing(state, share):
    assert Judged(state, "").earned_share == share
