"""Judging what is typed or chosen."""

from __future__ import annotations

import pytest

from gpututor.exercises.typed import judge_choice, judge_number, near, read_number

SLIPS = ((30.0, "That is thirty."), (61.0, "Too near to be told apart."))
WHY = {"the loader": "Right: it waits for input.", "the card": "The card waits, it isn't the one that is slow."}


def judged(typed: str):
    return judge_number(typed, 60.0, tolerance_share=0.02, said="Sixty.", slips=SLIPS, otherwise="No.", hint=2)


@pytest.mark.parametrize(
    ("text", "number"), [("7 pictures", 7), ("3.5×", 3.5), ("12 µs", 12), ("-1", -1), ("40 %", 40)]
)
def test_a_unit_behind_the_number_is_fine(text, number):
    assert read_number(text) == number


@pytest.mark.parametrize("text", ["", "seven", "1.2.3", "--1", "7 to 8"])
def test_what_is_no_number_is_none(text):
    assert read_number(text) is None


@pytest.mark.parametrize("typed", ["60", "58.9", "61.1"])
def test_within_the_tolerance_it_is_right(typed):
    assert judged(typed).text == "Sixty."


def test_a_slip_gets_its_own_sentence_and_no_hint():
    assert (judged("30").text, judged("30").hint) == ("That is thirty.", None)


def test_another_miss_gets_the_hint():
    assert (judged("45").text, judged("45").hint) == ("No.", 2)


def test_the_readers_number_stands_beside_ours():
    assert (judged("45").theirs, judged("45").ours) == (((0.0, 45.0),), ((0.0, 60.0),))


def test_near_is_a_share_of_the_value():
    assert near(-98, -100, 0.02)
    assert not near(-97, -100, 0.02)


def test_the_right_option_is_the_one_that_the_run_decided():
    assert judge_choice("the loader", "the loader", WHY).state == "right"


def test_another_option_hears_why_it_is_not():
    told = judge_choice("the card", "the loader", WHY, hint=3)

    assert (told.state, told.hint) == ("wrong", 3)
    assert "isn't the one" in told.text
