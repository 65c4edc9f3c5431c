"""Exercise 1.1: the right bandwidth passes, the usual slips are caught by name, and nothing typed is no mistake."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpututor.exercises import ex01
from gpututor.exercises.form import NOT_ANSWERED
from gpututor.exercises.typed import read_number
from tests.exercises.answers import Answers, Wrong

# 1,000 numbers of 4 bytes, two arrays read and one written, in 120 ns: 12,000 bytes, 100 bytes per nanosecond.
MOVED = ex01.Moved(1_000, 4, 2, 1, 120, 125e9)

SOLUTION = """
def sm_fill(n_blocks, n_sms):
    rounds = -(-n_blocks // n_sms)
    return n_blocks / (rounds * n_sms)
"""
# a drawn card of four SMs: 1, 4, 6 and 8 blocks, counted
FILLED = [(1, 0.25), (4, 1.0), (6, 0.75), (8, 1.0)]

ANSWERS = {
    "1.1": Answers(
        lambda case: str(ex01.Moved(**case["moved"]).gb_per_s),
        (
            Wrong("33.3", "one array"),
            Wrong("66.7", "what is read"),
            Wrong("800", "in bits"),
            Wrong("50", "Count again", hint=1),
        ),
        ex01.bandwidth_case(MOVED),
    ),
    "1.2": Answers(
        SOLUTION,
        (
            Wrong("def sm_fill(n, sms):\n    return min(1, n / sms)", "81 blocks on 80 SMs", hint=2),
            Wrong(SOLUTION.replace("-(-n_blocks // n_sms)", "n_blocks // n_sms + 1"), "80 blocks on 80 SMs", hint=1),
            Wrong("def sm_fill(n, sms):\n    return n / sms", "81 blocks on 80 SMs", hint=1),
            Wrong("def sm_fill(n, sms):\n    return 'full'", "asked for a number"),
        ),
        ex01.waves_case(FILLED, 4),
    ),
}


def grade(typed):
    return ex01.grade(typed, MOVED)


@pytest.mark.parametrize("typed", ["100", "100.0", " 100 GB/s", "1e2", "101.9", "98.1", "100,0"])
def test_the_bandwidth_is_right_within_the_stated_tolerance(typed):
    assert grade(typed).state == "right"


@pytest.mark.parametrize("typed", ["102.1", "97.9"])
def test_outside_the_tolerance_it_is_not(typed):
    assert grade(typed).state == "wrong"


def test_a_right_answer_hears_its_share_of_the_data_sheet():
    assert "80\u00a0% of the 125\u00a0GB/s" in grade("100").text


@pytest.mark.parametrize("typed", ["", "   "])
def test_nothing_typed_reads_not_answered_yet(typed):
    assert grade(typed) == NOT_ANSWERED


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        pytest.param("33.3", "one array", id="one array counted"),
        pytest.param("66.7", "what is read", id="the result forgotten"),
        pytest.param("800", "in bits", id="bits for bytes"),
        pytest.param("93.1", "GiB", id="GiB for GB"),
        pytest.param("25", "numbers per second", id="numbers for bytes"),
        pytest.param("0.1", "Three zeros", id="a thousand times too small"),
        pytest.param("100,000", "MB/s", id="MB for GB"),
        pytest.param("1e11", "bytes per second", id="B for GB"),
        pytest.param("0.8", "share of the data sheet", id="a share"),
        pytest.param("80 %", "in percent", id="a percentage"),
    ],
)
def test_a_known_slip_is_told_by_name(typed, said):
    assert grade(typed).state == "wrong"
    assert said in grade(typed).text


def test_more_than_the_card_can_move_is_told():
    assert "more than the 125\u00a0GB/s" in grade("4321").text


def test_an_unexplained_miss_gets_a_nudge_without_the_answer():
    graded = grade("50")

    assert "Count again" in graded.text
    assert "100" not in graded.text


@pytest.mark.parametrize("typed", ["fast", "-3", "GB/s", "1e999x9", "nan", "1.2.3"])
def test_what_is_no_bandwidth_gets_one_sentence(typed):
    assert "is not a number" in grade(typed).text


@pytest.mark.parametrize(
    ("typed", "number"), [("1,234", 1234.0), ("1'234", 1234.0), ("0,125", 0.125), ("12,5", 12.5), ("1 234.5", 1234.5)]
)
def test_numbers_are_read_as_people_write_them(typed, number):
    assert read_number(typed) == number


def test_the_task_names_numbers_time_unit_and_tolerance():
    shown = ex01.BANDWIDTH.asked(ex01.bandwidth_case(MOVED))

    assert all(part in shown for part in ("1,000", "120\u00a0ns", "GB/s", "2\u00a0%"))


def test_the_slips_are_told_apart_from_the_right_answer():
    assert not any(abs(value - MOVED.gb_per_s) <= ex01.TOLERANCE * value for value, _ in MOVED.slips)


def test_on_the_default_run_every_slip_is_told_apart_from_the_others():
    # two arrays of 2^26 numbers, the card's 900 GB/s and 90.5 % of them reached
    moved = ex01.Moved(1 << 26, 4, 2, 1, round(12 * (1 << 26) / (0.905 * 900)), 900e9)
    values = sorted(value for value, _ in moved.slips)

    assert all(b > a * (1 + 2 * ex01.TOLERANCE) for a, b in pairwise(values))


def test_bytes_of_two_arrays_read_and_one_written_make_the_numbers_of_one():
    assert ex01.by_adding(12_000.0, 120, 125e9) == MOVED
