"""Microseconds as they stand in a file → whole nanoseconds, without the rounding of binary fractions.

A clock that counts from 1970 reads 1.7e15 µs, where neighbouring binary fractions lie
0.25 µs apart; so times are read as text.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite

FURTHEST_NS = 10**19
"""Our limit: 300 years. A number beyond it is damage, not a time."""

_DIGITS = 20  # that FURTHEST_NS has


def load_json(text: str) -> object:
    """The document with every fraction kept as text, and NaN or Infinity as None; control characters are let through.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return json.JSONDecoder(parse_float=str, parse_constant=lambda _: None, strict=False).decode(text)


def whole_ns(microseconds: object) -> int | None:
    """Nanoseconds, or None for what is not a finite number of a thinkable size. Halves round to even.

    >>> whole_ns("1712195495505543.2"), whole_ns(7), whole_ns("0.0005"), whole_ns("N/A"), whole_ns(None)
    (1712195495505543200, 7000, 0, None, None)
    """
    if type(microseconds) is not str:
        return _of_number(microseconds)
    if len(microseconds) > 64:
        return None
    head, _, tail = microseconds.partition(".")
    digits = head + tail + "000"[len(tail) :]
    if head and len(tail) <= 3 and len(digits) < _DIGITS and digits.isdecimal():
        return int(digits)
    try:
        value = Decimal(microseconds)
    except InvalidOperation:
        return None
    if not value.is_finite() or value.adjusted() > _DIGITS - 3:
        return None
    return _bounded(int((value * 1000).to_integral_value()))


class Lengths(dict[str, int | None]):
    """Nanoseconds of lengths that are written as text, each worked out once: the same ones come again and again."""

    MOST = 65_536

    def __missing__(self, microseconds: str) -> int | None:
        if len(self) >= self.MOST:
            self.clear()
        ns = self[microseconds] = whole_ns(microseconds)
        return ns


def _of_number(microseconds: object) -> int | None:
    if type(microseconds) is int:
        return _bounded(1000 * microseconds)
    if type(microseconds) is float:
        return whole_ns(repr(microseconds)) if isfinite(microseconds) else None
    return None


def _bounded(ns: int) -> int | None:
    return ns if -FURTHEST_NS < ns < FURTHEST_NS else None
