"""What was handed in, and whose it is: by the school's system first, and only without its word by the file's own.

The school's system says it by a table manifest.csv (file, id, received_at), by a folder named ID or ID_…, or by a file
named ID.json or ID_….json. A file that claims to be somebody else's than that is scored for nobody.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gpututor.errors import DeadlineUnclear, SubmissionRefused
from gpututor.exercises import submission
from gpututor.exercises.submission import Submission
from gpututor.grading import sheets
from gpututor.grading.classroom import Classroom
from gpututor.grading.deadlines import iso, to_utc
from gpututor.grading.roster import Learner, same
from gpututor.store import ANYBODY

MANIFEST = "manifest.csv"
COLUMNS = {"file": ("filename", "file name", "path"), "id": ("learner", "student id"), "received_at": ("received",)}
CLOCKS_DIFFER = timedelta(minutes=5)  # between a learner's computer and the school's, our choice
MOST_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the report on a file: which, whose it was taken to be (empty when nobody's), and what was seen."""

    file: str
    learner_id: str
    what: str

    def __post_init__(self) -> None:
        for name in ("file", "learner_id", "what"):
            object.__setattr__(self, name, shown(getattr(self, name)))


def shown(text: str) -> str:
    """A text that learners chose, as it can stand in a report: no sign without a shape, none that turns the line.

    >>> shown("a\\u202eb\\ud800")
    'a?b?'
    """
    return "".join(sign if sign.isprintable() or sign == "\u00a0" else "?" for sign in text)


@dataclass(frozen=True, slots=True)
class HandedIn:
    """A learner's file that counts. `at` is when it came, `is_received` whether the school's system says so."""

    learner: Learner
    file: str
    content: Submission
    at: datetime
    is_received: bool


@dataclass(frozen=True, slots=True)
class _Listed:
    learner_id: str
    received_at: datetime | None


def read(folder: Path, room: Classroom, now: datetime) -> tuple[dict[str, HandedIn], list[Note]]:
    """The file that counts of each learner, by id, and what is to be said on files, both in a fixed order.

    Raises:
        SubmissionRefused: the folder can't be read, or holds too many files.
        RosterDamaged: its manifest.csv can't be read.
    """
    if not folder.is_dir():
        raise SubmissionRefused(f"there is no folder {folder}; name the one with the submissions")
    manifest = _manifest(folder, room)
    found: dict[str, list[tuple[HandedIn, bool]]] = defaultdict(list)
    notes: list[Note] = []
    files = sorted(_files(folder))
    if len(files) > MOST_FILES:
        raise SubmissionRefused(f"{folder} holds {len(files):,} files; name the folder with the submissions only")
    for name in files:
        one, is_sure, says = _one(folder, name, room, manifest.get(name))
        notes += says
        if one is not None:
            found[one.learner.id].append((one, is_sure))
    notes += [Note(name, manifest[name].learner_id, "stands in manifest.csv and isn't there") for name in manifest]
    chosen = {learner_id: _newest(several, now, notes) for learner_id, several in sorted(found.items())}
    there = set(map(shown, files))
    return chosen, sorted(
        (note for note in notes if not (note.file in there and note.what.endswith("isn't there"))),
        key=lambda note: (note.file, note.what),
    )


def _manifest(folder: Path, room: Classroom) -> dict[str, _Listed]:
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    listed: dict[str, _Listed] = {}
    for row in sheets.read(path, COLUMNS, ("file", "id")):
        name = Path(row["file"]).as_posix()
        if name in listed:
            raise row.refuse(f"the file {name} stands in it twice; keep one line")
        try:
            received = to_utc(row["received_at"], room.zone) if row["received_at"] else None
        except DeadlineUnclear as error:
            raise row.refuse(f"received_at: {error}") from error
        listed[name] = _Listed(row["id"], received)
    return listed


def _files(folder: Path) -> Iterator[str]:
    """All files below a folder, as paths with slashes; links are not followed."""
    for at, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
        for name in names:
            path = (Path(at) / name).relative_to(folder).as_posix()
            if not name.startswith(".") and path != MANIFEST:
                yield path


def _one(folder: Path, name: str, room: Classroom, listed: _Listed | None) -> tuple[HandedIn | None, bool, list[Note]]:
    """A file with its learner, or None; whether the school's system says whose it is; and what is to be said."""
    whose = listed.learner_id if listed else _by_name(name, room)
    if (folder / name).is_symlink():
        return None, False, [Note(name, whose, "is a link to another file, so it was not read")]
    if not name.casefold().endswith(".json"):
        return None, False, [Note(name, whose, "is no .json file, so it was not read")]
    try:
        content = submission.read(folder / name)
    except SubmissionRefused as error:
        return None, False, [Note(name, whose, f"not scored: {error}")]
    learner = room.by_id.get(same(whose or content.learner_id))
    claim = content.learner_id
    if learner is None:
        stranger = whose or claim
        return None, False, [Note(name, stranger, f'not scored: nobody in the class has the id "{stranger}"')]
    if whose and same(claim) not in (same(whose), same(ANYBODY)):
        what = f'not scored: it came from {learner.id} and claims to be from "{claim}"; scored for neither'
        return None, False, [Note(name, learner.id, what)]
    notes = []
    if not whose:
        notes.append(Note(name, learner.id, "only the file itself says whose it is"))
    elif same(claim) == same(ANYBODY):
        notes.append(Note(name, learner.id, "holds no id of its own; taken to be from where it came"))
    saved_at = datetime.fromisoformat(content.saved_at)
    received = listed.received_at if listed else None
    notes += [Note(name, learner.id, what) for what in _odd_times(content, saved_at, received)]
    return HandedIn(learner, shown(name), content, received or saved_at, received is not None), bool(whose), notes


def _by_name(name: str, room: Classroom) -> str:
    """The id that the outermost folder or the file is named by, or nothing. The longest id that fits counts."""
    for part in (*Path(name).parts[:-1], Path(name).stem):
        pieces = same(part).split("_")
        for n in range(len(pieces), 0, -1):
            learner = room.by_id.get("_".join(pieces[:n]))
            if learner is not None:
                return learner.id
    return ""


def _odd_times(content: Submission, saved_at: datetime, received: datetime | None) -> Iterator[str]:
    """What can't be right about the times that a file states."""
    if received is not None and saved_at > received + CLOCKS_DIFFER:
        yield f"says it was saved at {iso(saved_at)}, but it was received at {iso(received)}, which counts"
    late = [number for number, one in content.answers.items() if datetime.fromisoformat(one.at) > saved_at]
    if late:
        yield f"holds answers from after it was saved ({', '.join(sorted(late))}), so its times were edited"


def _newest(several: Sequence[tuple[HandedIn, bool]], now: datetime, notes: list[Note]) -> HandedIn:
    """The file that counts: known from the school's system before claimed, not from the future, and the newest."""

    def rank(entry: tuple[HandedIn, bool]) -> tuple[bool, bool, datetime, str]:
        one, is_sure = entry
        return is_sure, one.at <= now + CLOCKS_DIFFER, one.at, one.file

    ordered = [one for one, _ in sorted(several, key=rank)]
    counts = ordered[-1]
    if len(ordered) > 1:
        others = ", ".join(sorted(one.file for one in ordered[:-1]))
        notes.append(Note(counts.file, counts.learner.id, f"counts, the newest of {len(ordered)}; not read: {others}"))
    for one in (one for one in ordered if one.at > now + CLOCKS_DIFFER):
        notes += [Note(one.file, one.learner.id, f"its time {iso(one.at)} lies in the future, so it isn't right")]
    return counts
