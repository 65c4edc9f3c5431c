"""Stretches of a run that are no training, and what the host really does in them.

On the virtual clock the host's time comes from a table, and a table knows no file, no histogram and no garbage
collection. So a block that only the host works in is timed on this computer, and that time stands on the tape: it is
the one part of such a run that doesn't repeat to the nanosecond. Left out is the time in which other programs had the
processor, where the system tells it. On the paced clock all of the host's time is real.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpututor import marking
from gpututor.model.marks import BeginPause, EndPause
from gpututor.model.tape import HostWork
from gpututor.simgpu.session import Session, current
from gpututor.timeline import Activity

WAITED = Path("/proc/thread-self/schedstat")
"""On Linux, of this thread: nanoseconds at work, nanoseconds ready and waiting for a processor, turns.

Source: Linux, Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat"."""


def own_ns(waited: Path = WAITED) -> int:
    """This computer's clock without the time in which the thread was ready and others had the processor.

    Without such a file, or with another in its place, it is the plain clock.
    """
    try:
        delay_ns = int(waited.read_text("ascii").split()[1])
    except (OSError, IndexError, ValueError):
        delay_ns = 0
    return time.perf_counter_ns() - delay_ns


@contextmanager
def pausing(name: str, host_only: bool) -> Iterator[None]:
    """What is inside is a pause of this name; with `host_only` it is charged at this computer's time."""
    session = current.session
    if not Session.is_running() or session.remote is not None:
        yield
        return
    if host_only and session.counts_modules:
        began_ns = own_ns()
        try:
            yield
        finally:
            session.account(HostWork(Activity.PAUSE, name, max(0, own_ns() - began_ns)))
        return
    session.account(BeginPause(name))
    try:
        yield
    finally:
        session.account(EndPause())


def register_pauses() -> None:
    """Hear of the pauses that programs mark."""
    marking.pause_with(pausing)
