"""Exercises 18.1 and 18.2: solutions, wrong answers, and what the drawn histories hold."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from gpututor.exercises import ex18
from gpututor.exercises.ex18 import OPTIONS, SLOWER, WHY, asked_episode, case_why, history_of
from gpututor.experiments.nights import Cause, Episode, episodes
from tests.exercises.answers import Answers, Wrong

SEED = 100_018
HEAT = next(each for each in episodes(SEED) if each.cause is Cause.HEAT)
CASE = case_why(SEED, HEAT, "g4dn.xlarge", "T4", [("a step", "4.2 ms", "5.0 ms"), ("driver", "550.54", "550.54")])


def planted_option(case):
    cause = next(each.cause for each in episodes(case["seed"]) if each.first == case["first"])
    return OPTIONS[cause]


SOLUTION = """
from statistics import median

def slower(nights):
    sample = [night["step_ms"] / night["n_samples"] for night in nights]
    usual = median(sample[:8])
    out = [each > 1.05 * usual for each in sample]
    around = [False, *out, False]
    return [night["number"] for k, night in enumerate(nights) if out[k] and (around[k] or around[k + 2])]
"""
BY_STEPS = SOLUTION.replace('night["step_ms"] / night["n_samples"]', 'night["step_ms"]')
ALONE_TOO = SOLUTION.replace(" and (around[k] or around[k + 2])", "")
TOO_WIDE = SOLUTION.replace("1.05", "1.12")
ALL_OF_THEM = "def slower(nights):\n    return [night['number'] for night in nights]\n"
NONE_OF_THEM = "def slower(nights):\n    return []\n"

ANSWERS = {
    "18.1": Answers(
        planted_option,
        (
            Wrong(OPTIONS[Cause.LOADER], "wait for input", hint=1),
            Wrong(OPTIONS[Cause.DRIVER], "stand in its line", hint=1),
            Wrong(OPTIONS[Cause.READS], "wait for the card more often", hint=1),
            Wrong(OPTIONS[Cause.BATCH], "more samples than before", hint=1),
            Wrong(OPTIONS[Cause.CHANCE], "in the same direction", hint=1),
        ),
        CASE,
    ),
    "18.2": Answers(
        SOLUTION,
        (
            Wrong(BY_STEPS, "who for samples", hint=2, earned=0.75),
            Wrong(ALONE_TOO, "stands alone", hint=3, earned=0.75),
            Wrong(TOO_WIDE, "limit is too wide", hint=1, earned=0.75),
            Wrong(ALL_OF_THEM, "in which nothing had changed", hint=1),
            Wrong(NONE_OF_THEM, "After a sudden change", hint=1),
            Wrong("def slower(nights):\n    return 'many'\n", "list of numbers"),
        ),
    ),
}


@pytest.mark.parametrize("cause", OPTIONS)
def test_each_cause_that_lasts_is_right_where_it_was_planted_and_chance_never_is(cause):
    found = [each for each in episodes(SEED) if each.cause is cause]
    judged = [WHY.check(OPTIONS[cause], case_why(SEED, each, "T4", "T4", [])).state for each in found]

    assert judged == ([] if cause is Cause.CHANCE else ["right"])


def test_the_case_says_nothing_of_what_was_planted():
    assert set(CASE) == {"seed", "first", "machine", "words", "options"}
    assert sorted(CASE["options"]) == sorted(OPTIONS.values())


def test_a_case_of_nights_that_nobody_drew_is_told_so():
    assert "none of ours" in WHY.judge(OPTIONS[Cause.HEAT], CASE | {"first": 39}).text


def test_who_has_no_longer_steps_is_asked_nothing():
    assert asked_episode(1, []) is None


def test_which_nights_are_asked_about_hangs_on_the_seed():
    asked = Counter(asked_episode(seed, [Episode(c, k, k) for k, c in enumerate(Cause)]).cause for seed in range(300))

    assert set(asked) == set(Cause)


def test_a_history_is_the_same_for_the_same_seed_and_another_for_another():
    assert history_of("a") == history_of("a")
    assert history_of("a").nights != history_of("b").nights


@pytest.mark.parametrize("seed", range(20))
def test_what_is_planted_is_as_much_slower_as_it_should_be(seed):
    history = history_of(seed)
    sample = {night["number"]: night["step_ms"] / night["n_samples"] for night in history.nights}
    usual = sorted(sample[n] for n in range(1, ex18.N_FIRST + 1))[ex18.N_FIRST // 2]
    longer = {n: each / usual - 1 for n, each in sample.items()}
    of = history.numbers

    assert min(longer[n] for n in of["sudden"] | of["creep"] | of["half"] | of["odd"]) > ex18.LIMIT
    assert max(longer[n] for n in of["quiet"] | of["double"]) < ex18.LIMIT


def test_a_halved_batch_makes_shorter_steps_and_a_doubled_one_longer():
    history = history_of(3)
    step = {night["number"]: night["step_ms"] for night in history.nights}

    assert max(step[n] for n in history.numbers["half"]) < step[1] < min(step[n] for n in history.numbers["double"])


def test_odd_nights_stand_alone():
    for seed in range(20):
        of = history_of(seed).numbers
        assert len(of["odd"]) == 2
        assert all({n - 1, n + 1} <= of["quiet"] for n in of["odd"])


def test_the_starter_earns_nothing():
    assert SLOWER.judge(ex18.STARTER, {}).earned_share == 0


def test_code_that_gives_nothing_reads_not_answered_yet():
    assert SLOWER.check("def slower(nights):\n    pass\n", {}).state == "unanswered"


def test_hidden_histories_are_solved_by_the_solution():
    for k in range(3):
        assert SLOWER.check(SOLUTION, SLOWER.hidden(random.Random(k))).earned_share == 1
