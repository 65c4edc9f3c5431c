"""What a run of lesson 3 found on a machine: which batches are free, the law, and what a larger one learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpututor.cards import Machine
from gpututor.page.kept import Kept
from gpututor.page.sweep import HELD_OUT, STEPS, WHOLE, Point, points_table, sweep_points
from gpututor.text import dollars, duration

FREE = 1.1  # a step that takes a tenth longer still counts as free
WORSE = 1.3  # times the loss, on samples it never saw, that is called worse
BEYOND = 1.5  # times the loss at which the rule of thumb has come to its end
N_WAYS = 6  # of learning
NEAR = 1.1  # times a run's last loss: reached


@dataclass(frozen=True, slots=True)
class Batches:
    """ResNet-50 by its shapes with every batch (`timed`), and a small network that learns (`learned`)."""

    machine: Machine
    timed: Sequence[Point]
    learned: Sequence[Point]

    @property
    def fitting(self) -> list[Point]:
        """The batches that the card has the memory for, the smallest first."""
        return [point for point in self.timed if point.played]

    @property
    def one(self) -> Point:
        """A step with the smallest batch."""
        return self.fitting[0]

    @property
    def largest(self) -> Point:
        """A step with the largest batch that fits."""
        return self.fitting[-1]

    @property
    def free(self) -> Point:
        """A step with the largest batch that takes hardly longer than the smallest."""
        return max((p for p in self.fitting if p.step_ns <= FREE * self.one.step_ns), key=lambda p: p.x or 0)

    @property
    def times(self) -> dict[float | None, float]:
        """By batch: how many times as long as with one sample a step takes."""
        return {point.x: point.step_ns / self.one.step_ns for point in self.fitting} if self.fitting else {}

    def chosen(self) -> list[Point]:
        """The smallest batch, the largest that is free, and the largest that fits; each once."""
        return list({point.x: point for point in (self.one, self.free, self.largest)}.values())

    # --- the law -----------------------------------------------------------------------------------------------------

    @property
    def host_ms(self) -> float:
        """The host's time for a step, which is the same for every batch: the step of the smallest."""
        return self.one.step_ns / 1e6

    @property
    def sample_ms(self) -> float:
        """The card's time for a sample, from the largest batch that fits."""
        return self.largest.step_ns / (self.largest.x or 1) / 1e6

    def law(self) -> list[tuple[float, float]]:
        """Batch and milliseconds of a step, as the longer of the host's and the card's time."""
        batches = [2 ** (k / 8) for k in range(8 * (len(self.fitting) - 1) + 1)]
        return [(n, max(self.host_ms, self.sample_ms * n)) for n in batches]

    def dots(self) -> list[tuple[float, float | None]]:
        """Batch and milliseconds of a step, as they were priced."""
        return [(point.x or 0, point.step_ns / 1e6) for point in self.fitting]

    # --- sentences ---------------------------------------------------------------------------------------------------

    @property
    def free_said(self) -> str:
        """How far a larger batch is free on this card, if at all."""
        card = self.machine.card.name
        if self.free is self.one:
            return f"On this {card} nothing is free: one picture keeps it busy already."
        return (
            f"On this {card} up to {self.free.x} pictures are free: one step takes {duration(self.one.step_ns)} "
            f"with {self.one.x} and {duration(self.free.step_ns)} with {self.free.x}."
        )

    @property
    def worse_said(self) -> str:
        """What the larger batch has learned at the same rate, beside the small one."""
        worse = (self.learned[1].held_out or 0) > WORSE * (self.learned[0].held_out or 0)
        return "faster, and worse" if worse else "about as good"

    def epoch_said(self, n_samples: int) -> str:
        """What so many samples take with the largest free batch, and cost where there is a price."""
        usd = self.free.usd(n_samples)
        took = f"with {self.free.x} it takes {duration(n_samples / self.free.samples_per_s * 1e9)}"
        return took + (f" and costs {dollars(usd)}." if usd is not None else ".")

    # --- what is learned ---------------------------------------------------------------------------------------------

    def learning_lines(self) -> Mapping[str, Sequence[tuple[float, float]]]:
        """Seconds and loss, of the ways that differ most."""
        return {point.label: point.smooth() for point in (*self.learned[:3], *self.learned[4:5])}

    @property
    def target(self) -> float:
        """A loss a tenth above where the first way ends."""
        return self.learned[0].smooth()[-1][1] * NEAR

    def learning_table(self) -> str:
        """What each way of learning costs, and what it reaches; nothing where some weren't run."""
        if len(self.learned) < N_WAYS:
            return ""

        def until(point: Point) -> str:
            reached_ns = point.reaches_ns(self.target)
            return "never" if reached_ns is None else duration(reached_ns)

        columns = (STEPS, WHOLE, ("To the first one's loss", until), HELD_OUT)
        return points_table(self.learned, *columns, first="The way")

    @property
    def learning_said(self) -> str:
        """The rule of thumb for the rate, where it ends, and what a schedule mends; nothing where some weren't run."""
        if len(self.learned) < N_WAYS:
            return ""
        first, last, steady, scheduled = self.learned[0], self.learned[-1], *self.learned[-3:-1]
        end = (
            "and it ends somewhere: the last line is beyond"
            if (last.held_out or 0) > BEYOND * (first.held_out or 0)
            else "and it holds to the last line here"
        )
        return (
            f"The first one's loss: {self.target:.2f}, a tenth above where it ends. A rate in proportion to the batch "
            f"is a rule of thumb (Goyal et al. 2017), {end}. A schedule warms up, then calms down: at batch "
            f"{scheduled.n_samples} {scheduled.held_out:.2f}, without it {steady.held_out:.2f}."
        )


def batches_of(kept: Kept, on: Machine) -> Batches:
    """The run's two jobs as `on` does them.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    points = sweep_points(kept, on)
    timed, learned = ([p for p in points if p.key.startswith(kind)] for kind in ("batch", "learn"))
    return Batches(on, timed, learned)
