"""One measurement of real time on a machine at once: two that overlap spoil each other.

Runs in virtual time need no lock. The lock is the operating system's, on a file, so it goes with the
process that holds it, whatever way that ends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from filelock import FileLock, Timeout

from gpututor.errors import MachineBusy
from gpututor.lab.processes import exists

NAME = "gpututor-measuring"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who measures: process, what, and since when (UTC, ISO 8601)."""

    pid: int
    what: str
    since: str


def lock_dir() -> Path:
    """The folder of the lock: GPUTUTOR_LOCK_DIR, else the system's temporary folder.

    On Linux all users of a machine share it. On macOS and Windows each has one, so there the lock is per user.
    """
    return Path(os.environ.get("GPUTUTOR_LOCK_DIR") or tempfile.gettempdir())


@contextmanager
def measuring(what: str, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the machine's one lock for measuring real time while the block runs.

    Waits up to `timeout_s` for another measurement to end. A fork of this process holds the lock with
    it for as long as it lives.

    Raises:
        MachineBusy: another measurement holds it; says whose, since when, and what to do.
    """
    folder = lock_dir()
    path = folder / f"{NAME}.lock"
    lock = FileLock(path, mode=0o666)  # other users of the machine must be able to open it
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=timeout_s)
    except Timeout as error:
        raise MachineBusy(_who_holds_it(folder)) from error
    except OSError as error:
        raise MachineBusy(
            f"the lock for measuring can't be opened ({error}), so nobody can tell whether another measurement "
            "is running; set GPUTUTOR_LOCK_DIR to a folder that you can write to."
        ) from error
    note = folder / f"{NAME}-{os.getpid()}.json"
    try:
        _leave_note(note, what)
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def who_measures(folder: Path | None = None) -> Holder | None:
    """The newest note of a process that still lives, or None. A hint for a sentence; only the lock itself is sure."""
    holders = []
    for path in (folder or lock_dir()).glob(f"{NAME}-*.json"):
        try:
            holder = Holder(**json.loads(path.read_text("utf-8")))
            if exists(holder.pid):
                holders.append(holder)
        except (OSError, ValueError, TypeError):
            continue
    return max(holders, key=lambda holder: holder.since, default=None)


def _leave_note(path: Path, what: str) -> None:
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    for stale in path.parent.glob(f"{NAME}-*.json"):  # we hold the lock, so whoever wrote these is gone
        with suppress(OSError):
            stale.unlink()
    try:
        path.write_text(json.dumps(asdict(Holder(os.getpid(), what, since))), "utf-8")
    except OSError:
        return  # the lock holds without its note; the other side then can't say who


def _who_holds_it(folder: Path) -> str:
    holder = who_measures(folder)
    advice = "two measurements at once spoil each other; wait until it ends, or use virtual time, which needs no lock."
    if holder is None:
        return f"another measurement of real time is running on this machine; {advice}"
    since = datetime.fromisoformat(holder.since).strftime("%H:%M:%S UTC")
    return f'"{holder.what}" (process {holder.pid}, since {since}) is measuring real time on this machine; {advice}'
