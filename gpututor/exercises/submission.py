"""`Save my answers`: a learner's answers as one file to hand in, and reading such a file without trusting it.

The file is JSON and holds answers, the cases that they answer, and times, but no verdicts: whoever grades it judges
anew. Its hash, SHA-256 over the canonical JSON of everything else, shows a damaged or hand-edited file. It is no
signature: whoever reads this module can make another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from gpututor.errors import ExerciseNotKnown, NothingToSubmit, SubmissionRefused
from gpututor.exercises.keeping import given
from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.results import write_at_once
from gpututor.store import Store

FORMAT, VERSION = "gpututor-submission", 1
MAX_BYTES = 2 * 2**20  # our choice: a course of answers and cases is some 100 kB
MAX_NAME = 200  # characters of an id or a name: our choice, longer than any that a roster holds
FIELDS = {"format", "version", "learner", "saved_at", "versions", "answers", "hash"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, the case that it answers (empty where the exercise needs none), and when: UTC, ISO 8601."""

    answer: str
    case: Mapping[str, Any]
    at: str


@dataclass(frozen=True, slots=True)
class Submission:
    """All answers of one learner by the exercises' numbers, when they were saved, and by which versions."""

    learner_id: str
    learner_name: str
    answers: Mapping[str, Answer]
    saved_at: str
    versions: Mapping[str, str] = field(default_factory=dict)


def collect(store: Store, learner_id: str = "", name: str = "") -> Submission:
    """The answers in a progress file; an answer without a kept time counts as given now.

    Raises:
        NothingToSubmit: no exercise has an answer.
    """
    now = store.time()
    found = {one.number: last for one in EXERCISES if (last := given(store, one)) is not None}
    if not found:
        raise NothingToSubmit(
            f"no answers are kept for {store.learner}, so there is nothing to save; answer an exercise in a lesson, or "
            "with gpututor check"
        )
    answers = {number: Answer(str(last.answer), last.case, last.at or now) for number, last in found.items()}
    return Submission(learner_id or store.learner, name, answers, now, _versions())


def has_answers(store: Store) -> bool:
    """Whether there is anything to save."""
    return any(given(store, one) is not None for one in EXERCISES)


