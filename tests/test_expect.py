import pytest

from gpututor.errors import ExpectationError
from gpututor.expect import Band, around, compare, compare_ledgers, differences, of_runs
from gpututor.expect.explanations import LESS, MORE
from gpututor.ledger import Account, charge
from tests.draw import US, draw

BAND = Band(8e6, 10e6, 12e6, "ns", "the cost model")


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [(10e6, "within"), (8e6, "within"), (12e6, "within"), (7.9e6, "outside"), (12.1e6, "outside"), (None, "not known")],
)
def test_the_ends_belong_to_the_band(seen, verdict):
    assert compare(BAND, seen).verdict == verdict


def test_a_comparison_names_both_values_the_room_and_its_source():
    text = compare(BAND, 15e6).text.replace("\u00a0", " ")

    assert text == "15.0 ms seen, 10.0 ms expected (8.00 ms to 12.0 ms by the cost model): outside the band"


def test_a_band_with_swapped_ends_is_refused():
    with pytest.raises(ExpectationError, match="swapped"):
        Band(12.0, 10.0, 8.0, "ns", "nobody")


def test_an_error_share_is_a_ratio_either_way():
    band = around(100, 0.25, "ns", "model")

    assert (band.low, band.high) == (80, 125)


def test_a_negative_error_is_refused():
    with pytest.raises(ExpectationError, match="0 or more"):
        around(100, -0.1, "ns", "model")


def test_repeated_runs_give_their_median_and_extremes():
    band = of_runs([5, 9, 6], "ns", "this machine")

    assert (band.low, band.expected, band.high, band.source) == (5, 6, 9, "this machine, 3 runs")


def test_a_band_widens_by_a_share_of_the_expected_value():
    wider = BAND.widened(0.1, "5 repeated runs")

    assert (wider.low, wider.high, wider.source) == (7e6, 13e6, "the cost model; 5 repeated runs")


def test_differences_are_sorted_by_size():
    expected = charge(draw(host="IIPS....", gpu="....####", steps="11111111"))
    seen = charge(draw(host="IPSSSS....", gpu="......####", steps="1111111111"))

    assert [(d.account, d.difference_ns) for d in differences(expected, seen)] == [
        (Account.BLOCKING_SYNC, 3 * US),
        (Account.WAITING_FOR_INPUT, -1 * US),
    ]


def test_differences_sum_to_the_difference_in_wall_time():
    expected = charge(draw(host="IIPS....", gpu="....####", steps="11112222"))
    seen = charge(draw(host="IPSSSS....", gpu="......####", steps="1111122222"))

    assert sum(d.difference_ns for d in differences(expected, seen)) == seen.step_ns - expected.step_ns


def test_ledgers_of_different_length_compare_step_by_step():
    one = charge(draw(host="II", gpu="..", steps="11"))
    three = charge(draw(host="IIIIII", gpu="......", steps="112233"))

    assert differences(one, three) == ()


def test_a_slower_step_names_the_account_on_which_the_difference_sits():
    expected = charge(draw(host="II..", gpu="..##", steps="1111"))
    seen = charge(draw(host="IIIIII..", gpu="......##", steps="11111111"))
    both = compare_ledgers(expected, seen, 0.2, "the cost model")

    assert both.wall.verdict == "outside"
    assert both.largest.account is Account.WAITING_FOR_INPUT
    assert both.text.endswith(f"Perhaps {MORE[Account.WAITING_FOR_INPUT][0]}.")


def test_the_account_named_moved_the_way_wall_time_moved():
    expected = charge(draw(host="SSSS....IIIII", gpu="....####.....", steps="1111111111111"))
    seen = charge(draw(host="....SSSSSSSSSS", gpu="####..........", steps="11111111111111"))
    both = compare_ledgers(expected, seen, 0.01, "the cost model")

    assert both.largest.account is Account.BLOCKING_SYNC


def test_a_ledger_with_steps_and_one_without_do_not_compare():
    with pytest.raises(ExpectationError, match="has 1 steps and the seen one 0"):
        differences(charge(draw(gpu="##", steps="11")), charge(draw(gpu="##")))


def test_every_verdict_avoids_judging_the_learner():
    reasons = [text for table in (MORE, LESS) for several in table.values() for text in several]
    texts = [*reasons, *(compare(BAND, seen).text for seen in (None, 1e6, 10e6))]

    assert not any("correct" in text or "wrong" in text for text in texts)
