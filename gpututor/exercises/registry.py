"""All exercises, lesson by lesson. A new one is a constant in its lesson's module, an entry here, and a test."""

from __future__ import annotations

from gpututor.errors import ExerciseNotKnown
from gpututor.exercises import (
    ex01,
    ex02,
    ex03,
    ex04,
    ex05,
    ex06,
    ex07,
    ex08,
    ex09,
    ex10,
    ex11,
    ex12,
    ex13,
    ex14,
    ex15,
    ex16,
    ex17,
    ex18,
    ex19,
)
from gpututor.exercises.form import Exercise

EXERCISES: tuple[Exercise, ...] = (
    ex01.BANDWIDTH,
    ex01.WAVES,
    ex02.FEWER,
    ex02.QUEUE,
    ex03.LARGEST,
    ex03.ACCUMULATE,
    ex04.LONGER,
    ex04.HOISTED,
    ex05.WIDEST,
    ex05.COMBINED,
    ex06.ENOUGH,
    ex06.LOADER,
    ex07.LARGER,
    ex07.BATCHES,
    ex08.HIDDEN,
    ex08.AHEAD,
    ex09.MOST,
    ex09.LOGGED,
    ex10.PAID,
    ex10.REPLAYED,
    ex10.HELD_UP,
    ex11.PAYS,
    ex11.SCALER,
    ex12.ALLOWED,
    ex12.FEW,
    ex13.FASTER,
    ex13.SMALLER,
    ex14.LEFT,
    ex14.BUDGET,
    ex15.RARELY,
    ex15.EVALUATED,
    ex16.RARELY,
    ex16.ONCE,
    ex17.WRONG_WITH_IT,
    ex17.CHEAPEST,
    ex18.WHY,
    ex18.SLOWER,
    ex19.PRICED,
    ex19.RAISED,
)


def exercise(number: str) -> Exercise:
    """The exercise with this number, such as "3.1" or "03.1".

    Raises:
        ExerciseNotKnown: there is none.
    """
    for each in EXERCISES:
        if each.number == number.strip().lstrip("0"):
            return each
    raise ExerciseNotKnown("exercise", number, [each.number for each in EXERCISES])
