"""Tells the page whose code is running who reads it: whom the front let in with the page's connection."""

from __future__ import annotations

import threading

import marimo as mo

from gpututor.errors import GpututorError
from gpututor.readers import Reader

ID, TEACHES = "gpututor_reader", "gpututor_teaches"
"""Where the front leaves the reader in a request's "meta", which marimo hands to the page and no browser can set."""

_of_this_thread = threading.local()


class NobodyKnown(GpututorError, PermissionError):
    """A page runs that nobody was let in for."""


def of_this_page() -> Reader | None:
    """The reader of the page on whose thread this is called; None elsewhere, as in the server's own work.

    A page has one thread and one reader from its first cell on; a cell that a run's end redraws has no request.

    Raises:
        NobodyKnown: it is a page, and no request of it came through the front.
    """
    known: Reader | None = getattr(_of_this_thread, "reader", None)
    if known is not None:
        return known
    if not mo.running_in_notebook():
        return None
    request = mo.app_meta().request
    told = request.meta.get(ID) if request is not None else None
    if request is None or not isinstance(told, str):
        raise NobodyKnown("this page was opened without a key; open it from your own address")
    reader = Reader(told, teaches=request.meta.get(TEACHES) is True)
    _of_this_thread.reader = reader
    return reader
