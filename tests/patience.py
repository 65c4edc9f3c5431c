"""Tests on real time, on machines where others work too."""

from __future__ import annotations

import functools
from collections.abc import Callable

TRIES = 3


def in_one_of_three(test: Callable[[], None]) -> Callable[[], None]:
    """The test holds if it does in one of three tries: other programs can spoil real time, but they can't make it.

    Only for what noise makes false and never true, such as "takes less than".
    """

    @functools.wraps(test)
    def tried() -> None:
        for left in reversed(range(TRIES)):
            try:
                test()
            except AssertionError:
                if not left:
                    raise
            else:
                return

    return tried
