"""Expected outcomes: a prediction with its band and source, beside what was seen."""

from gpututor.expect.band import Band, Difference, around, compare, of_runs
from gpututor.expect.differences import AccountDifference, Comparison, compare_ledgers, differences

__all__ = [
    "AccountDifference",
    "Band",
    "Comparison",
    "Difference",
    "around",
    "compare",
    "compare_ledgers",
    "differences",
    "of_runs",
]
