"""The class: a CSV file with a line for each learner, and at least the columns `id` and `name`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from gpututor.errors import GpututorError
from gpututor.exercises.submission import MAX_NAME
from gpututor.store import ANYBODY

INSTRUCTOR = "instructor"  # the id under which the instructor's own progress is kept
MAX_BYTES = 2 * 2**20  # our choice: some 20,000 learners


class RosterRefused(GpututorError, ValueError):
    """The list of learners can't be used; the message says which line and why."""


@dataclass(frozen=True, slots=True)
class Learner:
    """Somebody on the roster."""

    id: str
    name: str


def read(path: Path) -> tuple[Learner, ...]:
    """The learners in a roster, in its order.

    Raises:
        RosterRefused: it can't be read, lacks a column, or has an id twice or none.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RosterRefused(f"{path} can't be read ({error.strerror or error})") from error
    if len(raw) > MAX_BYTES:
        raise RosterRefused(f"{path} is larger than {MAX_BYTES // 2**20} MiB; no class is")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RosterRefused(f"{path} is no UTF-8 text (byte {error.start}); save it as CSV in UTF-8") from error
    return from_text(text, path.name)


def from_text(text: str, name: str) -> tuple[Learner, ...]:
    """The learners in a roster's text, separated by commas, semicolons or tabs.

    Raises:
        RosterRefused: as `read`.
    """
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = csv.DictReader(text.splitlines(), delimiter=separator)
    columns = {(column or "").strip().casefold(): column for column in rows.fieldnames or ()}
    missing = [column for column in ("id", "name") if column not in columns]
    if missing:
        raise RosterRefused(f'{name} has no column "{missing[0]}"; its first line must name id and name')
    learners: dict[str, Learner] = {}
    try:
        for row in rows:
            one = Learner(*((row[columns[column]] or "").strip() for column in ("id", "name")))
            if (why := _why_not(one, learners)) is not None:
                raise RosterRefused(f"line {rows.line_num} of {name} {why}")
            learners[one.id.casefold()] = one
    except csv.Error as error:
        raise RosterRefused(f"line {rows.line_num} of {name} is no CSV ({error})") from error
    if not learners:
        raise RosterRefused(f"{name} has no learners; give each a line")
    return tuple(learners.values())


def _why_not(one: Learner, learners: dict[str, Learner]) -> str | None:
    if not one.id:
        return "has no id; each learner needs one of their own"
    if max(len(one.id), len(one.name)) > MAX_NAME:
        return f"has an id or a name of more than {MAX_NAME} characters"
    if not (one.id + one.name).isprintable():
        return "has a character that can't be printed"
    if one.id.casefold() in learners:
        return f'has the id "{one.id}" a second time; each learner needs one of their own'
    if one.id.casefold() in (INSTRUCTOR, ANYBODY):
        return f'has the id "{one.id}", which gpututor keeps for itself; choose another'
    return None
