"""The watch as event files for TensorBoard: one scalar a number, one step a tick."""

from __future__ import annotations

from pathlib import Path

from gpututor.event_file import EventFile
from gpututor.watch.files import scalars
from gpututor.watch.source import Reading


class Events:
    """An event file in a folder; what wasn't read has no point at that step."""

    def __init__(self, folder: Path, now_s: float | None = None) -> None:
        self._file = EventFile(folder, now_s)
        self.path = self._file.path
        self._step = 0

    def note(self, reading: Reading) -> None:
        """Write the reading's numbers as one event."""
        known = {tag: float(value) for tag, value in scalars(reading).items() if value is not None}
        self._file.put(reading.time_s, self._step, known)
        self._step += 1

    def close(self) -> None:
        """No more is kept."""
        self._file.close()
