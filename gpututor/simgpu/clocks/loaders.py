"""Marks what a `DataLoader` takes as input: its real time on a paced clock, a mark without length on the virtual one.

On the virtual clock a loader costs nothing unless somebody says how long a batch takes, because its workers run
by this computer's clock and not by the simulated host's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from gpututor.model.tape import HostWork
from gpututor.simgpu.clocks.paced import clock_of
from gpututor.simgpu.private.modules import BaseLoaderIterator
from gpututor.simgpu.session import current
from gpututor.timeline import Activity

NEXT_BATCH = "next batch"


def mark_loaders() -> None:
    """Wrap the making of every DataLoader's iterator, which starts its workers, and each of its steps."""
    for owner, name in ((DataLoader, "__iter__"), (BaseLoaderIterator, "__next__")):
        setattr(owner, name, _as_input(getattr(owner, name)))


def _as_input(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`call(loader)` with its time marked as input."""

    @functools.wraps(call)
    def marked(self: Any) -> Any:
        clock = clock_of(current.session)
        current.session.account(HostWork(Activity.INPUT, NEXT_BATCH, 0))  # on a paced clock this ends the time before
        if clock is None:
            return call(self)
        before, clock.activity = clock.activity, Activity.INPUT
        try:
            return call(self)
        finally:
            current.session.account(HostWork(Activity.INPUT, NEXT_BATCH, 0))
            clock.activity = before

    return marked
