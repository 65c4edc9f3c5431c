"""A run beside what was expected of it, account by account, each with its room and what could explain it.

The room of an account is the error that such predictions have, either way, and `FLOOR_SHARE` of the step: an account
that is expected to be zero may still be a little. Where one of the two sides doesn't split its busy time, all busy
accounts are one line. Where marks alone were measured, gaps between kernels count as busy on that side, so launch
overhead and blocking syncs belong to that line too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpututor.errors import ExpectationError
from gpututor.expect.accuracy import FLOOR_SHARE
from gpututor.expect.band import Band, Difference, around
from gpututor.expect.experiments import Experiment, next_experiment
from gpututor.expect.explanations import explanations
from gpututor.ledger import BUSY, Account, Ledger
from gpututor.text import duration

INSIDE_PARTS = (Account.LAUNCH_OVERHEAD, Account.BLOCKING_SYNC)
"""What marks at the borders of parts can't tell from kernels."""

MODELS_WORDS = ("the model assumes", "the model's", "described")
"""What explanations call a prediction; longer phrases first."""

UNSEEN_GAPS = "marks can't see gaps between kernels, so launch overhead and blocking syncs are in the busy line"

# What a reader may know of a run, and the explanations that it makes likely (True) or rules out (False), by a word in
# them. Our judgement, as their order is.
CIRCUMSTANCES: Mapping[str, str] = {
    "profiled": "the profiler",
    "clocks held": "the clock was lower",
    "pinned": "isn't pinned",
    "debug switches": "a debug switch",
    "other processes": "another process uses",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One account, or all that is busy (`account` None), in nanoseconds a step, with what could explain it.

    Explanations and experiment are there only where the account is outside its room.
    """

    account: Account | None
    name: str
    difference: Difference
    explanations: tuple[str, ...] = ()
    experiment: Experiment | None = None  # the next one, that tells them apart

    @property
    def difference_ns(self) -> float:
        """Seen minus expected."""
        return (self.difference.seen or 0.0) - self.difference.band.expected

    @property
    def text(self) -> str:
        """The account in one line."""
        band, seen = self.difference.band, self.difference.seen
        room = f"{band.in_words(band.low)} to {band.in_words(band.high)}"
        return (
            f"{self.name}: {duration(seen)} seen, {duration(band.expected)} expected ({room}): "
            f"{self.difference.verdict}"
        )


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The step and every account beside their expectations; accounts outside their room come first, largest first."""

    step: Difference
    accounts: tuple[Verdict, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def outside(self) -> tuple[Verdict, ...]:
        """The accounts outside their room."""
        return tuple(v for v in self.accounts if v.difference.verdict == "outside")

    @property
    def text(self) -> str:
        """Everything, as lines: the step, each account, then for those outside what it may be and what to try next."""
        lines = [f"A step: {self.step.text}."]
        for verdict in self.accounts:
            lines.append(f"  {verdict.text}")
            lines += [f"    perhaps {why}" for why in verdict.explanations]
            if verdict.experiment:
                lines.append(f"    to tell: {verdict.experiment.text}")
        if not self.outside:
            lines.append("Every account is within its room.")
        return "\n".join([*lines, *(f"{note[0].upper()}{note[1:]}." for note in self.notes)])

    def __str__(self) -> str:
        return self.text


def judge(
    seen: Ledger,
    expected: Ledger,
    error_share: float,
    source: str,
    *,
    by_marks: bool = False,
    runs: bool = False,
    known: Mapping[str, bool] | None = None,
) -> Verdicts:
    """What a run's ledger says to the one that was expected.

    `error_share` is how far such expectations are off, and `source` who says so. `by_marks` means that the seen ledger
    comes from marks at the borders of parts. `known` are circumstances of the run by their name in `CIRCUMSTANCES`;
    they bring an explanation to the front, or rule it out. `runs` means that earlier runs were expected, not a model.

    Raises:
        ExpectationError: one ledger has steps and the other has none.
    """
    if bool(expected.n_steps) != bool(seen.n_steps):
        raise ExpectationError(
            f"the expected ledger has {expected.n_steps} steps and the seen one {seen.n_steps}; "
            "two ledgers compare step by step, or as whole windows when neither has steps"
        )
    before, after = (
        {a: ns / (ledger.n_steps or 1) for a, ns in ledger.charged_ns.items()} for ledger in (expected, seen)
    )
    return judge_accounts(after, before, error_share, source, by_marks=by_marks, runs=runs, known=known)


def judge_accounts(
    seen: Mapping[Account, float],
    expected: Mapping[Account, float],
    error_share: float,
    source: str,
    *,
    by_marks: bool = False,
    runs: bool = False,
    known: Mapping[str, bool] | None = None,
) -> Verdicts:
    """As `judge`, of accounts in nanoseconds a step.

    Raises:
        ExpectationError: `error_share` is negative.
    """
    step_ns = sum(expected.values())
    step = Difference(around(step_ns, error_share, "ns", source), sum(seen.values()))
    lines: list[Verdict] = []
    for name, account, members in _lines(seen, expected, by_marks):
        pair = sum(expected.get(a, 0.0) for a in members), sum(seen.get(a, 0.0) for a in members)
        if any(pair):
            room = _room(pair[0], step_ns, error_share, source)
            lines.append(_verdict(name, account, Difference(room, pair[1]), known or {}, runs=runs))
    lines.sort(key=lambda v: (v.difference.verdict != "outside", -abs(v.difference_ns)))
    return Verdicts(step, tuple(lines), (UNSEEN_GAPS,) if by_marks else ())


def _lines(
    seen: Mapping[Account, float], expected: Mapping[Account, float], by_marks: bool
) -> list[tuple[str, Account | None, tuple[Account, ...]]]:
    """What is compared: accounts one by one, busy ones together where a side doesn't split them."""
    unsplit = by_marks or any(side.get(Account.BUSY_UNSPLIT) for side in (seen, expected))
    together = (*BUSY, *(INSIDE_PARTS if by_marks else ())) if unsplit else ()
    alone = [(a.value, a, (a,)) for a in Account if a not in together]
    return [*alone, ("forward, backward, optimizer" if by_marks else "busy", None, together)] if together else [*alone]


def _room(expected_ns: float, step_ns: float, error_share: float, source: str) -> Band:
    """The band of one account: the error of such expectations, and a share of the step either way."""
    band = around(expected_ns, error_share, "ns", source)
    floor_ns = FLOOR_SHARE * step_ns
    return Band(max(0.0, band.low - floor_ns), expected_ns, band.high + floor_ns, "ns", source)


def _verdict(
    name: str, account: Account | None, difference: Difference, known: Mapping[str, bool], *, runs: bool
) -> Verdict:
    if difference.verdict != "outside":
        return Verdict(account, name, difference)
    more = (difference.seen or 0.0) > difference.band.expected
    if account is None:
        why = explanations(Account.LATENCY_BOUND, more=more) + explanations(Account.LAUNCH_OVERHEAD, more=more)
    else:
        why = explanations(account, more=more)
    told = tuple(worded(each, runs=runs) for each in ranked(why, known))
    return Verdict(account, name, difference, told, next_experiment(account) if more else None)


def worded(why: str, *, runs: bool) -> str:
    """An explanation in words that fit what was expected: a model's prediction, or (`runs`) what runs before gave.

    >>> worded("the disk is slower than the model assumes", runs=True)
    'the disk is slower than before'
    """
    for words in MODELS_WORDS if runs else ():
        why = why.replace(words, "before")
    return why


def ranked(why: tuple[str, ...], known: Mapping[str, bool]) -> tuple[str, ...]:
    """Explanations with what is known to hold in front, and without what is known not to.

    >>> ranked(("the disk", "the profiler was on"), {"profiled": True})
    ('the profiler was on', 'the disk')
    >>> ranked(("the disk", "the profiler was on"), {"profiled": False})
    ('the disk',)
    """
    words = {CIRCUMSTANCES[name]: holds for name, holds in known.items() if name in CIRCUMSTANCES}
    left = [text for text in why if not any(word in text and not holds for word, holds in words.items())]
    return tuple(sorted(left, key=lambda text: not any(word in text and holds for word, holds in words.items())))
