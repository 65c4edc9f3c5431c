"""A measured loop beside what was expected of it: another measurement, a prediction, or the runs before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpututor.errors import ExpectationError
from gpututor.expect import Verdicts, judge, judge_accounts
from gpututor.expect.accuracy import FLOOR_SHARE, error_of, regime_of
from gpututor.history import Entry, History
from gpututor.history.changes import LAST, LEAST, band_of, usual
from gpututor.ledger import charge
from gpututor.measure.keeping import entry_of
from gpututor.text import percent
from gpututor.timeline import Timeline

if TYPE_CHECKING:
    from gpututor.measure.measurement import Measurement

HELD_SHARE = 0.05
"""Our choice: clocks that are held down for a twentieth of the time begin to show in a step."""


def verdicts(
    found: Measurement, expected: Measurement | Timeline | None = None, *, known: Mapping[str, bool] | None = None
) -> Verdicts:
    """What `found` says to `expected`: another measurement, a predicted timeline, or (None) the history's runs before.

    Raises:
        ExpectationError: the history has too few runs of the same configuration to tell.
        HistoryError: the history can't be read.
    """
    by_marks = found.window is None
    circumstances = {**_circumstances(found), **(known or {})}
    if expected is None:
        before = _before(found)
        band = band_of(before)
        if band is None:
            raise ExpectationError(
                f"cannot tell: the history has {len(before)} runs of {found.label.what} with this configuration before "
                f"this one, and it takes {LEAST}; measure again, or pass what you expect"
            )
        error_share = max(FLOOR_SHARE, band.high / band.expected - 1)
        seen = entry_of(found).accounts_ns
        return judge_accounts(
            seen, usual(before[-LAST:]), error_share, band.source, by_marks=by_marks, runs=True, known=circumstances
        )
    if isinstance(expected, Timeline):
        ledger = charge(expected)
        error_share, source = error_of(regime_of(expected, ledger))
        return judge(found.best_ledger, ledger, error_share, source, by_marks=by_marks, known=circumstances)
    source = (
        f"another measurement, of {expected.measured_at[:10] or 'no known day'}, give or take {percent(FLOOR_SHARE)}"
    )
    by_marks = by_marks or expected.window is None
    return judge(
        found.ledger if by_marks else found.best_ledger,
        expected.ledger if by_marks else expected.best_ledger,
        FLOOR_SHARE,
        source,
        by_marks=by_marks,
        runs=True,
        known=circumstances,
    )


def _before(found: Measurement) -> list[Entry]:
    """Runs of the same configuration that were logged before this one."""
    mine = entry_of(found)
    runs = [run for run in History().runs() if run.key == mine.key and run.step_ns]
    last = runs[-1] if runs else None
    itself = last is not None and last.step_ns == mine.step_ns and last.accounts_ns == dict(mine.accounts_ns)
    return runs[:-1] if itself else runs


def _circumstances(found: Measurement) -> dict[str, bool]:
    """What the measurement itself says of its circumstances."""
    told = {"profiled": found.window is not None}
    held = found.readings.get("clocks_held_share")
    if held is not None:
        told["clocks held"] = held >= HELD_SHARE
    return told
