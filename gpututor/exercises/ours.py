"""For `Exercise.case_from`: our own case on the machine that a learner's case names."""

from __future__ import annotations

from collections.abc import Callable

from gpututor.errors import GpututorError
from gpututor.exercises.form import Case


def case_from(number: str) -> Callable[[Case], Case | None]:
    """Gives our case, or None where the learner's names no machine that we know."""

    def make(case: Case) -> Case | None:
        from gpututor.exercises.canonical import case_on  # here, because it imports the exercises

        try:
            return case_on(number, case["machine"]) if isinstance(case.get("machine"), str) else None
        except GpututorError:
            return None

    return make
