"""Made-up learners: how far they are, as data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpututor.exercises.form import Check, Exercise, Judged
from gpututor.exercises.keeping import Given, Kept, Standing
from gpututor.exercises.registry import EXERCISES
from gpututor.page.course import Lesson
from gpututor.page.standing import OfCourse, OfLesson
from gpututor.results import StoredResult
from gpututor.store import Try

NOW = "2026-12-01T05:00:00+00:00"
AT = "2026-11-30T14:03:22+00:00"
HALF = Judged("partial", "", (Check("runs", True, 0.5), Check("is fast", False, 0.5)))


def run(at: str = AT, state: str = "done") -> StoredResult:
    """A kept run without files."""
    return StoredResult(Path(), state, "", {}, {}, "", at, 1, 1)


def answered(one: Exercise, judged: Judged | None = None, answer: Any = "42", at: str = AT) -> Standing:
    """An exercise with an answer, and a verdict on it unless it is None."""
    given = Given(answer, {}, at)
    return Standing(one, given, judged and Kept(given, judged, one.marks * judged.earned_share))


def of_lesson(
    each: Lesson, exercises: Iterable[Standing] = (), *, ready: bool = True, guess: str = "", ran: bool = False
) -> OfLesson:
    """One lesson; its exercises are unanswered but for those given."""
    given = {one.one.number: one for one in exercises}
    all_of_it = [one for one in EXERCISES if one.lesson == each.number]
    standings = tuple(given.get(one.number, Standing(one, None, None)) for one in all_of_it)
    return OfLesson(each, ready, {"q": Try(guess, AT)} if guess else {}, run() if ran else None, standings)


def everything_done(lessons: Iterable[Lesson]) -> OfCourse:
    """A course with every exercise answered in full; a lesson that lacks exercises borrows those of lesson 10."""
    borrowed = tuple(answered(one, Judged("right", "")) for one in EXERCISES if one.lesson == 10)

    def done(each: Lesson) -> OfLesson:
        own = tuple(answered(one, Judged("right", "")) for one in EXERCISES if one.lesson == each.number)
        return OfLesson(each, True, {"q": Try("three or four times as long", AT)}, run(), own or borrowed)

    return OfCourse(tuple(map(done, lessons)))
