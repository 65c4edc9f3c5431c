"""What learners' code did that no answer does: noted where it is seen, for whoever writes a report.

Kinds, not sentences: a sentence can be reworded, and code can raise an error that reads like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from gpututor.lab.limits import Cut

Incident = Cut | Literal["ended", "exit", "record"]
"""A limit that was gone beyond, or: ended its own process, called sys.exit, handed back a made-up record."""

WORDS: dict[Incident, str] = {
    "time": "ran without an end and was stopped",
    "memory": "asked for more memory than it may have",
    "output": "printed without an end and was stopped",
    "answer": "gave back more than it may",
    "processes": "started many processes and was stopped",
    "keeper": "ended the process that starts its calls",
    "ended": "ended its own process",
    "exit": "called sys.exit",
    "record": "handed back a record that was made up or damaged",
}
"""How a report calls it, after "the answer"."""

INCIDENTS: tuple[Incident, ...] = (*get_args(Cut), "ended", "exit", "record")

_NOTED: ContextVar[list[Incident] | None] = ContextVar("noted", default=None)


def note(incident: Incident | None) -> None:
    """Note an incident for the block around, if there is one and anybody listens."""
    heard = _NOTED.get()
    if heard is not None and incident is not None:
        heard.append(incident)


@contextmanager
def incidents() -> Iterator[list[Incident]]:
    """A block in which incidents are noted, in their order."""
    heard: list[Incident] = []
    before = _NOTED.set(heard)
    try:
        yield heard
    finally:
        _NOTED.reset(before)
