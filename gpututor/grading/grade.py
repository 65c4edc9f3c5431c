"""Grading a class: read, judge what isn't judged yet, and write everything anew; the same bytes however it went.

What a run took lies in run.json, which is no part of the results: nothing else holds a time of now or a machine's name.
"""

from __future__ import annotations

import json
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gpututor.errors import GradingNotPossible
from gpututor.grading import class_page, exports, feedback_page, handed_in, overrides, similar
from gpututor.grading import items as items_module
from gpututor.grading.classroom import Classroom, as_text
from gpututor.grading.deadlines import iso
from gpututor.grading.handed_in import HandedIn, Note
from gpututor.grading.items import Item, items_of
from gpututor.grading.judging import BUBBLEWRAP
from gpututor.grading.kept import Kept
from gpututor.grading.pool import Bundle, Judges
from gpututor.grading.roster import same
from gpututor.grading.scores import scored
from gpututor.grading.summary import summed_up
from gpututor.results import now_utc, write_at_once

FORMAT, VERSION = "gpututor-grades", 1
WORK, RESULTS, RUN = ".work", "results.json", "run.json"
NO_SANDBOX = (
    "Learners' code ran with limits on time and memory, but in no sandbox: it could read files of whoever graded, and "
    "reach the network."
)

Progress = Callable[[int, int], None]
"""Hears how many answers are judged, of how many that have to be."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of grading took."""

    n_submissions: int
    n_answers: int
    n_judged: int
    n_again: int
    took_s: float

    def as_data(self, n_processes: int | None) -> dict[str, Any]:
        """For run.json: rates are of what was judged in this run."""
        rate = self.n_judged / self.took_s if self.n_judged else None
        told = {"submissions": self.n_submissions, "answers": self.n_answers, "judged": self.n_judged}
        told |= {"tried_again": self.n_again}
        return told | {
            "took_s": round(self.took_s, 3),
            "answers_per_s": rate and round(rate, 4),
            "submissions_per_s": round(self.n_submissions / self.took_s, 4) if self.n_judged else None,
            "processes": n_processes,
            "answers_per_s_and_process": rate and n_processes and round(rate / n_processes, 4),
            "ended_at": iso(now_utc()),
            "machine": platform.node(),
        }


def grade(
    submissions: Path,
    room: Classroom,
    out: Path,
    judges: Judges,
    *,
    isolation: str = BUBBLEWRAP,
    again: Sequence[str] = (),
    n_processes: int | None = None,
    progress: Progress | None = None,
    now: Callable[[], datetime] = now_utc,
) -> dict[str, Any]:
    """Grade all submissions and write `out`; gives what results.json holds. Judges nothing that is judged already.

    Those of `again` are judged anew.

    Raises:
        GradingNotPossible: another process grades into `out`, or the judges can't begin.
        GpututorError: class, folder or table can't be read.
        OSError: `out` can't be written.
    """
    (out / WORK).mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / WORK / ".lock").acquire(timeout=0):
            return _grade(submissions, room, out, judges, isolation, again, n_processes, progress, now())
    except Timeout as error:
        raise GradingNotPossible(
            f"another process grades into {out} now; wait for it, or name another folder"
        ) from error


def _grade(
    submissions: Path,
    room: Classroom,
    out: Path,
    judges: Judges,
    isolation: str,
    again: Sequence[str],
    n_processes: int | None,
    progress: Progress | None,
    now: datetime,
) -> dict[str, Any]:
    by_hand = overrides.read(room)
    handed, notes = handed_in.read(submissions, room, now)
    work = {learner_id: items_of(one, room, isolation) for learner_id, one in handed.items()}
    kept = Kept(out / WORK)
    for learner_id in again:
        _forget(learner_id, room, work, kept)
    began_s = time.monotonic()
    n_judged, n_again = _judge(work, kept, judges, isolation, progress)
    took_s = time.monotonic() - began_s
    verdicts = {
        (learner_id, item.number): verdict
        for learner_id, several in work.items()
        for item in several
        for verdict in [kept.get(item.key)]
        if verdict is not None
    }
    learners = scored(room, handed, notes, verdicts, by_hand)
    results = _results(room, learners, notes, handed, isolation)
    _write(out, room, results)
    run = Run(len(handed), sum(map(len, work.values())), n_judged, n_again, took_s)
    write_at_once(out / RUN, json.dumps(run.as_data(n_processes), indent=1) + "\n")
    return results


