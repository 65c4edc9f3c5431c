"""Two traces of one job, before and after a change: what each account takes a step, and whether the gain came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from gpututor.causes import Finding
from gpututor.explain.explained import Explained
from gpututor.explain.report_json import FORMAT, VERSION, document
from gpututor.ledger import Account
from gpututor.text import duration

MOVED_SHARE = 0.01
"""Our choice: an account that changed by less than a hundredth of the step before isn't listed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Before and after. Times are nanoseconds of a typical step, or of the window where one of them has no steps."""

    before: Explained
    after: Explained

    @property
    def per(self) -> str:
        """What the times are for: "step" or "window"."""
        both = self.before.window.ledger.n_steps and self.after.window.ledger.n_steps
        return "step" if both else "window"

    def unit_ns(self, one: Explained) -> float:
        """A typical step's length, or the window's."""
        return one.typical.step_ns if self.per == "step" else one.window.ledger.window_ns

    def account_ns(self, one: Explained, account: Account) -> float:
        """What an account takes of it."""
        return one.typical.accounts_ns[account] if self.per == "step" else one.window.ledger.charged_ns[account]

    def changed(self) -> list[tuple[Account, float, float]]:
        """Accounts that changed, the largest change first: account, before, after."""
        told = [(a, self.account_ns(self.before, a), self.account_ns(self.after, a)) for a in Account]
        least = MOVED_SHARE * self.unit_ns(self.before)
        return sorted((t for t in told if abs(t[2] - t[1]) >= least), key=lambda t: -abs(t[2] - t[1]))

    def gone(self) -> list[tuple[Finding, float]]:
        """Findings before whose account is down to a quarter since, with the best that was said to come of that."""
        found = []
        for finding in self.before.findings:
            if finding.account is None or finding.gain is None:
                continue
            before, after = (self.account_ns(one, finding.account) for one in (self.before, self.after))
            if after <= before / 4:
                held = self.before.window.ledger.share(finding.account)
                own = min(1.0, (finding.share or 0) / held) if held else 1.0  # less where it explains a part
                found.append((finding, self.unit_ns(self.before) - own * before))
        return found

    def sentences(self) -> Iterator[str]:
        """What came of it, in sentences."""
        before, after = self.unit_ns(self.before), self.unit_ns(self.after)
        times = before / after
        how = f"{times:.2f} times as fast" if times >= 1 else f"{1 / times:.2f} times as slow"
        yield f"A {self.per} takes {duration(after)} instead of {duration(before)}: {how}."
        for finding, expected in self.gone():
            yield (
                f"{finding.cause.value}: that is gone. Without it, {duration(expected)} a {self.per} was the most that "
                f"could be hoped for; it is {duration(after)}."
            )
        if not self.changed():
            yield "No account changed by a hundredth of it."


def show(one: Comparison, console: Console) -> None:
    """Print what changed."""
    console.print(f"\nBefore: {one.before.name}\nAfter:  {one.after.name}\n", markup=False)
    for sentence in one.sentences():
        console.print(sentence, markup=False)
    changed = one.changed()
    if not changed:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for title in ("", "before", "after", "change"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    for account, before, after in changed:
        sign = "+" if after > before else "−"
        table.add_row(account.value, duration(before), duration(after), f"{sign}{duration(abs(after - before))}")
    console.print()
    console.print(table)


def as_data(one: Comparison) -> dict[str, Any]:
    """What changed, and both documents, as plain data."""
    return {
        "format": f"{FORMAT}-diff",
        "version": VERSION,
        "per": one.per,
        "before_ns": one.unit_ns(one.before),
        "after_ns": one.unit_ns(one.after),
        "accounts_ns": {
            a.name.lower(): {"before": one.account_ns(one.before, a), "after": one.account_ns(one.after, a)}
            for a in Account
        },
        "sentences": list(one.sentences()),
        "before": document(one.before),
        "after": document(one.after),
    }
