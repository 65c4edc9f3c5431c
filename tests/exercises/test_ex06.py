"""Exercises 6.1 and 6.2: solutions, wrong answers, and what the judge makes of what pictures noted."""

from __future__ import annotations

import math

import pytest

from gpututor.exercises import ex06
from tests.exercises.answers import Answers, Wrong

MS = 1e6
SOLUTION = """
from torch.utils.data import DataLoader


def loader(pictures, n_cores):
    return DataLoader(pictures, batch_size=8, shuffle=True, num_workers=n_cores, persistent_workers=True)
"""
TOO_MANY = SOLUTION.replace("=n_cores", "=n_cores + 1")
ANEW = SOLUTION.replace(", persistent_workers=True", "")
ALONE = SOLUTION.replace("num_workers=n_cores, persistent_workers=True", "num_workers=0")

ANSWERS = {
    # 50 ms a batch on a core, 28 ms on the card, so 7 ms on one four times as fast: 50 / 7 = 7.14, so 8 workers
    "6.1": Answers(
        lambda case: str(max(1, math.ceil(case["load_ns"] / case["faster_ns"]))),
        (
            Wrong("7", "Round up"),
            Wrong("7.14", "Workers come whole"),
            Wrong("2", "enough for the card you have"),  # 50 / 28 = 1.8
            Wrong("9", "Don't add the two"),  # 57 / 7 = 8.1
            Wrong("3", "how many cores are here"),
            Wrong("20", "Not that many", hint=2),
        ),
        ex06.case_enough(50 * MS, 28 * MS, 3),
    ),
    "6.2": Answers(
        SOLUTION,
        (
            Wrong(TOO_MANY, "not the number of cores", hint=2, earned=0.7),
            Wrong(ANEW, "other processes than the first", hint=3, earned=0.8),
            Wrong(ALONE, "not the number of cores", hint=2, earned=0.5),
            Wrong("def loader(pictures, n_cores):\n    return 7\n", "not iterable"),
        ),
    ),
}


def noted(n_pictures, n_cores, *, batch=ex06.BATCH, threads=1, second=None, reverse=True):
    """What pictures note when worker k of process number 100 + k reads every n-th batch."""
    cuts = [list(range(n_pictures))[k : k + batch] for k in range(0, n_pictures, batch)]

    def epoch(first_process):
        return [[[k, first_process + j % n_cores, threads] for k in cut] for j, cut in enumerate(cuts)]

    again = epoch(100 if second is None else second)
    return {"epochs": [epoch(100), again[::-1] if reverse else again], "own": 1}


def judged(**changed):
    return ex06.judge_noted([noted(*case, **changed) for case in ex06.CASES])


def test_drawn_notes_of_a_good_loader_are_right():
    assert judged().state == "right"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        pytest.param({"batch": 12}, "every picture once", id="batches too large"),
        pytest.param({"reverse": False}, "the same order", id="not shuffled"),
        pytest.param({"second": 200}, "other processes than the first", id="workers started anew"),
        pytest.param({"threads": 2}, "more threads than one", id="threads"),
    ],
)
def test_one_fault_is_named_and_costs_its_share_alone(changed, says):
    verdict = judged(**changed)

    assert says in verdict.text
    assert verdict.state == "partial"
    assert sum(not check.holds for check in verdict.checks) == 1


def test_two_batches_leave_the_third_worker_without_work():
    verdict = judged(batch=36)

    assert [check.holds for check in verdict.checks] == [False, True, False, True, True]


@pytest.mark.parametrize("made_up", [[], [{}, {}], [{"epochs": [[7]], "own": 1}] * 2, [{"epochs": 3, "own": 1}] * 2])
def test_made_up_notes_are_no_batches(made_up):
    assert "not batches" in ex06.judge_noted(made_up).text


def test_what_was_counted_for_the_drawn_case_is_right():
    assert ex06.ENOUGH.check("8", ANSWERS["6.1"].case).state == "right"
