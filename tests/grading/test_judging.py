"""Judging one item: hidden cases decide, cases are held against ours, and what can't be judged earns nothing."""

from __future__ import annotations

import hashlib
import json
import random
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from gpututor.errors import IsolationMissing
from gpututor.exercises import ex01
from gpututor.exercises.form import Check, Exercise, Judged
from gpututor.exercises.submission import Answer, Submission
from gpututor.grading import items, judging
from gpututor.grading.handed_in import HandedIn
from gpututor.grading.items import hidden_cases, item
from gpututor.grading.judging import alike, earned, judge_item
from tests.grading.rooms import NOON, room

NOW = datetime(2026, 1, 15, tzinfo=timezone.utc)


def judge_sum(answer, case):
    """Right where the answer, a text of Python, gives the case's sum; a third of the marks for any number."""
    number = case["boom"] if "boom" in case else eval(answer, {"a": case["a"], "b": case["b"]})
    holds = number == case["a"] + case["b"]
    checks = (Check("a number", True, 1 / 3), Check("the sum", holds, 2 / 3))
    return Judged("right" if holds else "partial", f"{number} for {case['a']} and {case['b']}", checks, hint=1)


def draw(rng):
    return {"a": rng.randint(1, 9**9), "b": rng.randint(1, 9**9)}


SUM = Exercise("1.1", "A sum", "code", "Add.", ("Add.",), judge_sum, starter="...", hidden=draw)


def verdict(monkeypatch, answer, case, hidden=(), one=SUM):
    monkeypatch.setattr(judging, "exercise", lambda number: one)
    told = {"number": "1.1", "answer": answer, "case": case, "hidden": list(hidden)}
    return judge_item(json.loads(json.dumps(told)))


SHOWN, HIDDEN = {"a": 2, "b": 3}, [{"a": 4, "b": 5}, {"a": 6, "b": 7}, {"a": -1, "b": 6}]


@pytest.mark.parametrize(
    ("answer", "share", "n_passed", "state"),
    [
        pytest.param("a + b", 1.0, 3, "right", id="right in all"),
        pytest.param("5", 1 / 3 + 2 / 9, 1, "partial", id="knows the shown case by heart: -1 + 6 is 5 too"),
        pytest.param("6", 1 / 3, 0, "partial", id="wrong in all, a number in all"),
    ],
)
def test_hidden_cases_decide_and_their_mean_counts(monkeypatch, answer, share, n_passed, state):
    told = verdict(monkeypatch, answer, SHOWN, HIDDEN)

    assert told["share"] == pytest.approx(share)
    assert (told["hidden"], told["state"]) == ([3, n_passed], state)


def test_an_answer_that_earns_nothing_is_not_tried_on_hidden_cases(monkeypatch):
    asked = []

    def judge(answer, case):
        asked.append(case["a"])
        return Judged("wrong", "")

    told = verdict(monkeypatch, "5", SHOWN, HIDDEN, one=replace(SUM, judge=judge))

    assert (asked, told["share"], told["hidden"]) == ([2], 0.0, [0, 0])


class Sandbox:
    """In the place of the lab's isolation: notes who entered what."""

    def __init__(self):
        self.entered = []

    def __getattr__(self, name):
        if name in ("bubblewrap", "limits_only"):
            return lambda: name

        @contextmanager
        def enter(*how):
            self.entered.append((name, *how))
            yield

        return enter


@pytest.mark.parametrize(("asked", "how"), [("bubblewrap", "bubblewrap"), ("limits", "limits_only")])
def test_all_of_one_learner_is_judged_in_one_sandbox(monkeypatch, asked, how):
    lab = Sandbox()
    for name in ("isolated", "one_learner", "bubblewrap", "limits_only"):
        monkeypatch.setattr(judging, name, getattr(lab, name))
    with judging.shut_in(asked):
        assert lab.entered == [("isolated", how), ("one_learner",)]


def test_without_a_sandbox_only_limits_are_taken_and_only_by_name(monkeypatch):
    def missing():
        raise IsolationMissing("no bubblewrap here")

    monkeypatch.setattr(judging, "bubblewrap", missing)
    with judging.shut_in("limits"):
        pass
    with pytest.raises(IsolationMissing), judging.shut_in("bubblewrap"):
        pass


def test_a_hidden_case_never_leaves_with_the_verdict(monkeypatch):
    told = verdict(monkeypatch, "a + b", SHOWN, [{"a": 73541, "b": 1}])

    assert "73541" not in json.dumps(told)
    assert "73542" not in json.dumps(told)


def test_a_hidden_case_whose_judge_fails_earns_nothing(monkeypatch):
    assert verdict(monkeypatch, "a + b if a < 5 else 1 / 0", SHOWN, HIDDEN)["hidden"] == [3, 2]


@pytest.mark.parametrize(
    ("shown", "hidden", "share"),
    [
        pytest.param(Judged("right", ""), [], 1.0, id="no hidden ones"),
        pytest.param(Judged("right", ""), [Judged("right", ""), Judged("wrong", "")], 0.5, id="half of them"),
        pytest.param(Judged("wrong", ""), [Judged("right", "")], 0.0, id="not even the shown one"),
    ],
)
def test_points_without_checks(shown, hidden, share):
    assert earned(shown, hidden) == share


