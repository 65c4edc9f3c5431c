"""Columns: what is kept has a bound, what is counted has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.errors import MetricNotKnown
from gpututor.measure.nvml import METRICS, metric
from gpututor.measure.nvml.columns import ENTRY_BYTES, FEWEST, Column

POWER, MEMORY, ENERGY, BITS = (METRICS[name] for name in ("power_w", "memory_used_bytes", "energy_j", "clock_reasons"))


def filled(which, values, most=FEWEST):
    column = Column(which, most)
    for k, value in enumerate(values):
        column.append(1000 * k, value)
    return column


def test_entries_come_back_in_order():
    assert filled(POWER, [3, 1, 2]).entries() == ((0, 1000, 2000), (3, 1, 2))


def test_a_column_without_a_value_has_no_figure():
    assert Column(POWER, 100).figure() is None


def test_a_figure_holds_mean_extremes_and_ends():
    figure = filled(POWER, [3, 1, 8]).figure()

    assert (figure.n, figure.mean, figure.lowest, figure.highest) == (3, 4, 1, 8)
    assert (figure.first, figure.first_ns, figure.last, figure.last_ns) == (3, 0, 8, 2000)


@pytest.mark.parametrize(
    ("which", "merged"), [(POWER, 2.0), (MEMORY, 3.0), (ENERGY, 1.0)], ids=["mean", "higher", "later"]
)
def test_two_neighbours_become_one_where_there_is_no_room(which, merged):
    times, values = filled(which, [3, 1] * (FEWEST // 2)).entries()

    assert values == (merged,) * (FEWEST // 2)
    assert times == tuple(range(1000, 1000 * FEWEST, 2000))


def test_thinned_bits_are_those_of_both():
    assert set(filled(BITS, [4, 8] * (FEWEST // 2)).entries()[1]) == {12.0}


def test_bits_are_counted_as_they_came():
    assert filled(BITS, [4, 8, 4, 4]).masks == {4: 3, 8: 1}


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=500))
def test_thinning_changes_no_figure(values):
    figure = filled(POWER, values).figure()

    assert figure.mean == pytest.approx(sum(values) / len(values))
    assert (figure.lowest, figure.highest, figure.last) == (min(values), max(values), values[-1])


@given(st.integers(1, 2000))
def test_a_column_never_holds_more_than_its_bound(n):
    times, values = filled(POWER, range(n)).entries()

    assert len(times) == len(values) <= FEWEST
    assert list(times) == sorted(set(times))


def test_an_hour_at_five_hertz_stays_below_twenty_megabytes_for_eight_gpus():
    from gpututor.measure.nvml.rounds import KEEP_BYTES

    most = KEEP_BYTES // (ENTRY_BYTES * len(METRICS) * 8)
    column = filled(POWER, range(18_000), most)

    assert column.kept_bytes * len(METRICS) * 8 < 20e6


def test_an_hour_of_one_gpu_is_kept_whole():
    from gpututor.measure.nvml.rounds import KEEP_BYTES

    assert KEEP_BYTES // (ENTRY_BYTES * len(METRICS)) > 18_000


def test_an_unknown_metric_gets_near_names():
    with pytest.raises(MetricNotKnown, match="power_w"):
        metric("power")
