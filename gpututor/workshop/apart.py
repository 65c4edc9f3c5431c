"""How learners' code is kept from the server's files while it is checked."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_ISOLATION = "gpututor.lab.isolation"


def apart() -> AbstractContextManager[object]:
    """A block in which learners' code runs as well isolated as this machine can."""
    if find_spec(_ISOLATION) is None:
        return nullcontext()
    isolation: Any = import_module(_ISOLATION)
    found: AbstractContextManager[object] = isolation.isolated(isolation.best())
    return found


def warning() -> str | None:
    """What an instructor must know where learners' code can read what the server can; None where it can't."""
    if find_spec(_ISOLATION) is not None:
        isolation: Any = import_module(_ISOLATION)
        if isolation.best() == isolation.bubblewrap():
            return None
    return (
        "Learners' code runs with limits but unsandboxed, so it can read what you can, keys and answers included; "
        "install bubblewrap, or give this server a user of its own."
    )
