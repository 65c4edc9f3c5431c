"""What an instructor wants to know of a class: how each exercise went, which mistakes recur, what to look at."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from gpututor.exercises.form import Exercise

STATES = ("right", "partial", "wrong", "unanswered", "not judged")
MOST_MISTAKES = 5  # an exercise, our choice: what fewer people do is no pattern
_NUMBER = re.compile(r"“[^”]*”|\([^()]*\)|[-+]?\d[\d.,\u00a0]*")

INCIDENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("ended its own process"), "ended its own process"),
    (re.compile("still ran after"), "ran without an end and was stopped"),
    (re.compile("more memory than"), "asked for more memory than it may have"),
    (re.compile("printed more than"), "printed without an end and was stopped"),
    (re.compile("gave back more than"), "gave back more than it may"),
    (re.compile("started more than"), "started many processes and was stopped"),
    (re.compile("called sys.exit"), "called sys.exit"),
    (re.compile("is no record of a run"), "handed back a record that was made up or damaged"),
    (re.compile("could not judge this"), "could not be judged by the grader"),
    (re.compile("can't be judged|judging it takes"), "is about data that can't be judged: damaged, or made up"),
)
"""What a judge's sentence says of code that did what no answer does, and how the report calls it."""


def summed_up(exercises: Sequence[Exercise], learners: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The class as plain data: counts, exercises, late ones, incidents, points by hand."""
    graded = [one for one in learners if one["state"] == "graded"]
    points = sorted(one["points"] for one in graded)
    return {
        "n_learners": len(learners),
        "n_graded": len(graded),
        "marks": sum(one.marks for one in exercises),
        "mean_points": round(sum(points) / len(points), 2) if points else None,
        "median_points": _median(points),
        "exercises": [_exercise(one, graded) for one in exercises],
        "nothing": [one["id"] for one in learners if one["state"] == "nothing handed in"],
        "not_scored": [one["id"] for one in learners if one["state"] == "not scored"],
        "late": [
            {
                key: one[key]
                for key in ("id", "name", "late_days", "kept_share", "handed_in_at", "is_self_reported_time")
            }
            for one in graded
            if one["late_days"]
        ],
        "incidents": _incidents(graded),
        "overrides": [
            {"id": one["id"], "name": one["name"], "number": each["number"], "judged": each["judged_points"]}
            | each["override"]
            for one in learners
            for each in one["exercises"]
            if each["override"]
        ],
    }


def _median(ordered: Sequence[float]) -> float | None:
    if not ordered:
        return None
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else round((ordered[half - 1] + ordered[half]) / 2, 2)


def _exercise(one: Exercise, graded: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One exercise: how many did how well, and the mistakes that recur, the most frequent first."""
    entries = [
        {"id": learner["id"], **each}
        for learner in graded
        for each in learner["exercises"]
        if each["number"] == one.number
    ]
    missed: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in entries:
        if each["state"] in ("wrong", "partial", "not judged"):
            missed[_pattern(each["text"])].append(each)
    ranked = sorted(missed.values(), key=lambda several: (-len(several), _pattern(several[0]["text"])))
    return {
        "number": one.number,
        "title": one.title,
        "kind": one.kind,
        "marks": one.marks,
        "mean_points": round(sum(each["judged_points"] for each in entries) / len(entries), 2) if entries else None,
        "n_on_own_data": sum(each["case"] == "own" and each["state"] != "unanswered" for each in entries),
        "n_on_other_data": sum(each["case"] == "differs" for each in entries),
        "states": {state: sum(each["state"] == state for each in entries) for state in STATES},
        "mistakes": [_mistake(several) for several in ranked[:MOST_MISTAKES]],
        "n_other_mistakes": sum(len(several) for several in ranked[MOST_MISTAKES:]),
    }


def _mistake(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A mistake with one of the sentences on it (numbers differ), and the hint that most of them got."""
    hints = sorted(each["hint_text"] for each in several if each["hint_text"])
    return {
        "n": len(several),
        "ids": sorted(each["id"] for each in several),
        "text": min(each["text"] for each in several),
        "hint": max(hints, key=hints.count) if hints else None,
    }


def _pattern(text: str) -> str:
    """A sentence without what is one learner's own in it."""
    return _NUMBER.sub("…", text)


def _incidents(graded: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [
        {"id": one["id"], "name": one["name"], "number": each["number"], "what": what}
        for one in graded
        for each in one["exercises"]
        for what in [next((words for known, words in INCIDENTS if known.search(each["text"])), None)]
        if what
    ]
