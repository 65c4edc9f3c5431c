"""What the runs of one lesson left behind: a folder a run, the newest one kept for the next visit.

A run writes its files into its own folder while it goes on; `result.json`, written last and at once,
makes it count. A run that died half-way has none and is never shown.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

KEPT = 3  # finished runs a lesson: the one on the page, and two to compare with
UNFINISHED_KEPT = timedelta(days=1)  # longer than any run of a lesson
RESULT = "result.json"
VERSION = 1


def now_utc() -> datetime:
    """The time now, in UTC."""
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A finished run: `k` of `n` steps. `state` is "done" or "stopped", `at` its end (UTC, ISO 8601).

    `folder` holds its files; it is None when the disk gave none.
    """

    folder: Path | None
    state: str
    experiment: str
    params: dict[str, Any]
    data: Any
    sentence: str
    at: str
    k: int
    n: int


def write_at_once(path: Path, text: str) -> None:
    """Put `text` in the place of `path` so that a reader sees all of it or what was there before.

    Raises:
        OSError: the disk is full, read-only, or not ours.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Results:
    """The runs of one lesson under `base`, newest last by name."""

    def __init__(self, base: Path, now: Callable[[], datetime] = now_utc) -> None:
        self._base, self._now = base, now

    def new_folder(self) -> Path:
        """A folder of its own for a run that begins now.

        Raises:
            OSError: the disk is full, read-only, or not ours.
        """
        self._base.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=self._base, prefix=self._now().strftime("%Y%m%dT%H%M%S.%fZ-")))

    def keep(self, result: StoredResult) -> None:
        """Make a run's result the newest one, and let go of old ones. Without a folder nothing is kept.

        Raises:
            OSError: the disk is full, read-only, or not ours.
        """
        if result.folder is None:
            return
        told = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "folder"} | {"version": VERSION}
        write_at_once(result.folder / RESULT, json.dumps(told))
        self._prune()

    def latest(self, experiment: str | None = None) -> StoredResult | None:
        """The newest finished run (of this experiment), or None. A damaged one is passed over."""
        for folder in reversed(self._folders()):
            result = _read(folder)
            if result is not None and experiment in (None, result.experiment):
                return result
        return None

    @property
    def newest_is_damaged(self) -> bool:
        """Whether the newest run has a result that can't be read, so that `latest` gives an older one or none."""
        ended = (folder for folder in reversed(self._folders()) if (folder / RESULT).exists())
        newest = next(ended, None)
        return newest is not None and _read(newest) is None

    def _folders(self) -> list[Path]:
        try:
            return sorted(path for path in self._base.iterdir() if path.is_dir())
        except OSError:
            return []

    def _prune(self) -> None:
        finished: dict[str, list[Path]] = {}
        oldest = (self._now() - UNFINISHED_KEPT).strftime("%Y%m%dT%H%M%S")
        for folder in self._folders():
            result = _read(folder)
            if result is not None:
                finished.setdefault(result.experiment, []).append(folder)
            elif folder.name < oldest:
                shutil.rmtree(folder, ignore_errors=True)
        for folders in finished.values():
            for folder in folders[:-KEPT]:
                shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> StoredResult | None:
    try:
        told = json.loads((folder / RESULT).read_text("utf-8"))
        if told.pop("version") != VERSION:
            return None
        return StoredResult(folder, **told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
