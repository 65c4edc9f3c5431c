"""Deadlines in a time zone with two changes of the clocks a year, and what late work costs."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from gpututor.errors import DeadlineUnclear
from gpututor.grading.deadlines import Late, iso, late_days, late_rule, to_utc, zone

BERLIN = zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-12-18 23:59", "2026-12-18T22:59:59+00:00"),  # winter: an hour ahead; to the end of the minute
        ("2026-07-18 23:59", "2026-07-18T21:59:59+00:00"),  # summer: two hours
        ("2026-12-18T12:00:00", "2026-12-18T11:00:00+00:00"),
        ("2026-10-25 02:30+02:00", "2026-10-25T00:30:59+00:00"),  # the first of two
        ("2026-10-25 02:30+01:00", "2026-10-25T01:30:59+00:00"),
        ("2026-12-18 23:59Z", "2026-12-18T23:59:59+00:00"),
    ],
)
def test_a_local_time_is_kept_as_utc(text, utc):
    assert iso(to_utc(text, BERLIN)) == utc


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("2026-03-29 02:30", "no clock in Europe/Berlin shows", id="skipped in spring"),
        pytest.param("2026-10-25 02:30", r"twice.*02:30\+02:00 or .*02:30\+01:00", id="shown twice in autumn"),
        pytest.param("2026-12-18", "no time of day", id="a day"),
        pytest.param("18.12.2026 23:59", "is no time", id="another order"),
        pytest.param("2026-13-18 23:59", "is no time", id="no such month"),
        pytest.param("2026-12-18 24:30", "is no time", id="no such hour"),
        pytest.param("9999-12-31 23:59-14:00", "is no time", id="beyond all years"),
        pytest.param("soon", "is no time", id="no time"),
    ],
)
def test_a_time_that_no_clock_shows_once_is_refused(text, said):
    with pytest.raises(DeadlineUnclear, match=said):
        to_utc(text, BERLIN)


@pytest.mark.parametrize("name", ["Berlin", "Europe/Belrin", "../etc/passwd", "/etc/localtime", "", "CET/../x"])
def test_an_unknown_zone_is_refused(name):
    with pytest.raises(DeadlineUnclear, match="no time zone is called"):
        zone(name)


def test_both_hints_on_a_doubled_time_can_be_typed():
    with pytest.raises(DeadlineUnclear) as refused:
        to_utc("2026-10-25 02:30", BERLIN)
    first, second = str(refused.value).rpartition("say which: ")[2].split(" or ")

    assert (to_utc(second, BERLIN) - to_utc(first, BERLIN)).total_seconds() == 3600


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("10 % a day, 3 days", Late(0.1, 3)),
        ("10% a day", Late(0.1)),
        ("12.5 % per day for 2 days", Late(0.125, 2)),
        ("none", Late()),
        ("", Late()),
        ("refuse", Late(0.0, 0)),
        ("100 % a day", Late(1.0)),
    ],
)
def test_a_rule_in_words(text, rule):
    assert late_rule(text) == rule
    assert late_rule(str(rule)) == rule


@pytest.mark.parametrize("text", ["a lot", "110 % a day", "-5 % a day", "10 % an hour", "3 days"])
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(DeadlineUnclear, match="no rule for late work"):
        late_rule(text)


@pytest.mark.parametrize(
    ("rule", "days", "share"),
    [
        (Late(0.1, 3), 0, 1.0),
        (Late(0.1, 3), 3, 0.7),
        (Late(0.1, 3), 4, 0.0),
        (Late(0.4), 3, 0.0),
        (Late(), 30, 1.0),
        (Late(0.0, 0), 1, 0.0),
        (Late(0.0, 0), 0, 1.0),
    ],
)
def test_what_is_left_of_the_points(rule, days, share):
    assert rule.kept_share(days) == share


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("handed_in", "days"),
    [
        ("2026-10-24T22:00:00", 0),
        ("2026-10-24T22:00:01", 1),
        ("2026-10-25T22:00:00", 1),  # a day of 24 hours, though the clocks show 25
        ("2026-10-25T22:00:01", 2),
    ],
)
def test_days_are_counted_as_begun(handed_in, days):
    assert late_days(at(handed_in), at("2026-10-24T22:00:00")) == days
