"""What is kept of an exercise in a learner's progress file: the case last shown, the answer last given, its verdict.

The page and the command `gpututor check` keep and read the same, so an answer given in one is there in the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from gpututor.exercises import leaderboard
from gpututor.exercises.form import Case, Check, Exercise, Judged, State
from gpututor.store import Store


class Values(Protocol):
    """Where values of a progress file can be read: a `Store`, or a `Still` of one."""

    def get(self, lesson: str, key: str, default: Any = None) -> Any:
        """What was put under `key` in `lesson`, or `default`."""


@dataclass(frozen=True, slots=True)
class Given:
    """An answer, the case that it answers, and when it was given (UTC, ISO 8601; None where nobody noted it)."""

    answer: Any
    case: Case
    at: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """The last verdict: what was judged, what the judge said, and the points that it earned."""

    given: Given
    judged: Judged
    earned: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How one exercise stands: the answer as it is now, and the verdict on it where it was checked."""

    one: Exercise
    given: Given | None
    kept: Kept | None

    @property
    def state(self) -> Literal["not answered", "not checked", "right", "partial", "wrong"]:
        """In a word: the verdict's, if there is one on this answer."""
        if self.given is None:
            return "not answered"
        state = self.kept.judged.state if self.kept is not None else "unanswered"
        return "not checked" if state == "unanswered" else state

    @property
    def earned(self) -> float | None:
        """Points earned, of the exercise's marks; None without a verdict, or with points that nobody can earn."""
        earned = self.kept.earned if self.kept is not None else -1.0
        return earned if 0 <= earned <= self.one.marks else None


def standing(store: Values, one: Exercise) -> Standing:
    """How an exercise stands. A verdict on an earlier answer doesn't count."""
    last, kept = given(store, one), kept_judged(store, one)
    same = last is not None and kept is not None and kept.given.answer == last.answer
    return Standing(one, last, kept if same else None)


def keep_case(store: Store, one: Exercise, case: Case) -> None:
    """Keep the case with which an exercise is shown; a write only where it is another one. An empty one isn't kept."""
    if case and not _same(store.get(_lesson(one), f"{one.key} case"), case):
        store.put(_lesson(one), f"{one.key} case", dict(case))


def kept_case(store: Values, one: Exercise) -> Case | None:
    """The case with which an exercise was last shown, or None before the learner's run."""
    case = store.get(_lesson(one), f"{one.key} case")
    return case if isinstance(case, Mapping) and case else None


def keep_given(store: Store, one: Exercise, answer: Any, case: Case) -> None:
    """Keep an answer as it stands, judged or not. The same answer to the same case keeps its first time."""
    told = store.get(_lesson(one), f"{one.key} answer")
    if isinstance(told, Mapping) and told.get("answer") == answer and _same(told.get("case"), case):
        return
    store.put(_lesson(one), f"{one.key} answer", {"answer": answer, "case": dict(case), "at": store.time()})


def given(store: Values, one: Exercise) -> Given | None:
    """The answer as it stands, or None where nothing was typed, chosen or changed."""
    told = store.get(_lesson(one), f"{one.key} answer")
    found = _given(told) if isinstance(told, Mapping) else Given(told, {}, None)
    if found is None:
        kept = kept_judged(store, one)
        found = kept.given if kept else None
    return None if found is None or one.is_untouched(found.answer) else found


def keep_judged(store: Store, one: Exercise, answer: Any, case: Case, judged: Judged) -> None:
    """Keep a verdict with what it is about, and that as the answer given; one on nothing isn't kept."""
    if judged.state == "unanswered":
        return
    keep_given(store, one, answer, case)
    told = {
        "answer": answer,
        "case": dict(case),
        "at": store.time(),
        "state": judged.state,
        "text": judged.text,
        "checks": [[check.words, check.holds, check.share] for check in judged.checks],
        "marks": one.marks,
        "earned": round(one.marks * judged.earned_share, 2),
    }
    store.put(_lesson(one), one.key, told)
    if judged.usd is not None:
        leaderboard.keep_cheapest(store, one, case, judged.usd)


def kept_judged(store: Values, one: Exercise) -> Kept | None:
    """The last verdict, or None without one that can be read."""
    told = store.get(_lesson(one), one.key)
    try:
        about = _given(told)
        state: State = told["state"] if told["state"] in get_args(State) else "unanswered"
        judged = Judged(state, told["text"], tuple(Check(*each) for each in told["checks"]))
        return None if about is None else Kept(about, judged, float(told["earned"]))
    except (KeyError, TypeError, ValueError):
        return None


def next_hint(store: Store, one: Exercise, judged: Judged) -> int:
    """The number, from 1, of the hint to give now; it counts as seen from now on.

    It is the judge's where that is still unseen, else the next one, and after the last one that one again.
    """
    seen = store.get(_lesson(one), f"{one.key} hints")
    seen = seen if isinstance(seen, int) else 0
    wanted = judged.hint if judged.hint is not None and judged.hint > seen else seen + 1
    wanted = min(wanted, len(one.hints))
    store.put(_lesson(one), f"{one.key} hints", max(seen, wanted))
    return wanted


def _same(kept: Any, case: Case) -> bool:
    """Whether a kept case is this one, as JSON has it: lists and tuples are alike."""
    return json.dumps(kept, sort_keys=True) == json.dumps(case, sort_keys=True, default=str)


def _lesson(one: Exercise) -> str:
    return f"{one.lesson:02d}"


def _given(told: Any) -> Given | None:
    """What a progress file holds of an answer; files of before cases were kept have neither case nor time."""
    if not isinstance(told, Mapping) or "answer" not in told:
        return None
    case, at = told.get("case"), told.get("at")
    return Given(told["answer"], case if isinstance(case, Mapping) else {}, at if isinstance(at, str) else None)
