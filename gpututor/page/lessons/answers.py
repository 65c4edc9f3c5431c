"""What a run of lesson 9 found on a machine: its numbers, and sentences that follow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gpututor.cards import Machine
from gpututor.experiments.answers import LENGTHS, MATCHED, WATCHED, at_length
from gpututor.experiments.stopwatch import Stopwatch, stopwatch
from gpututor.page.kept import Kept
from gpututor.references import Reference, reference
from gpututor.replay import SameMachine, read_tape
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Label, Origin

NOTHING = 0.005  # a step that is longer by less than half a percent is called as long


@lru_cache(maxsize=512)
def _timed(path: Path, changed_ns: int, on: SameMachine) -> Stopwatch:
    return stopwatch(read_tape(path), on.machine)


@dataclass(frozen=True, slots=True)
class Answers:
    """Each variant of a run on one machine, by key: a mean step under the stopwatch, its label, its losses."""

    machine: Machine
    watched: Mapping[str, Stopwatch]
    labels: Mapping[str, str]
    losses: Mapping[str, tuple[float | None, ...]]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.watched for key in keys)

    @property
    def has_lengths(self) -> bool:
        """Whether every length was run."""
        return self.has(*(at_length(key, n) for key in WATCHED for n in LENGTHS))

    def label(self, what: str) -> Label:
        """What a figure must say that shows several variants."""
        card = self.machine.card
        return Label(Origin.SIMULATED, card.name, self.machine.name, what, n_sms=card.n_sms)

    def step_ns(self, key: str) -> float:
        """Mean wall time of a step."""
        return self.watched[key].step_ns

    def usd(self, key: str, n_steps: int) -> float | None:
        """What so many steps cost on this machine; None without a price."""
        rate = self.machine.usd_per_hour
        return None if rate is None else n_steps * self.step_ns(key) / 3600e9 * rate

    def for_usd(self, key: str, n_steps: int) -> str:
        """The same in words that go on a sentence; empty without a price."""
        usd = self.usd(key, n_steps)
        return "" if usd is None else f", for {dollars(usd)}"

    def saved_share(self, slow: str, fast: str) -> float:
        """The share of the slow one's step that the fast one does without; negative where it is the slower one."""
        return 1 - self.step_ns(fast) / self.step_ns(slow)

    def longer_share(self, key: str, than: str = "silent") -> float:
        """By which share its step is longer."""
        return self.step_ns(key) / self.step_ns(than) - 1

    def same_loss(self, keys: Sequence[str]) -> bool:
        """Whether all of these had the same loss at every step, to the last digit."""
        return len({self.losses[key] for key in keys if key in self.losses}) == 1

    # --- pictures ----------------------------------------------------------------------------------------------------

    def length_lines(self) -> dict[str, list[tuple[float, float | None]]]:
        """Over the length: the share of the step that the stopwatch shows in two readings, and what deleting saves."""
        both, silent = ([at_length(key, n) for n in LENGTHS] for key in ("both", "silent"))
        return {
            "on the stopwatch": [(n, self.watched[key].read_share) for n, key in zip(LENGTHS, both, strict=True)],
            "saved": [(n, max(0.0, self.saved_share(*keys))) for n, *keys in zip(LENGTHS, both, silent, strict=True)],
        }

    @property
    def peak(self) -> int:
        """The length at which deleting both readings saves most."""
        return max(LENGTHS, key=lambda n: self.saved_share(at_length("both", n), at_length("silent", n)))

    # --- sentences ---------------------------------------------------------------------------------------------------

    @property
    def stood_said(self) -> str:
        """Why deleting the line saves so much less than the stopwatch shows, or that it shows little."""
        read, saved = self.watched["item"].read_share, self.saved_share("item", "silent")
        if read < 0.1:
            return "The host hardly stands there: it launches more slowly than the card works."
        if saved > read / 2:
            return "Much of that wait the card was idle as well."
        return "While the host stood there the card worked, and that work is to be done whether you look or not."

    @property
    def moved_said(self) -> str:
        """What deleting the reading does where the batch is copied the ordinary way."""
        before, after = self.watched["plain-item"], self.watched["plain"]
        if after.batch_share < before.batch_share + 0.05:
            return (
                f"Now delete `.item()`. Here it hardly shows: the host waits {percent(before.read_share)} of the "
                f"step, which goes from {duration(before.step_ns)} to {duration(after.step_ns)}."
            )
        return (
            f"Now delete `.item()`: the batch's line goes from {percent(before.batch_share)} to "
            f"{percent(after.batch_share)} of the step, for a copy that takes {duration(after.copy_ns)}. The step goes "
            f"from {duration(before.step_ns)} to {duration(after.step_ns)}. Whoever trusts the stopwatch now mends the "
            "loading."
        )

    @property
    def peak_said(self) -> str:
        """Where reading costs most, and what host and card need there."""
        both = self.watched[at_length("both", self.peak)]
        most = self.saved_share(at_length("both", self.peak), at_length("silent", self.peak))
        host_ns = both.launching_ns + both.batch_ns
        near = 0.6 < both.card_ns / host_ns < 1.7
        where = "where the two need about equally long" if near else "of the lengths tried"
        return (
            f"Most is saved with {self.peak} characters, {percent(most)} of the step, {where}: {duration(host_ns)} and "
            f"{duration(both.card_ns)}."
        )

    @property
    def place_said(self) -> str:
        """Whether a reading after the forward pass costs more than one at the end."""
        early, late = self.longer_share("bar"), self.longer_share("item")
        if early > late + NOTHING:
            return (
                f"After the forward pass it costs more, {percent(early)} against {percent(late)} at the end: there the "
                "host's lead is longer."
            )
        return f"Here it costs the same after the forward pass and at the end, {percent(max(0.0, late))}."

    @property
    def matched_said(self) -> str:
        """What the detector's three ways cost, and how much of it is waiting."""
        one, transfer, together = (self.watched[key] for key in MATCHED)
        waited = one.step_ns - transfer.step_ns
        launched = transfer.step_ns - together.step_ns
        return (
            f"Brought over at once, the same tables save {duration(waited)} of {duration(one.step_ns)}. In one tensor "
            f"they take fewer launches too, which saves {duration(launched)} more."
        )

    # --- others ------------------------------------------------------------------------------------------------------

    def threads(self) -> list[tuple[Reference, float]]:
        """Each public thread of the lesson with the same number from this run, where the run got that far."""
        found = {
            "one of two readings moved": ("both", "item"),
            "loss kept on the card": ("item", "sum"),
            "the wait that moved": ("plain", "plain-item"),
            "wait for data, shown": ("plain",),
            "tables one by one": ("one-by-one", "together"),
        }
        rows = []
        for name, keys in found.items():
            if not self.has(*keys):
                continue
            theirs, first = reference(name), self.watched[keys[0]]
            ratio = first.step_ns / self.step_ns(keys[-1])
            shown = first.batch_share - first.copy_share if len(keys) == 1 else None
            rows.append((theirs, shown if shown is not None else ratio if theirs.unit == "times" else ratio - 1))
        return rows


def answers_of(kept: Kept, on: Machine) -> Answers:
    """What a run, finished or stopped half-way, has on a machine; without a run there are no variants.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    told = [each for each in kept.data["points"] if each["key"] in kept.tapes] if kept.tapes else []
    watched = {}
    for each in told:
        path = kept.tapes[each["key"]]
        watched[each["key"]] = _timed(path, path.stat().st_mtime_ns, SameMachine(on))
    return Answers(
        on,
        watched,
        {each["key"]: each["label"] for each in told},
        {each["key"]: tuple(each["losses"]) for each in told},
    )