def test_a_case_that_the_judge_chokes_on_earns_nothing_and_says_so(monkeypatch):
    told = verdict(monkeypatch, "a + b", {"a": "x", "b": []})

    assert (told["state"], told["share"]) == ("wrong", 0.0)
    assert "can't be judged (TypeError)" in told["text"]


@pytest.mark.parametrize(
    ("answer", "whose"), [({"a": 2, "b": 3.0}, "ours"), ({"a": 2, "b": 4}, "differs"), ({"a": 2}, "differs")]
)
def test_our_own_case_is_preferred_and_a_difference_named(monkeypatch, answer, whose):
    one = replace(SUM, case_from=lambda case: {"a": 2, "b": 3, "words": {"b": "three"}})
    told = verdict(monkeypatch, "5", answer, one=one)

    assert (told["case"], told["state"]) == (whose, "right")


def test_without_a_case_of_ours_it_is_the_learners_own(monkeypatch):
    assert verdict(monkeypatch, "5", SHOWN)["case"] == "own"


def test_a_case_of_ours_that_fails_is_none(monkeypatch):
    one = replace(SUM, case_from=lambda case: {}["missing"])

    assert verdict(monkeypatch, "5", SHOWN, one=one)["case"] == "own"


def test_what_a_judge_quotes_is_one_line_of_bounded_length(monkeypatch):
    one = replace(SUM, judge=lambda answer, case: Judged("wrong", "a\n\ud800" + "x" * 10_000))

    text = verdict(monkeypatch, "5", SHOWN, one=one)["text"]
    assert len(text) == judging.MAX_TEXT
    assert text.startswith("a ?x")


def test_an_invented_case_of_a_real_exercise_earns_nothing():
    for case in ({}, {"moved": {}}, {"moved": {"n_numbers": "many"}}, {"moved": [1] * 9}):
        told = judge_item({"number": "1.1", "answer": "100", "case": case, "hidden": []})
        assert (told["state"], told["share"]) == ("wrong", 0.0)


@pytest.fixture
def made(tmp_path):
    return room(tmp_path)


def test_hidden_cases_are_drawn_from_the_seed_as_python_promises(made):
    seeds = [made.secret(f"hidden 1.1 {k}") for k in range(3)]

    assert hidden_cases(SUM, made) == tuple(draw(random.Random(seed)) for seed in seeds)
    assert len(set(seeds)) == 3


def test_a_generator_seeded_with_a_text_draws_what_it_always_drew():
    # as documented for `random.seed` with version 2: the text, then its SHA-512, as one integer
    told = b"abc"
    number = int.from_bytes(told + hashlib.sha512(told).digest(), "big")

    assert random.Random("abc").random() == random.Random(number).random()


def test_another_class_has_other_hidden_cases(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()

    assert hidden_cases(SUM, room(tmp_path / "a")) != hidden_cases(SUM, room(tmp_path / "b"))


def test_an_item_is_named_by_all_that_its_verdict_hangs_on(made, monkeypatch):
    keys = {item(SUM, "1", {}, made, "limits").key, item(SUM, "1", {}, made, "limits").key}
    assert len(keys) == 1

    keys |= {item(SUM, "2", {}, made, "limits").key, item(SUM, "1", {"a": 1}, made, "limits").key}
    keys |= {item(SUM, "1", {}, made, "bubblewrap").key, item(replace(SUM, hidden=None), "1", {}, made, "limits").key}
    keys |= {item(SUM, "1", {}, replace(made, n_hidden=2), "limits").key}
    keys |= {item(SUM, "1", {}, replace(made, seed=b"1" * 32), "limits").key}
    monkeypatch.setattr(items, "version", lambda: "another")
    keys |= {item(SUM, "1", {}, made, "limits").key}
    assert len(keys) == 8


def test_the_name_of_an_item_tells_nothing_of_the_seed(made):
    assert made.seed.hex() not in json.dumps(item(SUM, "1", {}, made, "limits").as_data())


def test_untouched_answers_are_not_judged(made):
    learner = made.learners[0]
    answers = {"1.1": Answer(" ", {}, NOON), "1.2": Answer(ex01.STARTER, {}, NOON), "2.1": Answer("5", {}, NOON)}
    one = HandedIn(learner, "a.json", Submission("007", "", answers, NOON), NOW, is_received=False)

    assert [each.number for each in items.items_of(one, made, "limits")] == ["2.1"]


def test_a_judge_that_does_without_a_case_gets_none_that_is_made_up(tmp_path):
    made = room(tmp_path, lessons="6")
    answers = {"6.2": Answer("x = 1", {"machine": "made up"}, NOON)}
    one = HandedIn(made.learners[0], "a.json", Submission("007", "", answers, NOON), NOW, is_received=False)

    assert [each.case for each in items.items_of(one, made, "limits")] == [{}]


def test_integers_that_no_float_holds_are_compared_as_they_are():
    assert alike(10**400, 10**400)
    assert not alike(10**400, 1.5)