def to_text(submission: Submission) -> str:
    """The submission as a file holds it: JSON in ASCII, with its hash.

    Raises:
        SubmissionRefused: it would not be read back, because it is too large or holds no plain data.
    """
    told = {
        "format": FORMAT,
        "version": VERSION,
        "learner": {"id": submission.learner_id, "name": submission.learner_name},
        "saved_at": submission.saved_at,
        "versions": dict(submission.versions),
        "answers": {
            number: {"answer": each.answer, "case": each.case, "at": each.at}
            for number, each in submission.answers.items()
        },
    }
    try:
        text = json.dumps(told | {"hash": content_hash(told)}, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise SubmissionRefused(f"the answers can't be saved, because they are no plain data ({error})") from error
    from_bytes(text.encode("ascii"), "the file of your answers")
    return text


def save(submission: Submission, path: Path) -> None:
    """Write the file, all of it or nothing.

    Raises:
        SubmissionRefused: as `to_text`.
        OSError: the disk is full, read-only, or not ours.
    """
    write_at_once(path, to_text(submission))


def content_hash(told: Mapping[str, Any]) -> str:
    """SHA-256 of everything but "hash", as JSON with sorted keys, without spaces, in ASCII.

    >>> content_hash({"b": 1, "a": "µ", "hash": "?"}) == hashlib.sha256(b'{"a":"\\\\u00b5","b":1}').hexdigest()
    True
    """
    rest = {key: value for key, value in told.items() if key != "hash"}
    plain = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(plain.encode("ascii")).hexdigest()


def read(path: Path) -> Submission:
    """The submission in a file. Nothing in it is trusted: answers are the learner's text.

    Raises:
        SubmissionRefused: it is too large, damaged, edited, of another version, or about exercises that we don't have.
    """
    try:
        if not path.is_file():
            raise SubmissionRefused(f"{path.name} is no file; name the one that gpututor submit wrote")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SubmissionRefused(f"{path.name} can't be read ({error.strerror or error})") from error
    return from_bytes(raw, path.name)


def from_bytes(raw: bytes, name: str) -> Submission:
    """The submission in the bytes of the file called `name`.

    Raises:
        SubmissionRefused: as `read`.
    """
    told = _parsed(raw, name)
    if told.get("format") != FORMAT:
        raise SubmissionRefused(f"{name} is no submission; save one with gpututor submit")
    if type(told.get("version")) is not int or told["version"] != VERSION:
        raise SubmissionRefused(
            f"{name} is of version {str(told.get('version'))[:20]}, and this gpututor reads version {VERSION}; "
            "save it with the same gpututor that grades it"
        )
    if set(told) != FIELDS:
        odd = ", ".join(sorted(set(told) ^ FIELDS))[:80]
        _refuse(name, f"it lacks, or should not have, {odd}")
    try:
        fits = told["hash"] == content_hash(told)
    except (ValueError, RecursionError):  # a number that no JSON has
        fits = False
    if not fits:
        raise SubmissionRefused(
            f"{name} was changed after it was saved, or is damaged: its hash doesn't fit; save again"
        )
    return _submission(told, name)


def _parsed(raw: bytes, name: str) -> dict[str, Any]:
    if len(raw) > MAX_BYTES:
        raise SubmissionRefused(f"{name} is larger than {MAX_BYTES // 2**20} MiB; no course of answers is")
    try:
        told = json.loads(raw.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise SubmissionRefused(f"{name} is not UTF-8 text (byte {error.start}), so it is no submission") from error
    except _Twice as error:
        raise SubmissionRefused(f'{name} has the entry "{error}" twice, so nobody can tell which one counts') from None
    except (ValueError, RecursionError):
        _refuse(name, "it is no JSON")
    if not isinstance(told, dict):
        _refuse(name, "it is no JSON object")
    return told


class _Twice(Exception):
    """A key that an object has twice."""


def _each_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for key, value in pairs:
        if key in told:
            raise _Twice(ascii(key)[1:-1][:40])
        told[key] = value
    return told


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _submission(told: Mapping[str, Any], name: str) -> Submission:
    learner, versions, answers = told["learner"], told["versions"], told["answers"]
    if not (isinstance(learner, dict) and set(learner) == {"id", "name"} and all(map(_is_name, learner.values()))):
        _refuse(name, f"its learner needs an id and a name of up to {MAX_NAME} characters")
    if not learner["id"].strip():
        _refuse(name, "its learner has no id")
    if not (isinstance(versions, dict) and all(map(_is_name, versions.values()))):
        _refuse(name, "its versions are no texts")
    if not _is_time(told["saved_at"]):
        _refuse(name, "saved_at is no UTC time")
    if not isinstance(answers, dict):
        _refuse(name, "its answers are no object")
    read_answers = {number: _answer(number, each, name) for number, each in answers.items()}
    return Submission(learner["id"], learner["name"], read_answers, told["saved_at"], versions)


def _answer(number: str, told: Any, name: str) -> Answer:
    try:
        known = exercise(number).number == number
    except ExerciseNotKnown:
        known = False
    if not known:
        raise SubmissionRefused(
            f"{name} answers an exercise {ascii(number)[1:-1][:20]} unknown to this gpututor; update the older one"
        )
    if not isinstance(told, dict) or set(told) != {"answer", "case", "at"}:
        _refuse(name, f"exercise {number} needs an answer, a case and a time")
    if not isinstance(told["answer"], str) or not isinstance(told["case"], dict) or not _is_time(told["at"]):
        _refuse(name, f"exercise {number} needs an answer as text, a case as an object, and a UTC time")
    return Answer(told["answer"], told["case"], told["at"])


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).utcoffset() == timedelta(0)
    except (TypeError, ValueError):
        return False


def _refuse(name: str, why: str) -> NoReturn:
    raise SubmissionRefused(f"{name} is damaged: {why}; save the answers again")


def _versions() -> dict[str, str]:
    from gpututor import __version__

    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return {"gpututor": __version__, "torch": torch}
