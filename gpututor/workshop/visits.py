"""Which connection is whose, which lesson each reader has open, and when they were last heard of."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

MOST_SESSIONS = 20_000  # remembered; a class of 100 that opens 20 pages an hour takes ten hours to get there
MOST_LETTERS = 200  # of a name that a browser sends; marimo's are far shorter


@dataclass(slots=True)
class _Session:
    reader: str
    file: str = ""
    n_open: int = 0
    since_s: float = field(default_factory=time.time)


class Visits:
    """Safe from many threads. A session is marimo's name for one open page; its first reader is its only one."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._seen_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def open(self, session: str, reader: str, file: str) -> bool:
        """Note that a reader's page connects; False, and nothing is noted, when the session is somebody else's."""
        with self._lock:
            known = self._sessions.setdefault(session[:MOST_LETTERS], _Session(reader, file[:MOST_LETTERS]))
            if known.reader != reader:
                return False
            known.n_open += 1
            self._sessions.move_to_end(session[:MOST_LETTERS])
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
            self._seen_s[reader] = time.time()
            return True

    def close(self, session: str) -> None:
        """Note that a page's connection has ended; the session stays its reader's."""
        with self._lock:
            if (known := self._sessions.get(session[:MOST_LETTERS])) is not None:
                known.n_open = max(0, known.n_open - 1)
                self._seen_s[known.reader] = time.time()

    def is_of(self, session: str, reader: str) -> bool:
        """Whether a session is this reader's."""
        with self._lock:
            known = self._sessions.get(session[:MOST_LETTERS])
            return known is not None and known.reader == reader

    def seen(self, reader: str) -> None:
        """Note that a reader is there."""
        with self._lock:
            self._seen_s[reader] = time.time()

    def open_files(self, reader: str) -> tuple[str, ...]:
        """The files of the reader's open pages, the newest first."""
        with self._lock:
            mine = [each for each in self._sessions.values() if each.reader == reader and each.n_open]
        return tuple(dict.fromkeys(each.file for each in sorted(mine, key=lambda each: -each.since_s)))

    @property
    def n_open(self) -> int:
        """Pages that are open now."""
        with self._lock:
            return sum(each.n_open > 0 for each in self._sessions.values())

    def last_seen_s(self, reader: str) -> float | None:
        """When the reader was last heard of, in seconds since 1970; None if never since the server started."""
        with self._lock:
            return self._seen_s.get(reader)
