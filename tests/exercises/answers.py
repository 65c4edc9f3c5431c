"""The form in which tests hold an exercise's solution and its typical wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Wrong:
    """A wrong answer, a part of the sentence it gets, the hint that would help, and its share of the marks."""

    answer: Any
    says: str
    hint: int | None = None
    earned: float = 0.0


@dataclass(frozen=True)
class Answers:
    """`right` earns full marks for `case`; each of `wrong` does not. Both may be functions of the case."""

    right: Any
    wrong: Sequence[Wrong]
    case: dict[str, Any] = field(default_factory=dict)

    def right_for(self, case: dict[str, Any]) -> Any:
        """The solution for a case drawn from somebody's run."""
        return self.right(case) if isinstance(self.right, Callable) else self.right
