"""Who reads a page. On a reader's own machine the page's word counts; a server for a class knows better.

Such a server calls `ask` once, before it serves; from then on a page's learner is whom its key belongs to, whatever
stands in the page's address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reader:
    """Who opened a page: the id under which progress is kept, and whether they teach the class."""

    id: str
    teaches: bool = False


def _nobody_knows() -> Reader | None:
    return None


_tell: Callable[[], Reader | None] = _nobody_knows


def ask(tell: Callable[[], Reader | None]) -> None:
    """Have `tell` say who opened the page whose code is running: a reader, or None for code that is no page's."""
    global _tell
    _tell = tell


def learner(asked: str) -> str:
    """Whose progress counts here: the reader's whom the server knows, else `asked`."""
    known = _tell()
    return asked if known is None else known.id


def in_a_class() -> bool:
    """Whether a server for a class knows who reads this page."""
    return _tell() is not None


def teaches(asked: bool) -> bool:
    """Whether notes for instructors are shown: `asked`, but for readers whom a server knows only to who teaches."""
    known = _tell()
    return asked if known is None else asked and known.teaches
