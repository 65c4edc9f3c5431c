"""What a run of lesson 7 found, as its page says it: numbers derived from the variants, and sentences that follow them.

Every sentence holds whichever way a comparison came out, because the host is the reader's own computer.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpututor.cards import card
from gpututor.experiments.data_in_memory import BATCH, GROUPS
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.step_bars import step_bars
from gpututor.page.sweep import Point, points_where_run
from gpututor.references import Reference, reference
from gpututor.replay import Played, play_file, with_card
from gpututor.text import duration, percent
from gpututor.timeline import Activity, Label

SAME = 0.1  # two steps that differ by less are called about the same: a paced run repeats within some percent
NOISY = 1.5  # a mean so many times the calm stretch says that something else used the processor
BYTES_PER_NUMBER, COLUMNS_AND_LABEL = 4, 21  # fp32; 20 columns and the number to be learned


def fetch_ns(played: Played) -> float:
    """Nanoseconds a step in which the training process waits for its loader."""
    waited = sum(span.duration_ns for span in played.timeline.on(Activity.INPUT))
    return waited / len(played.timeline.steps)


@dataclass(frozen=True, slots=True)
class Found:
    """The variants of a run by key; `loops` are the seconds of the threads' scripts, empty in a run that was stopped.

    `typical_noise` is by how much all steps of a variant took longer than its calm stretch, in the middle of them.
    """

    points: Mapping[str, Point]
    loops: Mapping[str, float]
    typical_noise: float | None

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.points for key in keys)

    def played(self, key: str) -> Played:
        """The variant on the run's machine."""
        played = self.points[key].played
        assert played is not None  # this job fits into any card's memory
        return played

    def group(self, name: str) -> list[Point]:
        """The variants of a group that were run."""
        return [self.points[key] for key in GROUPS[name] if key in self.points]

    @property
    def label(self) -> Label:
        """The label of figures that show several variants."""
        return replace(self.played("rows-0").timeline.label, what="")

    def step_ns(self, key: str) -> float:
        """Mean wall time of the variant's step."""
        return self.points[key].step_ns

    def fetch_ns(self, key: str) -> float:
        """Its wait for a batch, a step."""
        return fetch_ns(self.played(key))

    def same_losses(self, group: str) -> str:
        """Whether the variants of a group learned the same, in words."""
        losses = {self.points[key].losses for key in GROUPS[group]}
        last = self.points[GROUPS[group][0]].last_loss
        if len(losses) == 1 and last is not None:
            return f"the same loss at every step, to the last digit, and {last:.4f} at the end"
        return "losses that differ, so something else than the handing out was changed"

    # --- derived numbers ---------------------------------------------------------------------------------------------

    @property
    def work_ns(self) -> float:
        """What walking through the rows of a batch takes in the training process."""
        return max(0.0, self.fetch_ns("rows-0") - self.fetch_ns("batch-0"))

    @property
    def row_ns(self) -> float:
        """The same for one row."""
        return self.work_ns / BATCH

    @property
    def row_bytes(self) -> int:
        """Bytes of a row and what is to be learned from it."""
        return BYTES_PER_NUMBER * COLUMNS_AND_LABEL

    @property
    def hand_over_ns(self) -> float:
        """By how much one worker lengthens a step whose batches take no work."""
        return max(0.0, self.step_ns("batch-1") - self.step_ns("batch-0"))

    def elsewhere_bars(self) -> list[str]:
        """The same habit in other places, group by group, as HTML."""

        def said(point: Point) -> str:
            return f"busy {percent(point.busy_share or 0)}, last loss {point.last_loss:.4f}"

        groups = ("samplers", "arrays", "texts", "files")
        return [step_bars(self.group(group), said, heading=group.capitalize()) for group in groups]

    # --- sentences ---------------------------------------------------------------------------------------------------

    @property
    def noise(self) -> str:
        """A warning where other programs used the processor meanwhile; else nothing."""
        if self.typical_noise is None or self.typical_noise < NOISY:
            return ""
        return (
            f"Other programs were busy meanwhile: over all steps the mean was {self.typical_noise:.1f} times that of "
            "the calm stretches shown here. Run it again when it is quiet."
        )

    @property
    def workers_said(self) -> str:
        """What two workers do to the step, row by row and a batch at once."""
        by_row = _compared(self.step_ns("rows-2"), self.step_ns("rows-0"))
        at_once = _compared(self.step_ns("batch-2"), self.step_ns("batch-0"))
        best = min(GROUPS["workers"], key=self.step_ns)
        same = " too" if by_row == at_once else ""
        return (
            f"With two of them, row by row is {by_row}, and a batch at once is {at_once}{same}. "
            f"Shortest of the six: {_lower(self.points[best].label)}."
        )

    @property
    def row_said(self) -> str:
        """What a row costs Python; or that it costs nothing that could be seen."""
        if self.work_ns < SAME * self.fetch_ns("rows-0"):
            return "Getting at each row costs nothing that could be seen in this run."
        each = f"{duration(self.row_ns)} for each row of {self.row_bytes} bytes"
        return f"That is {each}: not copying, but Python getting at it."

    @property
    def break_even_said(self) -> str:
        """What handing over costs, whether one worker should pay by that, and whether it did."""
        with_one, without = self.step_ns("rows-1"), self.step_ns("rows-0")
        outcome = f"row by row the step with one took {duration(with_one)}, without {duration(without)}"
        if self.hand_over_ns < SAME * self.step_ns("batch-0"):
            return f"With batches that take no work, a worker adds next to nothing here; {outcome}."
        pays, did = self.work_ns > self.hand_over_ns, with_one < without * (1 - SAME)
        said = f"With batches that take no work, a worker adds $h$ = {duration(self.hand_over_ns)}. "
        if self.row_ns:
            said += f"Some {self.hand_over_ns / self.row_ns:,.0f} such rows a batch break even, so with {BATCH} "
        said += ("a" if self.row_ns else "A") + (" worker should pay" if pays else " worker can't pay")
        doubt = "" if pays == did else ". Near the edge, cores and what else runs on them decide"
        return f"{said}; {outcome}{doubt}."

    @property
    def elsewhere_said(self) -> str:
        """What two workers do for texts and files, and what doing it once does."""
        return " ".join(
            [
                self._once_said("Tokens", "text-loop", "text-loop-2", "text-before"),
                self._once_said("Small files", "files-0", "files-2", "file-one"),
            ]
        )

    def _once_said(self, what: str, loop: str, workers: str, once: str) -> str:
        moved = _compared(self.step_ns(workers), self.step_ns(loop))
        return (
            f"{what}: with two workers the step is {moved} ({duration(self.step_ns(loop))} to "
            f"{duration(self.step_ns(workers))}); done once, before, it takes {duration(self.step_ns(once))}."
        )


