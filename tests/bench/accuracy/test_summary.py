"""Statistics counted by hand, and pairs that differ in one thing."""

from __future__ import annotations

import pytest

from gpututor.bench.accuracy.fields import fields_of
from gpututor.bench.accuracy.rows import Row
from gpututor.bench.accuracy.summary import report_of, summed_up
from gpututor.bench.accuracy.what_if import what_ifs
from tests.bench.accuracy.made_points import point, row

KEYS = ["n", "skipped", "median_ape", "mape", "bias", "within_20", "utilization_mae_points", "what_if"]


def with_errors(*errors: float) -> list[Row]:
    return [Row(point(f"R{k}"), error=error, predicted=1.0) for k, error in enumerate(errors)]


def test_errors_are_summed_up_by_size_and_bias_by_sign():
    found = summed_up(with_errors(0.10, -0.30, 0.02, 0.06), [])

    assert found.median_ape == pytest.approx(0.08)  # of 2, 6, 10, 30
    assert found.mape == pytest.approx(0.12)  # 48 / 4
    assert found.bias == pytest.approx(-0.03)  # (10 - 30 + 2 + 6) / 4
    assert found.within_20 == pytest.approx(0.75)


def test_twenty_percent_is_within_twenty_percent():
    assert summed_up(with_errors(0.20, -0.20), []).within_20 == 1


def test_utilization_counts_in_points_alone():
    rows = [Row(point("U1"), off_points=-6.0), Row(point("U2"), off_points=10.0), *with_errors(0.5)]
    found = summed_up(rows, [])

    assert found.utilization_mae_points == pytest.approx(8)
    assert (found.n, found.mape) == (3, pytest.approx(0.5))


def test_skipped_rows_are_counted_and_nothing_else():
    found = summed_up([Row(point("S1"), skipped="no such model")], [])

    assert (found.n, found.skipped, found.mape, found.within_20) == (0, 1, None, None)


def pairs(*rows: Row):
    return what_ifs(rows)


def test_a_larger_batch_is_a_what_if():
    # measured 400 -> 600, predicted 500 -> 1000: 1.5 and 2.0
    (found,) = pairs(row(point("A"), 500), row(point("B", batch=64, measured=600.0), 1000))

    assert (found.first, found.second, found.change) == ("A", "B", "batch 8 → 64")
    assert found.measured_ratio == pytest.approx(1.5)
    assert found.predicted_ratio == pytest.approx(2.0)
    assert found.ratio_error == pytest.approx(1 / 3)
    assert found.direction_right is True


def test_times_are_turned_into_rates():
    # 8 pictures in 8 ms, then 16 in 8 ms: twice the rate
    small, large = (point(name, batch=n, unit="ms", measured=8.0) for name, n in (("A", 8), ("B", 16)))
    (found,) = pairs(row(small, 8.0), row(large, 16.0))

    assert found.measured_ratio == pytest.approx(2)
    assert found.predicted_ratio == pytest.approx(1)


def test_the_smaller_batch_comes_first_wherever_it_stands():
    (found,) = pairs(row(point("B", batch=64), 500), row(point("A"), 500))

    assert (found.first, found.second) == ("A", "B")


@pytest.mark.parametrize(
    ("one", "other", "change"),
    [
        ({}, {"n_gpus": 2}, "GPUs 1 → 2"),
        ({}, {"precision": "amp"}, "precision fp32 → amp"),
        ({}, {"precision": "amp", "config": "224px eager NHWC"}, "precision fp32 → amp"),
        ({}, {"config": "224px torch.compile"}, "mode eager → compiled"),
        ({"repo": "a/b"}, {"repo": "a/b", "gpu": "L4"}, "GPU T4 → L4"),
        ({"config": "eager"}, {"batch": 9}, "batch 8 → 9"),  # only one of them says the side
    ],
)
def test_what_makes_a_pair(one, other, change):
    (found,) = pairs(row(point("A", **one), 500), row(point("B", **other), 500))

    assert found.change == change


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"batch": 64, "n_gpus": 2}, id="two things"),
        pytest.param({"config": "160px eager"}, id="the pictures' side"),
        pytest.param({"config": "224px eager NHWC"}, id="the layout"),
        pytest.param({"batch": 64, "repo": "a/b"}, id="another repository"),
        pytest.param({"batch": 64, "framework": "PyTorch 2.4"}, id="another version"),
        pytest.param({"batch": 64, "kind": "train"}, id="training"),
        pytest.param({"batch": 64, "model": "resnet18"}, id="another model"),
    ],
)
def test_what_makes_none(other):
    assert pairs(row(point("A"), 500), row(point("B", **other), 500)) == ()


@pytest.mark.parametrize(
    ("measured", "predicted", "right"),
    [
        (600.0, 550.0, True),
        (300.0, 400.0, True),
        (600.0, 400.0, False),
        (600.0, 510.0, False),  # 2 % is no direction, where 50 % were measured
        (408.0, 900.0, None),  # 2 % measured
    ],
)
def test_the_direction_is_right_when_both_say_faster_or_both_slower(measured, predicted, right):
    (found,) = pairs(row(point("A"), 500), row(point("B", batch=9, measured=measured), predicted))

    assert found.direction_right is right


def report():
    rows = [
        row(point("A"), 500, error=-0.2),
        row(point("B", regime="large", batch=64, measured=600.0), 1000, error=-0.4),
        Row(point("C", regime="large", model="none"), skipped="none of ours"),
    ]
    return report_of(rows)


def test_a_pair_counts_in_the_regime_of_its_second_row():
    found = report()

    assert found.regimes["pictures"].what_if.n == 0
    assert found.regimes["large"].what_if.n == 1
    assert found.total.what_if.direction_right == 1


def test_the_worst_come_first_and_the_skipped_not_at_all():
    assert [one.point.id for one in report().worst()] == ["B", "A"]


def test_json_has_these_keys_and_regimes_the_same():
    fields = fields_of(report())

    assert list(fields) == [*KEYS, "regimes", "rows"]
    assert all(list(regime) == KEYS for regime in fields["regimes"].values())
    assert list(fields["what_if"]) == ["n", "direction_right", "median_ratio_error"]


def test_json_keeps_reasons_sources_and_pairs_with_the_rows():
    by_id = {one["id"]: one for one in fields_of(report())["rows"]}

    assert by_id["C"]["skipped"] == "none of ours"
    assert list(by_id["A"]["source"]) == ["repo", "path", "line", "commit"]
    assert [pair["from"] for pair in by_id["B"]["what_ifs"]] == ["A"]
