"""Stretches of a run that are no training, and what the host really does in them.

On the virtual clock the host's time comes from a table, and a table knows no file, no histogram and no garbage
collection. So a block that only the host works in is timed on this computer, and that time stands on the tape: it is
the one part of such a run that doesn't repeat to the nanosecond. On the paced clock all of the host's time is real.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpututor import marking
from gpututor.model.marks import BeginPause, EndPause
from gpututor.model.tape import HostWork
from gpututor.simgpu.session import Session, current
from gpututor.timeline import Activity


@contextmanager
def pausing(name: str, host_only: bool) -> Iterator[None]:
    """What is inside is a pause of this name; with `host_only` it is charged at this computer's time."""
    session = current.session
    if not Session.is_running() or session.remote is not None:
        yield
        return
    if host_only and session.counts_modules:
        began_ns = time.perf_counter_ns()
        try:
            yield
        finally:
            session.account(HostWork(Activity.PAUSE, name, time.perf_counter_ns() - began_ns))
        return
    session.account(BeginPause(name))
    try:
        yield
    finally:
        session.account(EndPause())


def register_pauses() -> None:
    """Hear of the pauses that programs mark."""
    marking.pause_with(pausing)