def found_in(points: Sequence[Point], data: Mapping[str, Any]) -> Found:
    """What a run's points and data say; a run that was stopped has fewer points, and no loops."""
    noise = [told["mean_step_ns"] / told["step_ns"] for told in data["points"]]
    ran = {point.key: point for point in points if point.played is not None}
    return Found(ran, data.get("loops") or {}, statistics.median(noise) if noise else None)


def found_of(kept: Kept) -> Found:
    """The same from what a run left; nothing without one.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    return found_in(points_where_run(kept), kept.data) if kept.tapes else Found({}, {}, None)


def with_h100_ns(kept: Kept, key: str) -> float:
    """A variant's step with an H100 in the machine that the run had.

    Raises:
        TimelineError: its tape is gone or damaged.
    """
    return play_file(kept.tapes[key], with_card(machine_named(kept.data["machine"]), card("H100-SXM"))).step_ns


def _compared(new_ns: float, old_ns: float) -> str:
    """In words, how a step of `new_ns` compares with one of `old_ns`.

    >>> _compared(1.02, 1.0), _compared(2.1, 1.0), _compared(0.6, 1.0)
    ('about as long', '2.1 times as long', '40\\xa0% shorter')
    """
    ratio = new_ns / old_ns
    if abs(ratio - 1) < SAME:
        return "about as long"
    return f"{ratio:.1f} times as long" if ratio > 1 else f"{percent(1 - ratio)} shorter"


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def thread_rows(found: Found) -> list[tuple[Reference, float | None]]:
    """Each public thread of the lesson with our ratio of the same two things; None where they were not run."""
    loops = found.loops

    def of_loops(slow: str, fast: str) -> float | None:
        return loops[slow] / loops[fast] if slow in loops and fast in loops else None

    def of_steps(slow: str, fast: str) -> float | None:
        return found.step_ns(slow) / found.step_ns(fast) if found.has(slow, fast) else None

    ours = {
        "by row to by batch, no workers": of_loops("by row 0", "by batch 0"),
        "one worker to none": of_loops("by row 1", "by row 0"),
        "two workers to none": of_loops("by row 2", "by row 0"),
        "loader to slices": of_loops("loader", "slices"),
        "columns to rows": of_loops("petastorm by row", "petastorm by batch"),
        "training by batch to by row": of_steps("rows-0", "batch-0"),
        "tokens in the loop": of_steps("text-loop", "text-before"),
        "list to array": of_loops("list", "array"),
        "small files to one": of_steps("files-0", "file-one"),
    }
    return [(reference(name), ratio) for name, ratio in ours.items()]
