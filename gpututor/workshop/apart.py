"""How learners' code is kept from the server's files while it is checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from gpututor.lab.isolation import best, isolated
from gpututor.lab.isolation import limits_only as unshut

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
    how = unshut() if limits_only else best()
    return (lambda: isolated(how)), UNSHUT if limits_only else None
