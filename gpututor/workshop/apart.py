"""How learners' code is kept from the server's files while it is checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Apart = Callable[[], AbstractContextManager[object]]

UNSHUT = (
    "Learners' code runs with limits but in no sandbox, so it can read what you can, keys and answers included; "
    "give this server a user of its own."
)


def chosen(*, limits_only: bool) -> tuple[Apart, str | None]:
    """What is entered while code is checked, and what an instructor must know where that shuts nothing in.

    Raises:
        IsolationMissing: there is no sandbox here, and `limits_only` doesn't ask for none.
    """
    if find_spec("gpututor.lab.isolation") is None:
        return nullcontext, UNSHUT
    isolation: Any = import_module("gpututor.lab.isolation")
    how = isolation.limits_only() if limits_only else isolation.best()
    return (lambda: isolation.isolated(how)), UNSHUT if limits_only else None
