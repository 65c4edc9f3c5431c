"""The ticks of a watch: read, show, keep; until the time is over or somebody ends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from gpututor.errors import WatchNotKept
from gpututor.watch.files import Log
from gpututor.watch.source import Reading

FIRST_LOOK_S = 0.3
"""Our choice: a share needs a stretch of time, and a reader a first answer within a second."""


class Readable(Protocol):
    """What gives one reading after another."""

    def read(self) -> Reading:
        """Everything now."""


def wait(seconds: float) -> None:
    """Sleep, but let Ctrl-C through at once on every system."""
    threading.Event().wait(seconds)


def watch(
    source: Readable,
    listeners: Sequence[Callable[[Reading], None]],
    logs: Sequence[Log] = (),
    *,
    interval_s: float,
    seconds: float | None = None,
    n_readings: int | None = None,
    clock_s: Callable[[], float] = time.monotonic,
    wait_s: Callable[[float], None] = wait,
) -> None:
    """Read every `interval_s` and hand each reading to everybody, logs first, for `seconds` or `n_readings` of them.

    The reading before the first tick only gives shares a beginning; nobody sees it. A tick that took longer than the
    interval is followed at once by the next, and no tick is made up for.

    Raises:
        WatchNotKept: a log can't be written any more.
    """
    source.read()
    began_s = due_s = clock_s()
    due_s += min(FIRST_LOOK_S, interval_s)
    n = 0
    while n_readings is None or n < n_readings:
        if seconds is not None and due_s - began_s > seconds:
            wait_s(max(0.0, began_s + seconds - clock_s()))
            return
        wait_s(max(0.0, due_s - clock_s()))
        reading = source.read()
        n += 1
        for log in logs:
            _keep(log, reading)
        for listener in listeners:
            listener(reading)
        due_s = max(due_s + interval_s, clock_s())


def _keep(log: Log, reading: Reading) -> None:
    try:
        log.note(reading)
    except OSError as error:
        raise WatchNotKept(
            f"the readings can't be kept any more ({error.strerror or error}); is the disk full?"
        ) from error
