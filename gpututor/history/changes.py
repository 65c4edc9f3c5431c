"""Runs of one configuration held against each other: two of them, or each against the band of those before it.

The rule for a change. A run is held against the median of the last `LAST` runs of its configuration that agreed with
each other, with a band of three robust standard deviations (1.4826 times the median distance from the median), and
`FLOOR_SHARE` of the median at least. A change begins with a run outside that band and goes on while the runs after it
stay out on the same side. With fewer than `LEAST` runs before it nobody can tell. One run outside may be chance; the
sentence says how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gpututor.expect.band import Band
from gpututor.history.entry import Entry, Key
from gpututor.ledger import Account
from gpututor.text import NBSP, duration

LAST = 5
"""Our choice: enough for a median that one bad run doesn't move, few enough to follow a slow drift."""

LEAST = 3
"""Our choice: two runs have no median distance to speak of."""

FLOOR_SHARE = 0.03
"""Our choice: a step repeated on one machine in one hour seldom differs by more; simulated steps repeat exactly."""

SIGMA = 1.4826
"""The median distance of normal numbers from their median, times this, is their standard deviation."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One account of two runs, or of two groups of runs, in nanoseconds a step."""

    account: Account
    before_ns: float
    after_ns: float

    @property
    def difference_ns(self) -> float:
        """After minus before."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class Change:
    """A step time that left the band of the runs before it, first in run `since`, last seen there in run `until`."""

    key: Key
    since: Entry
    until: Entry
    n_runs: int
    band: Band
    after_ns: float
    moved: tuple[Moved, ...]
    over: bool  # later runs are in the band again
    before: Entry  # the last run in the band

    @property
    def slower(self) -> bool:
        """Whether steps became longer."""
        return self.after_ns > self.band.expected

    @property
    def share(self) -> float:
        """How much longer a step is than before, as a share; negative where it became shorter."""
        return self.after_ns / self.band.expected - 1

    @property
    def account(self) -> Moved | None:
        """The account that moved most in the direction of the step; None where the runs say nothing of accounts."""
        return next((m for m in self.moved if (m.difference_ns > 0) == self.slower), None)

    @property
    def text(self) -> str:
        """The change in one sentence, without a full stop."""
        words = f"{self.when}: {signed(self.share)} a step, {duration(self.band.expected)} before and "
        words += f"{duration(self.after_ns)} after"
        if self.account is not None:
            words += f", on the account {self.account.account.value}"
        runs = "one run, so it may be chance" if self.n_runs == 1 else f"{self.n_runs} runs"
        return f"{words} ({'; '.join([runs, f'against {self.band.source}', *different(self.since, self.before)])})"

    @property
    def when(self) -> str:
        """The runs it was seen in, in words."""
        first, last = self.since.number, self.until.number
        if not self.over:
            return f"since run {first}"
        return f"in run {first}" if first == last else f"runs {first} to {last}"


def signed(share: float) -> str:
    """A relative change as text.

    >>> signed(0.18), signed(-0.042)
    ('+18\\xa0%', '−4.2\\xa0%')
    """
    size = f"{abs(100 * share):.0f}" if abs(share) >= 0.1 else f"{abs(100 * share):.1f}"
    return f"{'+' if share >= 0 else '−'}{size}{NBSP}%"


def moved(before: Mapping[Account, float], after: Mapping[Account, float]) -> tuple[Moved, ...]:
    """The accounts that differ, the largest difference first."""
    both = (Moved(a, before.get(a, 0.0), after.get(a, 0.0)) for a in Account if a in before or a in after)
    return tuple(sorted((m for m in both if m.difference_ns), key=lambda m: -abs(m.difference_ns)))


def usual(runs: Sequence[Entry]) -> dict[Account, float]:
    """The median of each account over several runs, in nanoseconds a step."""
    told = [run.accounts_ns for run in runs if run.accounts_ns]
    found = {a: median(each.get(a, 0.0) for each in told) for a in Account} if told else {}
    return {account: ns for account, ns in found.items() if ns}


def different(run: Entry, before: Entry) -> list[str]:
    """What else is different between two runs: versions, the commit."""
    names = sorted({*run.versions, *before.versions})
    out = [
        f"{name} {before.versions.get(name, 'not known')} before and {run.versions.get(name, 'not known')} after"
        for name in names
        if run.versions.get(name) != before.versions.get(name)
    ]
    if run.commit != before.commit:
        commits = [(each or "not known")[:9] for each in (before.commit, run.commit)]
        out.append(f"commit {commits[0]} before and {commits[1]} after")
    return out


def band_of(runs: Sequence[Entry]) -> Band | None:
    """The room that repeats of these runs' steps have, in nanoseconds; None with fewer than `LEAST` of them."""
    times = [run.step_ns for run in runs if run.step_ns][-LAST:]
    if len(times) < LEAST:
        return None
    middle = median(times)
    half = max(FLOOR_SHARE * middle, 3 * SIGMA * median(abs(t - middle) for t in times))
    return Band(max(0.0, middle - half), middle, middle + half, "ns", f"the median of {len(times)} runs before")


def groups(runs: Sequence[Entry]) -> dict[Key, list[Entry]]:
    """Runs with a step time by configuration, in the order of their numbers."""
    out: dict[Key, list[Entry]] = {}
    for run in runs:
        if run.step_ns:
            out.setdefault(run.key, []).append(run)
    return out


def changes(runs: Sequence[Entry]) -> tuple[Change, ...]:
    """Every change among runs of one configuration, in order; the last one may still stand (`over` is False)."""
    found: list[Change] = []
    base: list[Entry] = []
    out: list[Entry] = []  # the runs of the change that goes on
    for run in runs:
        band = band_of(base)
        if band is None or _side(run, band) == 0:
            if out:
                found.append(_change(base, out, over=True))
            base, out = [*base, run], []
            continue
        if out and _side(run, band) != _side(out[0], band):
            found.append(_change(base, out, over=True))
            out = [run]
            continue
        level = band_of(out)
        if (
            level is not None and _side(run, level) != 0
        ):  # it moved once more: the last level is what it is held against
            found.append(_change(base, out, over=False))
            base, out = out, [run]
            continue
        out.append(run)
    if out:
        found.append(_change(base, out, over=False))
    return tuple(found)


def _side(run: Entry, band: Band) -> int:
    step_ns = run.step_ns or 0.0
    return 1 if step_ns > band.high else -1 if step_ns < band.low else 0


def _change(base: Sequence[Entry], out: Sequence[Entry], *, over: bool) -> Change:
    band = band_of(base)
    assert band is not None
    after_ns = median(run.step_ns or 0.0 for run in out)
    return Change(
        key=out[0].key,
        since=out[0],
        until=out[-1],
        n_runs=len(out),
        band=band,
        after_ns=after_ns,
        moved=moved(usual(base[-LAST:]), usual(out)),
        over=over,
        before=base[-1],
    )
