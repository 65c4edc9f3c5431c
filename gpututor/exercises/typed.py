"""Judging what is typed or chosen: a number with its usual slips, an option that the run decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gpututor.exercises.form import Judged, Points

Slip = tuple[float, str]
"""An answer that comes from a known mistake, and one sentence on it."""


def read_number(text: str) -> float | None:
    """The number in what a reader typed, with or without a unit and thousands separators; None without one.

    >>> read_number("813"), read_number("813.1 GB/s"), read_number("1,234.5"), read_number("0,9"), read_number("fast")
    (813.0, 813.1, 1234.5, 0.9, None)
    """
    found = re.fullmatch(r"\s*([-+]?[\d.,' \u00a0]*\d(?:\.)?(?:[eE][-+]?\d+)?)\s*(?:[a-zA-Zµ/%×]*)\s*", text)
    if found is None:
        return None
    plain = re.sub(r"[' \u00a0]", "", found[1])
    grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", plain)
    plain = plain.replace(",", "") if grouped else plain.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return None


def near(answer: float, value: float, tolerance_share: float) -> bool:
    """Whether an answer lies within this share of a value."""
    return abs(answer - value) <= tolerance_share * abs(value)


def judge_number(
    typed: str,
    right: float,
    *,
    tolerance_share: float,
    said: str,
    slips: Sequence[Slip] = (),
    otherwise: str,
    hint: int = 1,
    points: tuple[Points, Points] | None = None,
) -> Judged:
    """A typed number against the right one: `said` when it is, a slip's own sentence, or `otherwise`.

    A slip that lies within the tolerance of the right answer is not asked for. `points` are the picture's, the
    reader's and ours; without them it is the two numbers, side by side.
    """
    answer = read_number(typed)
    if answer is None:
        return Judged("wrong", f"“{typed.strip()[:40]}” is not a number. Type one, with or without its unit.")
    theirs, ours = points or (((0.0, answer),), ((0.0, right),))
    if near(answer, right, tolerance_share):
        return Judged("right", said, (), theirs, ours)
    slip = next((text for value, text in slips if near(answer, value, tolerance_share)), None)
    return Judged("wrong", slip or otherwise, (), theirs, ours, None if slip else hint)


def judge_choice(chosen: str, right: str, why: Mapping[str, str], *, hint: int = 1) -> Judged:
    """A chosen option against the one that the run decided; `why` has one sentence for each option.

    The sentence of the right option says why it is; that of another one why it isn't, without naming the right one.
    """
    if chosen == right:
        return Judged("right", why[chosen])
    return Judged("wrong", why.get(chosen, "Look at the figure again."), hint=hint)
