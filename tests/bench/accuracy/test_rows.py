"""A row holds our figure in the point's unit and its error on time; what doesn't fit the card is said."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from gpututor.bench.accuracy.rows import Row, row_of, same_unit, unit_of
from gpututor.ledger import Account
from tests.bench.accuracy.made_points import point, predicting


def test_half_the_rate_is_twice_the_time():
    # 8 pictures in 40 ms are 200 a second, where 400 were measured
    row = row_of(point(), predicting(step_s=0.040))

    assert row.predicted == pytest.approx(200)
    assert row.error == pytest.approx(1.0)


def test_a_step_time_is_compared_as_it_is():
    row = row_of(point(unit="ms", metric="step time", measured=50.0), predicting(step_s=0.040))

    assert row.predicted == pytest.approx(40)
    assert row.error == pytest.approx(-0.2)


def test_all_cards_count_for_a_rate():
    # 2 cards of 8 pictures in 40 ms
    row = row_of(point(n_gpus=2), predicting(step_s=0.040))

    assert row.predicted == pytest.approx(400)
    assert row.error == pytest.approx(0)


def test_with_units_that_differ_the_step_times_are_compared():
    row = row_of(point(unit="frames/s", measured=300.0, step_ms=32.0), predicting(step_s=0.040))

    assert row.error == pytest.approx(0.25)
    assert row.predicted == pytest.approx(300 / 1.25)
    assert "step times are compared" in row.notes[-1]


def test_with_units_that_differ_and_no_step_time_the_row_is_skipped():
    row = row_of(point(unit="frames/s"), predicting(step_s=0.040))

    assert row.skipped == "the point counts frames/s, resnet50 counts img, and the point has no step time"


def test_utilization_is_off_in_points_and_has_no_error_of_time():
    # 6 of 8 microseconds: 75 %
    busy = point(metric="nvsmi_util", measured=85.0, unit="% of time")
    row = row_of(busy, predicting(step_s=0.040, gpu="######.."))

    assert row.predicted == pytest.approx(75)
    assert row.off_points == pytest.approx(-10)
    assert row.error is None


def test_the_kind_of_kernels_that_takes_most_is_named():
    row = row_of(point(), predicting(step_s=0.040, gpu="####...."))

    assert row.kernels == {"convolutions": 0.5}
    assert row.suspects.endswith("convolutions 50\xa0% of the step")


def test_the_useful_account_is_no_suspect():
    shares = {Account.USEFUL: 0.7, Account.MEMORY_BOUND: 0.2, Account.LATENCY_BOUND: 0.1}

    assert Row(point(), accounts=MappingProxyType(shares)).largest == {
        "memory-bound": 0.2,
        "latency and below peak": 0.1,
    }


def test_a_batch_too_big_for_the_card_is_predicted_with_more_memory_and_says_so():
    # one 64-channel map of 112 x 112 in fp32 is 3.2 MB a picture: 8,192 pictures are beyond a T4's 16 GiB
    row = row_of(point(model="resnet18", batch=8192))

    assert row.skipped is None
    assert "the card has 16 GiB; predicted as if it had more" in row.notes[-1]
    assert float(row.notes[-1].split("finds ")[1].split(" ")[0]) > 16


def test_a_setting_that_the_workload_refuses_is_skipped_with_its_words():
    row = row_of(point(model="optimizer_step", kind="infer", unit="ms"))

    assert row.skipped is not None
    assert "is not run as 'infer'" in row.skipped


@pytest.mark.parametrize(("text", "unit"), [("img/s", "img"), ("sequences/sec", "seq"), ("tok/s", "tok"), ("x", "x")])
def test_a_unit_goes_by_several_names(text, unit):
    assert unit_of(text) == unit


@pytest.mark.parametrize(
    ("measured", "counted", "same"),
    [("mels/s", "frame", True), ("items/s", "sample", True), ("items/s", "img", False), ("images/s", "img", True)],
)
def test_items_are_what_a_workload_for_speech_counts(measured, counted, same):
    assert same_unit(measured, counted) is same
