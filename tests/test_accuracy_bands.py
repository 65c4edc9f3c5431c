"""Bands by regime: which kind a run is, how wide its band, and what the file of bands must hold."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpututor.cards import machine
from gpututor.errors import DataFileError
from gpututor.expect import accuracy
from gpututor.expect.accuracy import (
    ALL,
    BUSY,
    LAUNCH_BOUND,
    PICTURES,
    PRODUCTS,
    RECURRENT,
    SEVERAL_CARDS,
    Accuracy,
    Bands,
    band_for,
    covering,
    error_of,
    from_points,
    regime_of,
    together,
    util_band_for,
)
from gpututor.ledger import charge
from gpututor.timeline import KernelWork
from gpututor.workloads.registry import find
from gpututor.workloads.setting import Setting
from tests.bench.accuracy.made_points import predicting
from tests.draw import draw

FILE = """
[band.all]
n_points = 9
error_share = 0.25
bias_share = -0.1

[utilization]
n_points = 4
points_share = 0.02
"""


@pytest.fixture
def report(monkeypatch):
    """A report of three regimes: 60 % off where launches bound the step, 10 % where the card is busy, 20 % in all."""
    found = {
        name: Accuracy(name, n, error, 0.0)
        for name, n, error in ((LAUNCH_BOUND, 5, 0.6), (BUSY, 20, 0.1), (ALL, 25, 0.2))
    }
    monkeypatch.setattr(accuracy, "bands", lambda: Bands(found, 4, 0.08))


def of_kernels(*kinds: str) -> str:
    """The regime of a run whose kernels are of these kinds, each as long as the others."""
    timeline = draw(gpu="####" * len(kinds))
    whole = timeline.spans[0]
    spans = tuple(
        structs.replace(whole, start_ns=4000 * k, end_ns=4000 * (k + 1), work=KernelWork(kind))
        for k, kind in enumerate(kinds)
    )
    timeline = replace(timeline, spans=spans)
    return regime_of(timeline, charge(timeline))


@pytest.mark.parametrize(
    ("kinds", "regime"),
    [
        (["convolution", "elementwise", "gemm", "convolution"], PICTURES),
        (["gemm", "attention", "convolution"], PRODUCTS),
        (["gemm"] * 9 + ["rnn step"], RECURRENT),
        (["gemm"] * 10 + ["rnn step"], PRODUCTS),
        (["elementwise", "reduction"], ALL),
    ],
)
def test_a_busy_card_is_known_by_the_kinds_of_its_kernels(kinds, regime):
    assert of_kernels(*kinds) == regime


def test_a_run_that_exchanges_data_is_one_of_several_cards():
    timeline = draw(gpu="##MM")

    assert regime_of(timeline, charge(timeline)) == SEVERAL_CARDS


@pytest.mark.parametrize(
    ("host", "gpu", "regime"),
    [
        ("DDDDa.....", ".....aaaaa", LAUNCH_BOUND),
        ("Da........", "..aaaaaaaa", ALL),  # launches are the largest idle account, and only two of ten
        ("IIIIIDDa..", "........aa", ALL),  # waiting for input is larger
    ],
)
def test_launch_bound_is_more_than_a_fifth_and_the_largest_idle_account(host, gpu, regime):
    timeline = draw(host=host, gpu=gpu)

    assert regime_of(timeline, charge(timeline)) == regime


@given(st.lists(st.floats(0, 10), min_size=4, max_size=60))
def test_four_of_five_points_lie_within_the_error(sizes):
    error = covering(sizes)

    assert sum(size <= error for size in sizes) >= 0.8 * len(sizes)


@pytest.mark.parametrize("n", [4, 9, 14, 19])
def test_the_error_is_the_kth_smallest(n):
    assert covering([float(k) for k in range(1, n + 1)]) == 0.8 * (n + 1)


def test_three_points_are_too_few():
    assert from_points({"pictures": [0.1, 0.2, 0.3]}) == {}


def test_error_and_bias_are_those_of_the_points():
    # 9 points: the 8th smallest size is the error, the 5th in order the bias
    logs = [math.log(ratio) for ratio in (0.5, 0.8, 0.9, 0.95, 1.1, 1.2, 1.25, 1.3, 1.4)]

    found = from_points({"x": logs})["x"]

    assert (found.n_points, round(found.error_share, 6), round(found.bias_share, 6)) == (9, 0.4, 0.1)


def test_the_band_is_the_error_of_its_regime_either_way(report):
    band = band_for(100.0, "ns", LAUNCH_BOUND)

    assert (band.low, band.high) == (pytest.approx(62.5), pytest.approx(160.0))
    assert band.source == "our accuracy on 5 published launch-bound runs"


def test_a_regime_without_points_takes_that_of_all_and_says_so(report):
    band = band_for(100.0, "ns", "recurrent")

    assert band.high == pytest.approx(120.0)
    assert band.source == "our accuracy on 25 published runs of all kinds"


def test_a_calibrated_host_takes_the_place_of_the_launch_bound_error(report):
    error, source = error_of(LAUNCH_BOUND, 0.2)

    assert math.log(1 + error) ** 2 == pytest.approx(math.log(1.1) ** 2 + math.log(1.2) ** 2)
    assert "20\N{NO-BREAK SPACE}% for the calibrated host" in source


def test_a_calibrated_host_changes_nothing_where_the_card_is_busy(report):
    assert error_of(BUSY, 0.2) == error_of(BUSY)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=5))
def test_errors_together_are_no_less_than_the_largest_and_no_more_than_all_in_a_row(errors):
    both = together(*errors)

    assert max(errors) - 1e-9 <= both <= math.prod(1 + error for error in errors) - 1 + 1e-9


def test_utilization_is_off_by_points_on_a_busy_card(report):
    band = util_band_for(0.9, BUSY)

    assert (band.low, band.high) == (pytest.approx(0.82), pytest.approx(0.98))


def test_no_band_is_narrower_than_what_two_versions_differ_by(monkeypatch):
    exact = Bands({ALL: Accuracy(ALL, 9, 0.01, 0.0)}, 4, 0.01)
    monkeypatch.setattr(accuracy, "bands", lambda: exact)

    assert band_for(100.0, "ns", ALL).high == pytest.approx(105.0)
    assert util_band_for(0.5, ALL).high == pytest.approx(0.55)


def test_utilization_follows_the_step_where_launches_bound_it(report):
    band = util_band_for(0.4, LAUNCH_BOUND)

    assert (band.low, band.high) == (pytest.approx(0.25), pytest.approx(0.64))


def test_utilization_stays_between_0_and_1(report):
    assert util_band_for(0.99, BUSY).high == 1
    assert util_band_for(0.01, BUSY).low == 0


def test_a_prediction_carries_its_bands(report):
    said = predicting(step_s=0.040)(find("resnet50"), Setting(batch=8), machine("p3.2xlarge"))

    assert (said.regime, said.band.expected) == (PICTURES, pytest.approx(40e6))
    assert said.band.high == pytest.approx(48e6)  # 20 % as in all runs, since no point is of its kind
    assert said.util_band.expected == 1


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(monkeypatch, tmp_path):
    """Writes the file of bands and reads it."""

    def _read(text: str) -> Bands:
        (tmp_path / "bands.toml").write_text(text)
        monkeypatch.setattr(accuracy, "data_dir", lambda: tmp_path)
        return accuracy.bands.__wrapped__()

    return _read


def test_our_own_file_can_be_read_and_has_all_runs():
    assert accuracy.bands().by_regime[ALL].n_points >= 4


def test_what_is_written_is_read(file):
    assert file(FILE).by_regime[ALL] == Accuracy(ALL, 9, 0.25, -0.1)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("[band.all]", "[band.busy]", "band"),
        ("n_points = 9", "n_points = 0", "n_points"),
        ("error_share = 0.25", "error_share = -1", "error_share"),
        ("bias_share = -0.1", 'bias_share = "none"', "bias_share"),
        ("bias_share = -0.1", "bias_share = nan", "bias_share"),
        ("points_share = 0.02", "", "points_share"),
    ],
)
def test_a_damaged_file_names_the_field(file, old, new, field):
    with pytest.raises(DataFileError, match=rf"data/bands\.toml.*{field}"):
        file(FILE.replace(old, new))
