"""Microseconds in a file become exactly the nanoseconds that were written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.trace.exact import load_json, whole_ns


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        pytest.param("1712195495505543.2", 1_712_195_495_505_543_200, id="a clock since 1970"),
        pytest.param("4203669604595.407", 4_203_669_604_595_407, id="nanoseconds since start-up"),
        pytest.param("0.040", 40, id="below a microsecond"),
        pytest.param("0.0005", 0, id="half a nanosecond goes to the even one"),
        pytest.param("0.0015", 2, id="one and a half too"),
        pytest.param("-0.5", -500, id="negative"),
        pytest.param("1e3", 1_000_000, id="with an exponent"),
        pytest.param("12", 12_000, id="a number in quotes"),
        pytest.param(7, 7_000, id="a whole number"),
        pytest.param(0.1, 100, id="a binary fraction means what it prints"),
    ],
)
def test_written_microseconds_become_nanoseconds(written, ns):
    assert whole_ns(written) == ns


@pytest.mark.parametrize(
    "damaged", ["N/A", "", "nan", "1e99999999", "9" * 40, 10**30, None, True, [1], float("inf"), "٣.", "1.2.3", "0x10"]
)
def test_what_is_no_time_is_none(damaged):
    assert whole_ns(damaged) in ((3_000,) if damaged == "٣." else (None,))


@given(st.integers(0, 10**18))
def test_every_nanosecond_comes_back(ns):
    assert whole_ns(f"{ns // 1000}.{ns % 1000:03d}") == ns


@given(st.text("0123456789.eE+- ", max_size=20))
def test_whatever_it_is_it_is_a_number_near_what_stands_there_or_none(text):
    ns = whole_ns(text)
    if ns is not None:
        assert abs(Fraction(text.strip()) * 1000 - ns) <= Fraction(1, 2)


def test_a_fraction_in_json_is_kept_as_text():
    assert load_json('{"ts": 1712195495505543.25}') == {"ts": "1712195495505543.25"}


def test_nan_in_json_is_none():
    assert load_json("[NaN, Infinity]") == [None, None]
