"""What a learner did, in one small file a learner: values, guesses, and where results lie.

Nothing here raises at a page. When the file can't be read or written the page goes on with what it
has in memory, and `Store.trouble` says so in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gpututor import readers
from gpututor.errors import ProgressDamaged
from gpututor.paths import home
from gpututor.results import Results, now_utc, write_at_once

FORMAT, VERSION = "gpututor-progress", 1
LOCK_TIMEOUT_S = 5.0  # a write takes some ms; who waits longer waits for something that hangs
ANYBODY = "me"
_HASHED = re.compile("-[0-9a-f]{8}$")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(1, 10))}


@dataclass(frozen=True, slots=True)
class Try:
    """One guess, and when it was made (UTC, ISO 8601)."""

    answer: Any
    at: str


def file_key(name: str) -> str:
    """A name as a file's name: safe on every system, and different for different names.

    >>> file_key("ann"), file_key("../ann")
    ('ann', 'ann-2a8c40f7')
    """
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.casefold()).strip("-")[:40]
    if plain and plain == name and plain not in _RESERVED and not _HASHED.search(plain):
        return plain
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}".lstrip("-")


class Still:
    """What a progress file held at one moment. Reading many values from it costs no file."""

    def __init__(self, lessons: dict[str, Any]) -> None:
        self._lessons = lessons

    def get(self, lesson: str, key: str, default: Any = None) -> Any:
        """What was put under `key` in `lesson`, or `default`."""
        return _lesson(self._lessons, lesson)["values"].get(key, default)

    def guesses(self, lesson: str) -> dict[str, tuple[Try, ...]]:
        """The questions of a lesson that were guessed at, each with its guesses that count, first one first."""
        asked = _lesson(self._lessons, lesson)["guesses"].items()
        return {key: tuple(Try(**one) for one in entry["tries"]) for key, entry in asked if entry["tries"]}


class _OfAnotherVersion(ProgressDamaged):
    """A whole file that another version of gpututor wrote; it isn't ours to move."""


