"""How far a reader is, lesson by lesson: guesses, runs, exercises and points, read once from what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpututor.exercises.keeping import Standing, standing
from gpututor.exercises.registry import EXERCISES
from gpututor.page.course import LESSONS, Lesson, is_ready
from gpututor.results import StoredResult
from gpututor.store import Store, Try

State = Literal["coming", "not begun", "begun", "guessed", "run", "all right"]


@dataclass(frozen=True, slots=True)
class OfLesson:
    """One lesson: whether it is there to be opened, its first guesses by question, its newest run, its exercises."""

    lesson: Lesson
    is_ready: bool
    guesses: Mapping[str, Try]
    run: StoredResult | None
    exercises: tuple[Standing, ...]

    @property
    def state(self) -> State:
        """How far it is, in a word; "begun" where only an exercise was answered."""
        if not self.is_ready:
            return "coming"
        if self.run is not None:
            return "all right" if self.exercises and self.n_right == len(self.exercises) else "run"
        if self.guesses:
            return "guessed"
        return "begun" if self.n_answered else "not begun"

    @property
    def n_right(self) -> int:
        """Exercises with full marks."""
        return sum(each.state == "right" for each in self.exercises)

    @property
    def n_answered(self) -> int:
        """Exercises with an answer, checked or not."""
        return sum(each.given is not None for each in self.exercises)

    @property
    def earned(self) -> float:
        """Points earned."""
        return sum(each.earned or 0 for each in self.exercises)

    @property
    def marks(self) -> int:
        """Points that can be earned."""
        return sum(each.one.marks for each in self.exercises)


@dataclass(frozen=True, slots=True)
class OfCourse:
    """All lessons in order, those that are coming included; sums are of those that are there."""

    lessons: tuple[OfLesson, ...]

    @property
    def ready(self) -> tuple[OfLesson, ...]:
        """The lessons that can be opened."""
        return tuple(each for each in self.lessons if each.is_ready)

    @property
    def runs(self) -> Mapping[str, StoredResult]:
        """The newest run of each lesson that is there and has one, by the lesson's key."""
        return {each.lesson.key: each.run for each in self.ready if each.run is not None}

    @property
    def next(self) -> OfLesson | None:
        """What to do next: the first lesson without a run, then the first with an exercise that isn't right."""
        unrun = (each for each in self.ready if each.run is None)
        unsolved = (each for each in self.ready if each.state != "all right")
        return next(unrun, None) or next(unsolved, None)

    @property
    def exercises(self) -> tuple[Standing, ...]:
        """The exercises of all lessons that are there."""
        return tuple(one for each in self.ready for one in each.exercises)

    @property
    def n_right(self) -> int:
        """Exercises with full marks."""
        return sum(each.n_right for each in self.ready)

    @property
    def n_answered(self) -> int:
        """Exercises with an answer, checked or not."""
        return sum(each.n_answered for each in self.ready)

    @property
    def earned(self) -> float:
        """Points earned."""
        return sum(each.earned for each in self.ready)

    @property
    def marks(self) -> int:
        """Points that can be earned."""
        return sum(each.marks for each in self.ready)

    @property
    def times(self) -> Sequence[str]:
        """When something was done that is kept, oldest first: UTC, ISO 8601."""
        return sorted(time for each in self.ready for time in _times(each))


def standing_of(store: Store) -> OfCourse:
    """How far this reader is. The progress file is read once, the results' files once a lesson."""
    still = store.still()

    def of(each: Lesson) -> OfLesson:
        guesses = {key: tries[0] for key, tries in still.guesses(each.key).items()}
        exercises = tuple(standing(still, one) for one in EXERCISES if one.lesson == each.number)
        return OfLesson(each, is_ready(each), guesses, store.results(each.key).latest(), exercises)

    return OfCourse(tuple(map(of, LESSONS)))


def _times(each: OfLesson) -> Iterable[str]:
    yield from (guess.at for guess in each.guesses.values())
    if each.run is not None:
        yield each.run.at
    yield from (one.given.at for one in each.exercises if one.given is not None and one.given.at)
