"""Exercises 14.1 and 14.2: solutions, wrong answers, and batches counted by hand."""

from __future__ import annotations

import random

import pytest

from gpututor.exercises import ex14
from gpututor.jobs.lengths import drawn
from tests.exercises.answers import Answers, Wrong

# sorted 10, 20, 30, 40 | 50, 60, 80, 100: filled up to 40 and 100 that is 560 positions for 390 words: 30.36 % padding.
# As they come, 100, 10, 60, 20 and 80, 30, 50, 40: to 100 and 80, 720 positions, 45.83 %.
CASE = ex14.case_left([100, 10, 60, 20, 80, 30, 50, 40])

SOLUTION = """
def make_batches(lengths, budget):
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and lengths[i] * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches + [batch]
"""
LONGEST_FIRST = """
def make_batches(lengths, budget):
    left = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    batches = []
    while left:
        n = budget // lengths[left[0]]
        batches.append(left[:n])
        left = left[n:]
    return batches
"""
WORDS_ONLY = """
def make_batches(lengths, budget):
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if sum(lengths[j] for j in batch) + lengths[i] > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches + [batch]
"""
AS_THEY_COME = """
def make_batches(lengths, budget):
    batches, batch = [], []
    for i in range(len(lengths)):
        if batch and max(lengths[j] for j in batch + [i]) * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(i)
    return batches + [batch]
"""
BY_THE_LONGEST = """
def make_batches(lengths, budget):
    n = budget // max(lengths)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [order[k:k + n] for k in range(0, len(order), n)]
"""
WITHOUT_THE_LAST = SOLUTION.replace("return batches + [batch]", "return batches")
NO_LISTS = "def make_batches(lengths, budget):\n    return 8\n"
NOTHING = "def make_batches(lengths, budget):\n    return []\n"


def left(case):
    """Padding in percent after sorting and cutting, from positions and words."""
    lengths = sorted(case["lengths"])
    half = len(lengths) // 2
    return f"{100 - 100 * sum(lengths) / (half * (lengths[half - 1] + lengths[-1])):.1f} %"


ANSWERS = {
    "14.1": Answers(
        left,
        (
            Wrong("45.8", "cut as they come"),
            Wrong("51.25", "one large batch"),  # 800 positions for 390 words
            Wrong("69.6", "the part that is words"),
            Wrong("43.6", "padding over words"),
            Wrong("5", "Not that much", hint=2),
            Wrong("much", "not a number"),
        ),
        CASE,
    ),
    "14.2": Answers(
        SOLUTION,
        (
            Wrong(WORDS_ONLY, "filled up to its longest text", hint=2, earned=0.2),
            Wrong(AS_THEY_COME, "of the positions are padding", hint=1, earned=0.5),
            Wrong(BY_THE_LONGEST, "batches where", hint=2, earned=0.75),
            Wrong(WITHOUT_THE_LAST, "in no batch", hint=3),
            Wrong(NOTHING, "in no batch", hint=3),
            Wrong(NO_LISTS, "a list of batches", hint=1),
        ),
    ),
}


def test_what_is_left_was_counted_by_hand():
    assert left(CASE) == "30.4 %"


def test_the_longest_first_earns_full_marks_too():
    judged = ex14.BUDGET.check(LONGEST_FIRST, {})

    assert (judged.state, judged.earned_share) == ("right", 1.0), judged.text


def test_the_starter_reads_each_text_once_and_no_more():
    judged = ex14.BUDGET.judge(ex14.STARTER, {})

    assert judged.earned_share == pytest.approx(0.2)


@pytest.mark.parametrize("seed", range(8))
def test_the_solution_is_right_on_cases_that_nobody_saw(seed):
    judged = ex14.BUDGET.check(SOLUTION, ex14.BUDGET.hidden(random.Random(seed)))

    assert judged.state == "right", judged.text


def test_batches_are_counted_as_the_card_reads_them():
    # 2 texts of 4 and 2 are 8 positions, one of 3 is 3: 9 words in 11
    seen = ex14.seen_in([[0, 1], [2]], [4, 2, 3], 8)

    assert seen == ex14.Seen(True, True, pytest.approx(2 / 11), 2)
    assert not ex14.seen_in([[0, 1], [2]], [4, 2, 3], 7).within


@pytest.mark.parametrize("batches", [8, [1, 2], [[0, "1"]], [[0.0, 1]], [[True, 0]], None])
def test_what_is_no_list_of_batches_is_seen(batches):
    assert ex14.seen_in(batches, [4, 2], 8) is None


def test_a_text_twice_or_a_text_that_is_not_there_is_not_once():
    assert not ex14.seen_in([[0, 1, 1]], [4, 2], 100).once
    assert not ex14.seen_in([[0, 2]], [4, 2], 100).once


def test_ours_keeps_to_the_budget():
    lengths = drawn(300, 3)
    seen = ex14.seen_in(ex14.ours(lengths, 2048), lengths, 2048)

    assert seen.once
    assert seen.within


def test_what_is_asked_names_the_lengths_of_the_run():
    asked = ex14.LEFT.asked(CASE)

    assert "The first 8 texts of your run have 100, 10, 60, 20, 80, 30, 50, 40 tokens" in asked
    assert "two batches of 4" in asked


def test_without_texts_nothing_is_asked():
    assert ex14.case_left([]) is None
    assert ex14.case_left([5, 4, 3]) is None
