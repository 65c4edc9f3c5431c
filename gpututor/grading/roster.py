"""Who is in the class: a table with id and name, where wanted email, group, and an extension of the deadline."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from gpututor.errors import DeadlineUnclear, RosterDamaged
from gpututor.grading import sheets
from gpututor.grading.deadlines import iso, to_utc
from gpututor.grading.sheets import FORMULA, Row

COLUMNS = {
    "id": ("id number", "student id", "sis user id", "matriculation number", "matrikelnummer"),
    "name": ("student", "student name", "full name"),
    "email": ("email address", "e-mail", "mail"),
    "group": ("section",),
    "extension": ("due", "deadline"),
}
MAX_ID = 200  # what a submission may hold
MOST_HOURS = 24 * 366  # an extension beyond a year is a slip


@dataclass(frozen=True, slots=True)
class Learner:
    """One of the class. `due` is the deadline that holds for this learner, in UTC, extension included."""

    id: str
    name: str
    email: str
    group: str
    due: datetime
    is_extended: bool


def same(learner_id: str) -> str:
    """What two spellings of one id have in common; zeros in front count.

    >>> same(" S007 ") == same("s007"), same("007") == same("7")
    (True, False)
    """
    return unicodedata.normalize("NFC", learner_id).strip().casefold()


def read(path: Path, deadline: datetime, where: ZoneInfo) -> tuple[Learner, ...]:
    """The learners of a table, in its order.

    Raises:
        RosterDamaged: it has no learners, an id twice, a line that can't be read; names the line.
    """
    learners: list[Learner] = []
    seen: dict[str, int] = {}
    rows = sheets.read(path, COLUMNS, ("id", "name"))
    for row in rows:
        learner = _learner(row, deadline, where)
        if same(learner.id) in seen:
            raise row.refuse(f'the id "{learner.id}" stands in line {seen[same(learner.id)]} already; keep one of them')
        seen[same(learner.id)] = row.line
        learners.append(learner)
    if not learners:
        raise RosterDamaged(f"{path.name} has no learners; it needs a line for each, with id and name")
    return tuple(learners)


def _learner(row: Row, deadline: datetime, where: ZoneInfo) -> Learner:
    if not row["id"]:
        raise row.refuse(f"{row['name'] or 'somebody'} has no id; give one")
    for column in ("id", "email"):
        if row[column].startswith(tuple(FORMULA)):
            raise row.refuse(
                f'the {column} "{row[column][:40]}" begins like a formula, so no table with it could be opened safely; '
                "give another"
            )
    for column in ("id", "name", "email", "group"):
        if any(map(_misleads, row[column])) or len(row[column]) > MAX_ID:
            raise row.refuse(f"the {column} holds a line break or a sign that turns text round, or is too long")
    if re.search(r"[/\\]", row["id"]) or row["id"].startswith("."):
        raise row.refuse(f'the id "{row["id"][:40]}" can\'t name a file; leave out slashes and a dot in front')
    if re.fullmatch(r"\d+(\.\d+)?E\+\d+", row["id"]):
        raise row.refuse(f'the id "{row["id"]}" is a number that a spreadsheet cut short; format the column as text')
    due = _due(row, deadline, where)
    name = row["name"] or row["id"]
    return Learner(row["id"], name, row["email"], row["group"], due, due != deadline)


def _misleads(sign: str) -> bool:
    """Whether a sign breaks or turns round the line it stands in."""
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in "\u202a\u202b\u202d\u202e\u2066\u2067"


def _due(row: Row, deadline: datetime, where: ZoneInfo) -> datetime:
    """When this learner's work is due: so many hours after the others', or at a time of their own."""
    text = row["extension"]
    if not text:
        return deadline
    hours = re.fullmatch(r"\+?(\d{1,5}(?:[.,]\d{1,3})?) ?(?:h|hours?)?", text)
    if hours is not None:
        n = float(hours[1].replace(",", "."))
        if n > MOST_HOURS:
            raise row.refuse(f"an extension of {n:g} hours is more than a year; give hours, or a new deadline")
        return deadline + timedelta(hours=n)
    try:
        due = to_utc(text, where)
    except DeadlineUnclear as error:
        raise row.refuse(f"the extension is neither hours nor a time: {error}") from error
    if due < deadline:
        raise row.refuse(f"the extension ends at {iso(due)}, before the deadline of all; correct it")
    return due


def to_text(learners: Sequence[Learner]) -> str:
    """The table as the class's folder keeps it; extensions are moments in UTC."""
    rows: list[Sequence[object]] = [("id", "name", "email", "group", "extension")]
    rows += [(one.id, one.name, one.email, one.group, iso(one.due) if one.is_extended else "") for one in learners]
    return sheets.written(rows)
