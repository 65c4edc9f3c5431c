"""What a reader sees under an exercise, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Points = tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Graded:
    """The state of an answer, one sentence on it, and the points of its picture: the reader's and ours."""

    state: Literal["unanswered", "wrong", "right"]
    text: str
    theirs: Points = ()
    ours: Points = ()


NOT_ANSWERED = Graded("unanswered", "Not answered yet.")


def is_number(value: Any) -> bool:
    """Whether a reader's answer is a number that can be compared; NaN and infinities are not.

    >>> is_number(0.5), is_number(True), is_number("1"), is_number(float("nan"))
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