class Store:
    """One learner's progress. Safe with several threads and processes writing at once: no write loses another.

    On a server for a class the learner is whom the page's key belongs to, not `learner` (see `readers`).
    """

    def __init__(self, learner: str = ANYBODY, *, now: Callable[[], datetime] = now_utc) -> None:
        self.learner = readers.learner(learner) or ANYBODY
        self.path = home() / "progress" / f"{file_key(self.learner)}.json"
        self.trouble: str | None = None
        self._now = now
        self._unsaved: dict[str, Any] | None = None  # the whole progress, once it can't be written
        self._lock = threading.Lock()
        self._look_for_trouble()

    def get(self, lesson: str, key: str, default: Any = None) -> Any:
        """What was put under `key` in `lesson`, or `default`."""
        return _lesson(self._read(), lesson)["values"].get(key, default)

    def put(self, lesson: str, key: str, value: Any) -> None:
        """Keep JSON data under `key` in `lesson`; anything else is trouble and isn't kept."""
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            self.trouble = f'"{key}" of lesson {lesson} can\'t be kept, because it is no plain data ({error}).'
            return

        def change(lessons: dict[str, Any]) -> None:
            _lesson(lessons, lesson)["values"][key] = value

        self._change(change)

    def guess(self, lesson: str, question: str, answer: Any) -> None:
        """Keep a guess. Until the reveal a new one takes its place; after it, each is one more try."""
        at = self.time()

        def change(lessons: dict[str, Any]) -> None:
            entry = _question(lessons, lesson, question)
            if entry["revealed_at"] is None:
                entry["tries"].clear()
            if not entry["tries"] or entry["tries"][-1]["answer"] != answer:
                entry["tries"].append({"answer": answer, "at": at})

        self._change(change)

    def reveal(self, lesson: str, question: str) -> None:
        """Note that the learner has seen the answer: the guess that stands now stays the first for good."""
        at = self.time()

        def change(lessons: dict[str, Any]) -> None:
            entry = _question(lessons, lesson, question)
            entry["revealed_at"] = entry["revealed_at"] or at

        self._change(change)

    def revealed(self, lesson: str, question: str) -> bool:
        """Whether the learner has seen the answer."""
        return _question(self._read(), lesson, question)["revealed_at"] is not None

    def tries(self, lesson: str, question: str) -> tuple[Try, ...]:
        """All guesses that count, first one first."""
        return tuple(Try(**one) for one in _question(self._read(), lesson, question)["tries"])

    def first_guess(self, lesson: str, question: str) -> Try | None:
        """The guess that stood when the answer was shown (or stands now), or None without one."""
        return next(iter(self.tries(lesson, question)), None)

    def still(self) -> Still:
        """All of it as it stands now, for whoever reads many values at once."""
        return Still(self._read())

    def time(self) -> str:
        """The time now, as it is kept beside what a learner does: UTC, ISO 8601, to the second."""
        return self._now().isoformat(timespec="seconds")

    def lessons(self) -> tuple[str, ...]:
        """The lessons in which something is kept, in the order of their names."""
        return tuple(sorted(self._read()))

    def results_dir(self, lesson: str) -> Path:
        """The folder of this learner's results of `lesson`; it may not exist yet."""
        return home() / "results" / file_key(self.learner) / file_key(lesson)

    def results(self, lesson: str) -> Results:
        """This learner's results of `lesson`."""
        return Results(self.results_dir(lesson), self._now)

    def _read(self) -> dict[str, Any]:
        """The lessons' part of the file; empty without a file or with a damaged one."""
        with self._lock:
            if self._unsaved is not None:
                return _copy(self._unsaved)
            try:
                return _parse(self.path)
            except FileNotFoundError:
                return {}
            except _OfAnotherVersion as error:
                return self._go_on_in_memory({}, f"is left alone: {error}")
            except ProgressDamaged:
                return self._set_aside()
            except OSError as error:
                return self._go_on_in_memory({}, f"can't be read ({_reason(error)})")

    def _change(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Read, change and write under one lock for all processes."""
        self._read()  # sets a damaged file aside first
        with self._lock:
            if self._unsaved is not None:
                change(self._unsaved)
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._alone():
                    lessons = _parse(self.path) if self.path.exists() else {}
                    change(lessons)
                    write_at_once(self.path, _text(self.learner, lessons))
            except (OSError, Timeout, ProgressDamaged) as error:
                lessons = _parse_if_possible(self.path)
                change(lessons)
                self._go_on_in_memory(lessons, f"can't be written ({_reason(error)})")

    def _alone(self) -> AbstractContextManager[object]:
        """The file's lock among all processes; given back at the end of the block."""
        return FileLock(self.path.with_suffix(".lock")).acquire(timeout=LOCK_TIMEOUT_S, poll_interval=0.01)

    def _look_for_trouble(self) -> None:
        """Find out at once, not at the first guess, that the file can't be read or its folder not be written."""
        lessons = self._read()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            writable = os.access(self.path.parent, os.W_OK)
            why = "its folder is read-only"
        except OSError as error:
            writable, why = False, _reason(error)
        if not writable and self._unsaved is None:
            self._go_on_in_memory(lessons, f"can't be written ({why})")

    def _go_on_in_memory(self, lessons: dict[str, Any], what: str) -> dict[str, Any]:
        self._unsaved = lessons
        self.trouble = (
            f"Your progress file {self.path} {what}; this page goes on, but what you do now is lost when it is closed. "
            "Set GPUTUTOR_HOME to a folder that you can write to and start again."
        )
        return _copy(lessons)

    def _set_aside(self) -> dict[str, Any]:
        """Give a damaged file another name, so that nothing in it is lost and a new one can begin."""
        aside = self.path.with_name(f"{self.path.stem}.damaged-{self._now():%Y%m%dT%H%M%S.%fZ}.json")
        try:
            with self._alone():
                try:
                    return _parse(self.path)  # another process was quicker
                except ProgressDamaged as damage:
                    self.path.rename(aside)
                    self.trouble = f"{damage} It was kept as {aside.name}, and this page begins with an empty one."
                    return {}
                except FileNotFoundError:
                    return {}
        except (OSError, Timeout) as error:
            return self._go_on_in_memory({}, f"is damaged and can't be set aside ({_reason(error)})")


def everybody(lesson: str) -> dict[str, dict[str, Any]]:
    """What every learner of this machine has kept in `lesson`, by learner; a file that can't be read is left out."""
    found = {}
    for path in sorted((home() / "progress").glob("*.json")):
        try:
            whole = json.loads(path.read_bytes())
            found[str(whole["learner"])] = _lesson(_parse(path), lesson)["values"]
        except (OSError, ProgressDamaged, ValueError, KeyError, TypeError):
            continue
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, Timeout):
        return f"another process has held its lock for {LOCK_TIMEOUT_S:g} s"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _copy(lessons: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(lessons))
    return copied


def _text(learner: str, lessons: dict[str, Any]) -> str:
    whole = {"format": FORMAT, "version": VERSION, "learner": learner, "lessons": lessons}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _parse(path: Path) -> dict[str, Any]:
    """The lessons in a progress file.

    Raises:
        FileNotFoundError: there is none.
        ProgressDamaged: it is no progress file, or one of a later version.
        OSError: it can't be read.
    """
    raw = path.read_bytes()
    try:
        told = json.loads(raw.decode("utf-8", "surrogatepass"))
        if told["format"] != FORMAT:
            raise ProgressDamaged(f"Your progress file {path} is of another format.")
        if told["version"] != VERSION:
            raise _OfAnotherVersion(f"it is of version {told['version']}, and this gpututor reads version {VERSION}")
        lessons: dict[str, Any] = told["lessons"]
        for entry in lessons.values():
            _check(entry)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ProgressDamaged):
            raise
        raise ProgressDamaged(f"Your progress file {path} is damaged.") from error
    return lessons


def _check(entry: dict[str, Any]) -> None:
    entry["values"].keys()
    for question in entry["guesses"].values():
        question["revealed_at"]
        for one in question["tries"]:
            Try(**one)


def _parse_if_possible(path: Path) -> dict[str, Any]:
    try:
        return _parse(path)
    except (OSError, ProgressDamaged):
        return {}


def _lesson(lessons: dict[str, Any], lesson: str) -> dict[str, Any]:
    entry: dict[str, Any] = lessons.setdefault(lesson, {"values": {}, "guesses": {}})
    return entry


def _question(lessons: dict[str, Any], lesson: str, question: str) -> dict[str, Any]:
    entry: dict[str, Any] = _lesson(lessons, lesson)["guesses"].setdefault(question, {"revealed_at": None, "tries": []})
    return entry
