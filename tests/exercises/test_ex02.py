"""Exercise 2.1: the solution passes, the starter is blank, and the usual slips are caught by name."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex02

KERNELS_US = [2.0, 5.0, 3.0]
PRICED = [(10.0, 0.3), (2.0, 0.7)]

SOLUTION = """
def busy_share(host_us, kernels_us):
    launched = free = 0.0
    for k in kernels_us:
        launched += host_us
        free = max(launched, free) + k
    return sum(kernels_us) / free
"""
NOTHING_OVERLAPS = """
def busy_share(host_us, kernels_us):
    return sum(kernels_us) / (host_us * len(kernels_us) + sum(kernels_us))
"""
MEAN_FORMULA = """
def busy_share(host_us, kernels_us):
    k = sum(kernels_us) / len(kernels_us)
    return k / max(host_us, k)
"""


def state(code):
    return ex02.grade(code, KERNELS_US, PRICED).state


def test_the_solution_is_right():
    assert state(SOLUTION) == "right"


@pytest.mark.parametrize("code", [ex02.STARTER, "def busy_share(host_us, kernels_us):\n    return None\n"])
def test_an_untouched_one_reads_not_answered_yet(code):
    assert ex02.grade(code, KERNELS_US, PRICED).text == "Not answered yet."


@pytest.mark.parametrize(
    "code",
    [NOTHING_OVERLAPS, MEAN_FORMULA, "def busy_share(h, k):\n    return 0.5\n"],
    ids=["host and kernels added", "the mean formula", "a constant"],
)
def test_a_wrong_answer_is_told_with_its_first_miss(code):
    graded = ex02.grade(code, KERNELS_US, PRICED)

    assert graded.state == "wrong"
    assert "counted on paper" in graded.text
    assert len(graded.theirs) == len(PRICED)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def busy_share(h, k):\n    return hots\n", "hots"),
        ("def busy_share(h, k):\n    return 'busy'\n", "not a number"),
        ("def other(h, k):\n    return 1\n", "busy_share"),
        ("def busy_share(h, k):\n    while True: pass\n", "3 s"),
    ],
    ids=["a name error", "a text", "another function", "no end"],
)
def test_code_that_gives_no_number_gets_one_sentence(code, said):
    graded = ex02.grade(code, KERNELS_US, PRICED)

    assert graded.state == "wrong"
    assert said in graded.text


def test_the_counted_cases_follow_from_the_rule():
    # an independent reading: microsecond by microsecond on a grid of whole microseconds
    for host, kernels, counted in ex02.CASES:
        done_at = [int(host) * (i + 1) for i in range(len(kernels))]
        now = busy = running = 0
        queue = list(zip(done_at, map(int, kernels), strict=True))
        while queue or running:
            if not running and queue and queue[0][0] <= now:
                running = queue.pop(0)[1]
            busy += running > 0
            running = max(0, running - 1)
            now += 1

        assert busy / now == pytest.approx(counted)
