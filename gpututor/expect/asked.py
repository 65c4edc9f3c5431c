"""`gpututor.expect(run)`: what a measured run says to what was expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpututor.errors import ExpectationError
from gpututor.expect.verdicts import Verdicts


class Judged(Protocol):
    """What can be held against an expectation, as `gpututor.Measurement` can."""

    def expect(self, expected: Any = None, *, known: Mapping[str, bool] | None = None) -> Verdicts:
        """A verdict on each account."""


def expect(run: Any, expected: Any = None, *, known: Mapping[str, bool] | None = None) -> Verdicts:
    """A verdict on each account of a measured run, with its room, what could explain it, and the next experiment.

    `run` is what `gpututor.measure` gave, after its with-block, or a `Measurement`. `expected` is another measurement
    or a predicted timeline; without it the history's runs of the same configuration are what is expected.

    Raises:
        ExpectationError: `run` is no measurement, or the history has too few runs to tell.
        NoSteps: the run has no result (yet).
        HistoryError: the history can't be read.
    """
    found = run if hasattr(run, "expect") else getattr(run, "result", None)
    if found is None or not hasattr(found, "expect"):
        raise ExpectationError(
            f"an object of type {type(run).__name__} was given, of which nothing can be expected; pass what "
            "gpututor.measure gave, or compare two ledgers with gpututor.expect.judge"
        )
    judged: Judged = found
    given = expected if expected is None or not hasattr(expected, "result") else expected.result
    return judged.expect(given, known=known)
