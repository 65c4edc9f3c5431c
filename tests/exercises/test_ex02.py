"""Exercises 2.1 and 2.2: the solution passes, the starter is blank, and the usual slips are caught by name."""

from __future__ import annotations

import pytest

from gpututor.exercises import ex02
from tests.exercises.answers import Answers, Wrong

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


CASE_1 = ex02.fewer_case(30_000, 4_000)  # 4 of 30 µs before; glued, 12 of 30

ANSWERS = {
    "2.1": Answers(
        lambda case: str(100 * min(1.0, 3 * case["kernel_ns"] / case["host_ns"])),
        (
            Wrong("13.3", "as busy as before"),
            Wrong("28.6", "adds the two times"),  # 12 / (30 + 12)
            Wrong("0.4", "a share"),
            Wrong("75", "Not that busy", hint=1),
        ),
        CASE_1,
    ),
    "2.2": Answers(
        SOLUTION,
        (
            Wrong(NOTHING_OVERLAPS, "counted on paper", hint=1),
            Wrong(MEAN_FORMULA, "counted on paper", hint=1),
            Wrong("def busy_share(h, k):\n    return 0.5\n", "counted on paper", hint=1),
        ),
        ex02.queue_case(KERNELS_US, PRICED),
    ),
}


def judged(code):
    return ex02.QUEUE.check(code, ANSWERS["2.2"].case)


def test_a_wrong_answer_is_drawn_before_it_is_judged():
    assert len(judged(NOTHING_OVERLAPS).theirs) == len(PRICED)


def test_three_glued_kernels_of_four_microseconds_fill_twelve_of_thirty():
    assert ex02.FEWER.check("40 %", CASE_1).state == "right"


def test_a_card_that_is_busy_all_the_time_stays_so():
    case = ex02.fewer_case(10_000, 20_000)

    assert ex02.FEWER.check("100", case).state == "right"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def busy_share(h, k):\n    return hots\n", "hots"),
        ("def busy_share(h, k):\n    return 'busy'\n", "asked for a number"),
        ("def other(h, k):\n    return 1\n", "busy_share"),
        ("def busy_share(h, k):\n    while True: pass\n", "3 s"),
    ],
    ids=["a name error", "a text", "another function", "no end"],
)
def test_code_that_gives_no_number_gets_one_sentence(code, said):
    graded = judged(code)

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
