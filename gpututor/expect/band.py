"""A predicted number with the room it is allowed, and what a measured one says to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from statistics import median
from typing import Literal

from gpututor.errors import ExpectationError
from gpututor.text import duration, percent, quantity

Verdict = Literal["within", "outside", "not known"]


@dataclass(frozen=True, slots=True)
class Band:
    """An expected value, the range in which a result agrees with it, and where both come from.

    Raises:
        ExpectationError: the expected value lies outside its own range.
    """

    low: float
    expected: float
    high: float
    unit: str  # "ns", "share", "samples/s", …
    source: str

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low <= self.expected <= self.high):
            raise ExpectationError(
                f"{self.in_words(self.expected)} is expected, but the band runs from {self.in_words(self.low)} to "
                f"{self.in_words(self.high)}; were the ends swapped?"
            )

    def in_words(self, value: float | None) -> str:
        """A value in this band's unit, as text."""
        if value is None:
            return "not known"
        if self.unit == "ns":
            return duration(value)
        return percent(value) if self.unit == "share" else quantity(value, self.unit)

    def widened(self, share: float, reason: str) -> Band:
        """The band with `share` of the expected value more at either end, for instance the spread of repeated runs."""
        more = share * abs(self.expected)
        return replace(self, low=self.low - more, high=self.high + more, source=f"{self.source}; {reason}")


def around(expected: float, error_share: float, unit: str, source: str) -> Band:
    """The band of a prediction whose ratio to the truth is within 1 + `error_share` either way.

    >>> band = around(100.0, 0.25, "ns", "model")
    >>> band.low, band.high
    (80.0, 125.0)

    Raises:
        ExpectationError: `error_share` is negative.
    """
    if error_share < 0:
        raise ExpectationError(f"an error of {error_share:g} was given; it is a share, 0 or more")
    ends = expected / (1 + error_share), expected * (1 + error_share)
    return Band(min(ends), expected, max(ends), unit, source)


def of_runs(values: Sequence[float], unit: str, source: str) -> Band:
    """The band from the smallest to the largest of repeated runs, with their median as the expected value.

    Raises:
        ExpectationError: no run.
    """
    if not values:
        raise ExpectationError("no run was given, so there is nothing to expect")
    return Band(min(values), median(values), max(values), unit, f"{source}, {len(values)} runs")


@dataclass(frozen=True, slots=True)
class Difference:
    """A seen value beside its expectation; `seen` is None where it could not be read."""

    band: Band
    seen: float | None

    @property
    def verdict(self) -> Verdict:
        """Whether the seen value lies in the band, its ends included."""
        if self.seen is None:
            return "not known"
        return "within" if self.band.low <= self.seen <= self.band.high else "outside"

    @property
    def ratio(self) -> float | None:
        """Seen over expected, or None where either is missing or zero."""
        return self.seen / self.band.expected if self.seen is not None and self.band.expected else None

    @property
    def text(self) -> str:
        """Both values, the allowed range, its source and the verdict, in one line."""
        b = self.band
        seen = f"{b.in_words(self.seen)} seen, {b.in_words(b.expected)} expected"
        room = f"{b.in_words(b.low)} to {b.in_words(b.high)} by {b.source}"
        tail = "nothing to compare" if self.seen is None else f"{self.verdict} the band"
        return f"{seen} ({room}): {tail}"


def compare(expected: Band, seen: float | None) -> Difference:
    """The seen value beside the band, with a verdict of "within", "outside" or "not known"."""
    return Difference(expected, seen)
