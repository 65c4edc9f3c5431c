"""Exercise 10.3: loops with a planted cause, which their ledgers agree on, and which no case gives away."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from gpututor.exercises import planted
from gpututor.exercises.planted import CAUSES, HELD_UP, case_of
from gpututor.grading import judging
from gpututor.ledger import Account
from tests.exercises import test_ex10

SEED = 3
ANSWERS = test_ex10.ANSWERS["10.3"]


@pytest.mark.parametrize("machine", ["p3.2xlarge", "g4dn.xlarge", "desktop-RTX-4090"])
def test_what_was_planted_is_what_most_time_goes_to(machine):
    for seed in range(24):
        ledger = planted.recorded(seed, machine).ledger
        most = max((account for account in Account if account is not Account.USEFUL), key=ledger.share)

        assert most is planted.planted(seed).account, seed
        assert ledger.share(most) >= 0.4


def test_every_cause_is_planted_by_some_seed_and_none_by_most():
    planted_by = Counter(planted.planted(seed).account for seed in range(600))

    assert set(planted_by) == {cause.account for cause in CAUSES}
    assert max(planted_by.values()) < 2 * min(planted_by.values())


def test_the_case_holds_no_word_of_the_cause_beyond_its_options():
    case = case_of(SEED)
    shown = json.dumps({key: value for key, value in case.items() if key != "options"})

    assert planted.planted(SEED).account.value not in shown
    assert sorted(case["options"]) == sorted(HELD_UP.options)


def test_the_right_answers_sentence_names_its_account():
    judged = HELD_UP.check(ANSWERS.right_for(ANSWERS.case), ANSWERS.case)

    assert judged.state == "right"
    assert planted.planted(SEED).account.value in judged.text


def test_a_case_of_another_seed_has_another_table():
    assert len({case_of(seed)["words"]["table"] for seed in range(12)}) == 12


def test_graded_it_is_the_seeds_own_truth_that_counts():
    case = json.loads(json.dumps(case_of(SEED)))
    made_up = case | {"options": ["Mine"], "machine": "mine"}
    told = [
        judging.judge_item({"number": "10.3", "answer": answer, "case": each, "hidden": []})
        for answer, each in ((ANSWERS.right_for(case), case), ("Mine", made_up))
    ]

    assert [(each["share"], each["case"]) for each in told] == [(1.0, "ours"), (0.0, "differs")]


def test_neighbours_have_different_loops():
    assert len({planted.seed_for(f"learner {k}") for k in range(50)}) > 45
