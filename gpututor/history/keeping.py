"""Log a run unless the reader doesn't want it. Whatever goes wrong here is a sentence, never the end of a run."""

from __future__ import annotations

import os

from gpututor.errors import HistoryError
from gpututor.history.book import History
from gpututor.history.entry import Entry

SWITCH = "GPUTUTOR_HISTORY"
OFF = {"0", "no", "off", "false"}


def wanted(asked: bool | None = None) -> bool:
    """Whether runs are to be logged: what the caller says, else the environment's GPUTUTOR_HISTORY=0, else yes."""
    if asked is not None:
        return asked
    return os.environ.get(SWITCH, "").strip().casefold() not in OFF


def log(entry: Entry, asked: bool | None = None) -> tuple[int | None, str | None]:
    """The run's number, and a sentence where the history was in trouble; (None, None) where none is wanted."""
    if not wanted(asked):
        return None, None
    history = History()
    try:
        number = history.log(entry)
    except HistoryError as error:
        return None, f"This run is not in the history: {error}."
    return number, history.trouble
