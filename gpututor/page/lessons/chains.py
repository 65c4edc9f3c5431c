"""What a run of lesson 4 found on a machine: kinds of layers, over the length of what they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpututor.cards import Machine, card
from gpututor.expect import Band, Difference, around, compare
from gpututor.experiments.one_after_another import (
    ASKED_LENGTH,
    KINDS,
    LENGTH,
    LENGTHS,
    OVER_LENGTH,
    THREAD_UPDATES,
    key_of,
)
from gpututor.page.kept import Kept
from gpututor.page.sweep import Column, Point, sweep_points
from gpututor.references import reference
from gpututor.replay import Played, play_file, with_card
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Label

BUSY_ENOUGH = 0.8  # a share above which the card isn't said to wait
NAMES = {"loop": "Python's loop", "lstm": "cuDNN's LSTM", "transformer": "Transformer"}
BESIDE = {
    "A loop on a V100, over a TITAN Xp": "LSTM, TITAN V against TITAN Xp",
    "A GRU in one call, over letter by letter": "GRU, letter by letter",
    "An update of one state": "one state in a loop, GPU",
}
LAST = "update"  # the last variant of a run


def swap_said(before: Played, swapped: Played) -> str:
    """Why a wider card helps as little, or as much, as it does."""
    busy = (
        "This time the card isn't waiting for the host: its kernels follow each other closely. But each needs the one "
        f"before, and is so small that {percent(before.ledger.sm_fill_share)} of the SMs have work."
        if (before.ledger.gpu_util_share or 0) > BUSY_ENOUGH
        else "For most of the rest the card waits for the host, as in lesson 2."
    )
    if (swapped.ledger.gpu_util_share or 0) >= BUSY_ENOUGH:
        return busy
    return (
        f"{busy} The H100 needs {duration(swapped.kernel_ns)} for a kernel instead of {duration(before.kernel_ns)}, "
        f"and now waits for the host, {duration(swapped.host_ns_per_launch)} a launch."
    )


@dataclass(frozen=True, slots=True)
class Chains:
    """The variants of a run by key; `trained` are the kinds of layer at the usual length, in order."""

    machine: Machine
    points: Mapping[str, Point]
    whole: bool

    @property
    def trained(self) -> list[Point]:
        """The kinds of layer at the usual length that were run."""
        return [self.points[kind] for kind in KINDS if kind in self.points]

    @property
    def source(self) -> Label | str:
        """What a figure of several variants says of where it comes from."""
        return (self.trained[0].source if self.trained else None) or ""

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.points for key in keys)

    def step_ns(self, kind: str, length: int = LENGTH) -> float:
        """Mean wall time of a step with sequences of this length."""
        return self.points[key_of(kind, length)].step_ns

    def played(self, kind: str) -> Played:
        """One kind at the usual length, as the machine does it."""
        played = self.points[kind].played
        assert played is not None
        return played

    # --- the same loss -----------------------------------------------------------------------------------------------

    @property
    def target(self) -> float:
        """The loss that all kinds reach."""
        return max(point.last_loss or 0.0 for point in self.trained)

    @property
    def until(self) -> Column:
        """A column: when each gets down to the loss that all reach."""

        def said(point: Point) -> str:
            reached_ns = point.reaches_ns(self.target)
            return "—" if reached_ns is None else f"{reached_ns / point.step_ns:.0f} steps, {duration(reached_ns)}"

        return "To the same loss", said

    def until_said(self, point: Point) -> str:
        """How long one needs down to that loss, and what a thousand such runs cost."""
        reached_ns = point.reaches_ns(self.target) or 0.0
        many = point.usd(1000 * reached_ns / point.step_ns * (point.n_samples or 1))
        so = "." if many is None else f"; a thousand such runs cost {dollars(many)}."
        return f"Down to a loss of {self.target:.2f} takes {duration(reached_ns)}{so}"

    @property
    def same_losses(self) -> str:
        """How far apart the loop's and the call's losses end."""
        apart = abs((self.points["loop"].last_loss or 0.0) - (self.points["lstm"].last_loss or 0.0))
        return f"losses within {apart:.1g} of each other" if apart else "the same losses"

    def kernels_said(self, kind: str) -> str:
        """How many kernels a step has, and how long each takes."""
        played = self.played(kind)
        return f"{played.ledger.n_kernels / played.ledger.n_steps:.0f} kernels of {duration(played.kernel_ns)}"

    def ledger_said(self, kind: str) -> dict[str, str]:
        """The causes of two accounts, in this run's numbers."""
        each = f"{self.kernels_said(kind)} on average a step"
        launch = duration(self.played(kind).host_ns_per_launch)
        return {
            "launch_overhead": f"{each}; the host needs {launch} to launch one.",
            "too_few_blocks": f"{each}: too small for all of the card's SMs.",
        }

    # --- over the length ---------------------------------------------------------------------------------------------

    def length_lines(self) -> dict[str, Sequence[tuple[float, float]]]:
        """Words in a row, and how many times as long a step takes as with the fewest."""
        return {
            name: [
                (n, self.step_ns(kind, n) / self.step_ns(kind, LENGTHS[0]))
                for n in sorted({LENGTH, *OVER_LENGTH[kind]})
            ]
            for kind, name in NAMES.items()
        }

    def word_ns(self, kind: str) -> float:
        """What one more word adds to a step, between the two longest lengths."""
        shorter, longer = OVER_LENGTH[kind][-2:]
        return (self.step_ns(kind, longer) - self.step_ns(kind, shorter)) / (longer - shorter)

    def times_as_fast(self, length: int) -> float:
        """How many times as fast as cuDNN's LSTM the Transformer is at this length."""
        return self.step_ns("lstm", length) / self.step_ns("transformer", length)

    @property
    def few_words_said(self) -> str:
        """Which of the two is faster with few words."""
        if self.times_as_fast(LENGTHS[0]) < 1:
            return "With few words it is the slower one, as issue 50 of v-mipeng/LexiconAugmentedNER met."
        return "It is the faster one with few words too."


def chains_of(kept: Kept, on: Machine, *, all_lengths: bool = False) -> Chains:
    """The kinds of layer as `on` does them, at the usual length or at all.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    keys = [*KINDS]
    if all_lengths:
        keys += [key_of(kind, n) for kind, lengths in OVER_LENGTH.items() for n in (*lengths, ASKED_LENGTH)]
    return Chains(on, {point.key: point for point in sweep_points(kept, on, keys)}, kept.has(LAST))


def seen_beside(kept: Kept, on: Machine) -> list[tuple[str, Difference]]:
    """What others measured of loops, beside the same in this run on `on`."""
    loop, letters, stretch, update = (
        play_file(kept.tapes[key], on).step_ns for key in ("loop", "letters", "stretch", LAST)
    )
    titan_ns = play_file(kept.tapes["loop"], with_card(on, card("TITAN-Xp"))).step_ns
    cards, *others = (reference(name) for name in BESIDE.values())
    bands = [
        Band(min(cards.values), cards.value, max(cards.values), cards.unit, cards.source),
        *(around(each.value, 0.3, each.unit, each.source) for each in others),
    ]
    seen = (loop / titan_ns, letters / stretch, update / THREAD_UPDATES)
    return [(words, compare(band, ours)) for words, band, ours in zip(BESIDE, bands, seen, strict=True)]