def _forget(learner_id: str, room: Classroom, work: Mapping[str, list[Item]], kept: Kept) -> None:
    learner = room.by_id.get(same(learner_id))
    if learner is None:
        raise GradingNotPossible(f'nobody in the class has the id "{learner_id[:40]}", so nothing is judged again')
    for item in work.get(learner.id, ()):
        kept.drop(item.key)


def _judge(
    work: Mapping[str, list[Item]], kept: Kept, judges: Judges, isolation: str, progress: Progress | None
) -> tuple[int, int]:
    """Judge what has no verdict yet, each different item once, in bundles of one learner's."""
    seen: set[str] = set()
    bundles: list[Bundle] = []
    for _, several in sorted(work.items()):
        fresh = [item for item in several if item.key not in seen and kept.get(item.key) is None]
        seen |= {item.key for item in several}
        if fresh:
            told = {"isolation": isolation, "grader": items_module.version()}
            bundles.append(told | {"items": [item.as_data() for item in fresh]})
    bundles.sort(key=lambda bundle: -len(bundle["items"]))  # the long ones first, so that all processes end together
    n_all = sum(len(bundle["items"]) for bundle in bundles)
    n_done = 0

    def done(key: str, verdict: dict[str, Any]) -> None:
        nonlocal n_done
        kept.put(key, verdict)
        n_done += 1
        if progress is not None:
            progress(n_done, n_all)

    if not bundles:
        return 0, 0
    if progress is not None:
        progress(0, n_all)
    return n_all, judges(bundles, done)


def _results(
    room: Classroom,
    learners: list[dict[str, Any]],
    notes: Sequence[Note],
    handed: Mapping[str, HandedIn],
    isolation: str,
) -> dict[str, Any]:
    local = room.deadline.astimezone(room.zone)
    return {
        "format": FORMAT,
        "version": VERSION,
        "grader": items_module.version(),
        "isolation": isolation,
        "warnings": [] if isolation == BUBBLEWRAP else [NO_SANDBOX],
        "class": {
            "title": room.title,
            "lessons": as_text(room.lessons),
            "deadline": iso(room.deadline),
            "deadline_local": f"{local:%Y-%m-%d %H:%M:%S}",
            "timezone": room.zone.key,
            "late": str(room.late),
            "hidden_cases": room.n_hidden,
        },
        "summary": summed_up(room.exercises, learners),
        "files": [{"file": note.file, "learner_id": note.learner_id, "what": note.what} for note in notes],
        "similar": [pair.as_data() for pair in _alike(room, handed)],
        "learners": learners,
    }


def _alike(room: Classroom, handed: Mapping[str, HandedIn]) -> list[similar.Pair]:
    found = []
    for one in room.exercises:
        if one.kind == "code":
            answers: dict[str, str] = defaultdict(str)
            for learner_id, each in handed.items():
                given = each.content.answers.get(one.number)
                if given is not None and not one.is_untouched(given.answer):
                    answers[learner_id] = given.answer
            found += similar.pairs(one.number, one.starter, answers)
    return found


def _write(out: Path, room: Classroom, results: Mapping[str, Any]) -> None:
    """All files of the results. Feedback pages of learners who left are taken away."""
    learners = results["learners"]
    write_at_once(out / RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_at_once(out / "grades.csv", exports.grades_csv(learners))
    write_at_once(out / "canvas.csv", exports.canvas_csv(room.title, learners))
    write_at_once(out / "moodle.csv", exports.moodle_csv(room.title, learners))
    write_at_once(out / "class.html", class_page.class_page(results))
    pages = {one["feedback"]: one for one in learners}
    for name, one in pages.items():
        write_at_once(out / name, feedback_page.feedback(room.title, room.exercises, one))
    for path in sorted((out / "feedback").glob("*.html")):
        if f"feedback/{path.name}" not in pages:
            path.unlink()
