"""Expected outcomes: a prediction with its band and source, beside what was seen.

`gpututor.expect` is this module and can be called: `gpututor.expect(run)`; see `asked.expect`.
"""

import sys
from types import ModuleType
from typing import Any

from gpututor.expect.asked import expect as _expect
from gpututor.expect.band import Band, Difference, around, compare, of_runs
from gpututor.expect.differences import AccountDifference, Comparison, compare_ledgers, differences
from gpututor.expect.verdicts import Verdict, Verdicts, judge, judge_accounts

__all__ = [
    "AccountDifference",
    "Band",
    "Comparison",
    "Difference",
    "Verdict",
    "Verdicts",
    "around",
    "compare",
    "compare_ledgers",
    "differences",
    "judge",
    "judge_accounts",
    "of_runs",
]


class _Callable(ModuleType):
    """A module that can be called, so that one name is the package and its main function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Verdicts:
        """A verdict on each account of a run; the arguments are those of `gpututor.expect.asked.expect`."""
        return _expect(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
