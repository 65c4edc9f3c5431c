"""What is kept of an exercise: case, answer and verdict, by page and command alike."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from gpututor.exercises.form import NOT_ANSWERED, Check, Exercise, Judged
from gpututor.exercises.keeping import (
    Given,
    given,
    keep_case,
    keep_given,
    keep_judged,
    kept_case,
    kept_judged,
    next_hint,
)
from gpututor.exercises.registry import EXERCISES
from gpututor.store import Store
from tests.exercises.test_every_exercise import answers

ONE = Exercise("7.1", "A question", "number", "?", ("a", "b", "c"), lambda answer, case: NOT_ANSWERED, marks=5)
CASE = {"points": [[1, 2.5]], "words": {"what": "it"}}
HALF = Judged("partial", "Nearly.", (Check("is a number", True, 0.4), Check("is right", False, 0.6)))


class Clock:
    """Says a time one minute later at each look."""

    def __init__(self):
        self.at = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)

    def __call__(self):
        self.at += timedelta(minutes=1)
        return self.at


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Store("ann", now=Clock())


def test_the_case_last_shown_is_kept(store):
    keep_case(store, ONE, {"old": 1})
    keep_case(store, ONE, CASE)

    assert kept_case(store, ONE) == CASE


def test_an_empty_case_pushes_out_none(store):
    keep_case(store, ONE, CASE)
    keep_case(store, ONE, {})

    assert kept_case(store, ONE) == CASE


def test_the_same_case_is_not_written_again(store):
    keep_case(store, ONE, CASE)
    before = store.path.stat().st_mtime_ns, store.path.stat().st_ino
    keep_case(store, ONE, {"words": {"what": "it"}, "points": [(1, 2.5)]})

    assert (store.path.stat().st_mtime_ns, store.path.stat().st_ino) == before


def test_an_answer_is_kept_with_its_case_and_time(store):
    keep_given(store, ONE, "42", CASE)

    assert given(store, ONE) == Given("42", CASE, "2026-01-02T12:01:00+00:00")


def test_the_same_answer_again_keeps_its_first_time(store):
    keep_given(store, ONE, "42", CASE)
    keep_given(store, ONE, "42", CASE)

    assert given(store, ONE).at == "2026-01-02T12:01:00+00:00"


def test_the_same_answer_to_another_case_is_another_one(store):
    keep_given(store, ONE, "42", CASE)
    keep_given(store, ONE, "42", {"other": 1})

    assert given(store, ONE) == Given("42", {"other": 1}, "2026-01-02T12:02:00+00:00")


def test_a_verdict_comes_back_with_what_it_is_about(store):
    keep_judged(store, ONE, "42", CASE, HALF)
    kept = kept_judged(store, ONE)

    assert (kept.given.answer, kept.given.case, kept.judged, kept.earned) == ("42", CASE, HALF, 2.0)


def test_a_verdict_on_nothing_is_not_kept(store):
    keep_judged(store, ONE, "", CASE, NOT_ANSWERED)

    assert kept_judged(store, ONE) is None


def test_what_was_judged_is_the_answer_given(store):
    keep_judged(store, ONE, "42", CASE, HALF)

    assert given(store, ONE).answer == "42"


@pytest.mark.parametrize("damaged", [3, [], {}, {"answer": "1"}, {"answer": "1", "state": "right", "text": ""}])
def test_a_verdict_that_cannot_be_read_is_none(store, damaged):
    store.put("07", ONE.key, damaged)

    assert kept_judged(store, ONE) is None


def test_the_judges_hint_comes_first(store):
    assert next_hint(store, ONE, Judged("wrong", "", hint=2)) == 2


def test_after_it_comes_the_next_one_and_the_last_one_stays(store):
    asked = [next_hint(store, ONE, Judged("wrong", "", hint=2)) for _ in range(4)]

    assert asked == [2, 3, 3, 3]


def test_without_the_judges_hint_they_come_in_order(store):
    assert [next_hint(store, ONE, Judged("wrong", "")) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("one", EXERCISES, ids=lambda one: one.number)
def test_what_needs_no_run_is_solved_without_a_case_and_the_rest_is_not(one):
    case = answers(one.number).case

    assert one.needs_run == bool(set(case) - {"machine"})
