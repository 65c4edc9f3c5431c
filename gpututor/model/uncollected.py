"""Pricing without garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection inside: pricing makes very many small objects that stay, and walking them doubles its time.

    Whoever found it switched on switches it on again, so several readers' threads don't get in each other's way.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
