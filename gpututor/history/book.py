"""The file of runs: SQLite, one row a run. Safe with several processes; a damaged file is kept aside, not lost.

Version 1: a table `runs` with the columns of `COLUMNS`. Mappings are JSON. SQLite's own `user_version` is the version
of the layout, its `application_id` says that the file is ours.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from gpututor.errors import HistoryError, RunNotKnown
from gpututor.history.entry import Entry
from gpututor.ledger import Account
from gpututor.paths import home

FILE = "history.sqlite"
VERSION, APPLICATION_ID = 1, 0x67707574  # "gput"
BUSY_TIMEOUT_S = 5.0  # a write takes some milliseconds; who waits longer waits for something that hangs

COLUMNS: dict[str, str] = {
    "number": "INTEGER PRIMARY KEY AUTOINCREMENT",  # a deleted run's number is never given again
    "at": "TEXT NOT NULL",
    "kind": "TEXT NOT NULL",
    "name": "TEXT NOT NULL",
    "origin": "TEXT NOT NULL",
    "machine": "TEXT",
    "card": "TEXT",
    "configuration": "TEXT NOT NULL",
    "versions": "TEXT NOT NULL",
    "git_commit": "TEXT",
    "n_steps": "INTEGER NOT NULL",
    "step_ns": "REAL",
    "busy_share": "REAL",
    "busy_basis": "TEXT NOT NULL",
    "accounts_ns": "TEXT NOT NULL",
    "usd_per_hour": "REAL",
    "usd_per_1000_steps": "REAL",
    "reasons": "TEXT NOT NULL",
}


Answer = TypeVar("Answer")


def _now() -> datetime:
    return datetime.now(timezone.utc)


class History:
    """The runs in `path`, by default in the reader's folder. `trouble` is a sentence after a damaged file was met."""

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = _now) -> None:
        self.path = path or home() / FILE
        self.trouble: str | None = None
        self._now = now

    def log(self, entry: Entry) -> int:
        """Keep a run; its number.

        Raises:
            HistoryError: the file can't be written, or is of a later version.
        """
        row = _row(entry, entry.at or self._now().isoformat(timespec="seconds"))
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        question = f"INSERT INTO runs ({names}) VALUES ({marks})"  # noqa: S608  our own names
        number = self._do(lambda file: file.execute(question, tuple(row.values())).lastrowid)
        assert number is not None
        return number

    def runs(self, last: int | None = None) -> tuple[Entry, ...]:
        """The runs in the order of their numbers, the last `last` of them or all; none where there is no file.

        Raises:
            HistoryError: the file can't be read, or is of a later version.
        """
        if not self.path.exists():
            return ()
        limit = -1 if last is None else last
        question = "SELECT * FROM runs ORDER BY number DESC LIMIT ?"
        rows = self._do(lambda file: file.execute(question, (limit,)).fetchall())
        found = [_entry_if_possible(row) for row in reversed(rows)]
        if None in found:
            self.trouble = f"{found.count(None)} of the runs in {self.path} can't be read, and are left out."
        return tuple(entry for entry in found if entry is not None)

    def run(self, number: int) -> Entry:
        """The run of this number; negative ones count from the end, -1 is the last.

        Raises:
            RunNotKnown: there is none.
            HistoryError: the file can't be read, or is of a later version.
        """
        runs = self.runs()
        found = runs[number] if -len(runs) <= number < 0 else next((e for e in runs if e.number == number), None)
        if found is None:
            raise RunNotKnown("run", str(number), [str(entry.number) for entry in runs[-10:]] or ["none yet"])
        return found

    def delete(self, numbers: Sequence[int]) -> int:
        """Take runs out for good; how many there were.

        Raises:
            HistoryError: the file can't be written, or is of a later version.
        """
        if not self.path.exists():
            return 0
        question = "DELETE FROM runs WHERE number = ?"
        return self._do(lambda file: sum(file.execute(question, (n,)).rowcount for n in numbers))

    # --- the file ---------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What `work` gives of the open file, in one transaction; a damaged file is set aside first."""
        try:
            try:
                return self._once(work)
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:
                    raise  # locked, read-only, full: the file itself may be whole
                self._renew(error)
                return self._once(work)
        except (OSError, Timeout, sqlite3.Error) as error:
            raise HistoryError(f"the run history {self.path} can't be used ({_reason(error)})") from error

    def _once(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        with self._alone():
            opened = self._ready()
        with closing(opened) as file, file:
            return work(file)

    def _renew(self, error: sqlite3.Error) -> None:
        """Set the damaged file aside, unless another process was quicker."""
        with self._alone():
            try:
                with closing(self._ready()) as file:
                    damaged = file.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok"
            except sqlite3.DatabaseError:
                damaged = True
            if damaged:
                self._set_aside(error)

    def _alone(self) -> FileLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_suffix(".lock"), timeout=BUSY_TIMEOUT_S)

    def _ready(self) -> sqlite3.Connection:
        """A connection to a file with our table."""
        file = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S)
        try:
            file.row_factory = sqlite3.Row
            (version,) = file.execute("PRAGMA user_version").fetchone()
            (owner,) = file.execute("PRAGMA application_id").fetchone()
            if version > VERSION and owner == APPLICATION_ID:
                raise HistoryError(
                    f"the run history {self.path} is of version {version}, and this gpututor reads {VERSION}; "
                    "it is left alone. Set GPUTUTOR_HOME to another folder, or use the newer gpututor"
                )
            if version == 0:
                self._begin(file)
            elif owner != APPLICATION_ID or [row[1] for row in file.execute("PRAGMA table_info(runs)")] != [*COLUMNS]:
                raise sqlite3.DatabaseError("it has another layout than ours")
        except BaseException:
            file.close()
            raise
        return file

    def _begin(self, file: sqlite3.Connection) -> None:
        if file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError("it holds tables that aren't ours")
        file.execute("PRAGMA journal_mode=WAL")  # readers and a writer don't wait for each other
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        with file:
            file.execute(f"CREATE TABLE runs ({columns})")
            file.execute(f"PRAGMA application_id={APPLICATION_ID}")
            file.execute(f"PRAGMA user_version={VERSION}")

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Give a damaged file another name, so that nothing in it is lost and a new one can begin."""
        stem = f"history.damaged-{self._now():%Y%m%dT%H%M%S.%fZ}.sqlite"
        for ending in ("", "-wal", "-shm"):
            part = self.path.with_name(self.path.name + ending)
            if part.exists():
                part.rename(self.path.with_name(stem + ending))
        self.trouble = (
            f"Your run history {self.path} can't be read ({error}). It was kept as {stem}, and a new one begins."
        )


def _reason(error: Exception) -> str:
    if isinstance(error, Timeout):
        return f"another process has held its lock for {BUSY_TIMEOUT_S:g} s"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _row(entry: Entry, at: str) -> dict[str, Any]:
    """The columns of a new row."""
    row: dict[str, Any] = {name: getattr(entry, name, None) for name in COLUMNS if name != "number"}
    row |= {name: json.dumps(dict(row[name]), default=str) for name in ("configuration", "versions", "reasons")}
    row["accounts_ns"] = json.dumps({account.name.lower(): ns for account, ns in entry.accounts_ns.items()})
    return row | {"at": at, "git_commit": entry.commit}


def _entry_if_possible(row: sqlite3.Row) -> Entry | None:
    """The run in a row, or None where another program wrote something else into it."""
    try:
        return _entry(row)
    except (ValueError, TypeError, AttributeError):
        return None


def _entry(row: sqlite3.Row) -> Entry:
    told = dict(row)
    told |= {name: json.loads(told[name]) for name in ("configuration", "versions", "reasons")}
    known = {account.name.lower(): account for account in Account}
    accounts = {known[name]: ns for name, ns in json.loads(told.pop("accounts_ns")).items() if name in known}
    return Entry(commit=told.pop("git_commit"), accounts_ns=accounts, **told)
