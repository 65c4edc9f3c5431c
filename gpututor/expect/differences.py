"""Two ledgers side by side: on which account a difference sits, and what could explain it."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.errors import ExpectationError
from gpututor.expect.band import Difference, around
from gpututor.expect.explanations import explanations
from gpututor.ledger import Account, Ledger
from gpututor.text import duration


@dataclass(frozen=True, slots=True)
class AccountDifference:
    """One account in both ledgers, in nanoseconds a step, or of the whole window where there are no steps."""

    account: Account
    expected_ns: float
    seen_ns: float

    @property
    def difference_ns(self) -> float:
        """Seen minus expected; positive where more time was lost than expected."""
        return self.seen_ns - self.expected_ns

    @property
    def explanations(self) -> tuple[str, ...]:
        """What could explain it, the likeliest first."""
        return explanations(self.account, more=self.difference_ns > 0)

    @property
    def text(self) -> str:
        """The difference in words."""
        word = "more" if self.difference_ns > 0 else "less"
        return (
            f"{self.account.value}: {duration(self.seen_ns)} seen, {duration(self.expected_ns)} expected, "
            f"{duration(abs(self.difference_ns))} {word}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Wall time beside its expectation, and the accounts on which the difference sits, the largest first."""

    wall: Difference
    accounts: tuple[AccountDifference, ...]

    @property
    def largest(self) -> AccountDifference | None:
        """The account that moved wall time most in the direction in which it moved; None if both ledgers agree."""
        if self.wall.seen is None:
            return None
        slower = self.wall.seen >= self.wall.band.expected
        same_way = [a for a in self.accounts if (a.difference_ns > 0) == slower]
        return same_way[0] if same_way else None

    @property
    def text(self) -> str:
        """The verdict on wall time; outside the band also where the difference sits."""
        if self.wall.verdict != "outside" or self.largest is None:
            return f"{self.wall.text}."
        why = self.largest.explanations
        return f"{self.wall.text}. Most of it is {self.largest.text}" + (f". Perhaps {why[0]}." if why else ".")


def differences(expected: Ledger, seen: Ledger) -> tuple[AccountDifference, ...]:
    """The accounts that differ, the largest difference first; they sum to the difference in wall time.

    Nanoseconds a step where both ledgers have steps; of the whole windows where neither has.

    Raises:
        ExpectationError: one ledger has steps and the other has none.
    """
    n_expected, n_seen = _units(expected, seen)
    both = (
        AccountDifference(a, expected.charged_ns[a] / n_expected, seen.charged_ns[a] / n_seen)
        for a in Account
        if expected.charged_ns[a] or seen.charged_ns[a]
    )
    return tuple(sorted((d for d in both if d.difference_ns), key=lambda d: -abs(d.difference_ns)))


def compare_ledgers(expected: Ledger, seen: Ledger, error_share: float, source: str) -> Comparison:
    """Wall time of a step against its prediction, and account by account where the difference sits.

    `error_share` is how far such predictions are off, and `source` says who measured that.

    Raises:
        ExpectationError: one ledger has steps and the other has none.
    """
    n_expected, n_seen = _units(expected, seen)
    band = around(expected.window_ns / n_expected, error_share, "ns", source)
    return Comparison(Difference(band, seen.window_ns / n_seen), differences(expected, seen))


def _units(expected: Ledger, seen: Ledger) -> tuple[int, int]:
    if bool(expected.n_steps) != bool(seen.n_steps):
        raise ExpectationError(
            f"the expected ledger has {expected.n_steps} steps and the seen one {seen.n_steps}; "
            "two ledgers compare step by step, or as whole windows when neither has steps"
        )
    return (expected.n_steps or 1), (seen.n_steps or 1)
