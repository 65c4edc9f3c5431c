"""What lesson 8 found, as numbers and sentences: who prepared the pictures, and how they crossed the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.exercises.arrivals import exposed_ns
from gpututor.experiments.preparing import COPIES, WHO
from gpututor.ledger import Account
from gpututor.page.kept import Kept
from gpututor.page.sweep import Column, Point, points_where_run, sweep_points
from gpututor.references import Reference, reference
from gpututor.replay import Played
from gpututor.text import duration, percent
from gpututor.timeline import COMPUTING, Activity

BYTES = {"copy fp64": 8, "copy": 4, "pinned": 4, "ahead": 4, "bytes": 1, "bytes ahead": 1}  # a value, as it is copied
ALIKE = 1.25  # two waits of this computer nearer than that are within what a run repeats

EXPOSED: Column = (
    "Exposed copy",
    lambda point: percent(point.played.ledger.share(Account.EXPOSED_COPY)) if point.played else "—",
)


@dataclass(frozen=True, slots=True)
class Found:
    """The run's points by key, and the losses on pictures that no step saw."""

    points: Mapping[str, Point]
    held_out: Mapping[str, float | None]

    def has(self, *keys: str) -> bool:
        """Whether all these variants ran."""
        return all(key in self.points and self.points[key].played is not None for key in keys)

    def played(self, key: str) -> Played:
        """A variant as it was played; it must be there (`has`)."""
        played = self.points[key].played
        assert played is not None
        return played

    def step_ns(self, key: str) -> float:
        """Mean wall time of a step."""
        return self.points[key].step_ns

    def busy_share(self, key: str) -> float:
        """Share of the time with a kernel running."""
        return self.played(key).ledger.gpu_util_share

    def waiting_ns(self, key: str) -> float:
        """Time in a step in which the card waits for the batch to be made."""
        played = self.played(key)
        return played.step_ns * played.ledger.share(Account.WAITING_FOR_INPUT)

    def making_ns(self, key: str) -> float:
        """Host time in a step that goes into the batch, whether or not the card waits for it."""
        timeline = self.played(key).timeline
        return sum(span.duration_ns for span in timeline.on(Activity.INPUT)) / max(1, len(timeline.steps))

    def copy_ns(self, key: str) -> float:
        """Time on the link of a step's copies to the card."""
        timeline = self.played(key).timeline
        return sum(long_ns for long_ns, _ in exposed_ns(timeline)) / max(1, len(timeline.steps))

    def kernels_ns(self, key: str) -> float:
        """Length of all kernels of a step."""
        timeline = self.played(key).timeline
        return sum(span.duration_ns for span in timeline.on(*COMPUTING)) / max(1, len(timeline.steps))

    @property
    def work_ns(self) -> float:
        """A step without its copy: what is left of it when the host waits for float32 to be copied."""
        return self.step_ns("copy") - self.copy_ns("copy")

    def held_out_column(self) -> Column:
        """A column with the loss on pictures that no step saw."""
        return ("Loss, new pictures", lambda point: _loss(self.held_out.get(point.key)))

    @property
    def batch_said(self) -> str:
        """What it brings to prepare a whole batch at once on the host."""
        one, whole = self.making_ns("one by one"), self.making_ns("batch")
        if whole * ALIKE < one:
            return (
                f"A whole batch at once takes the host {duration(whole)} in place of {duration(one)}: the rest was "
                "Python's walk from picture to picture."
            )
        if whole <= one * ALIKE:
            return (
                f"A whole batch at once hardly relieves the host ({duration(whole)}, {duration(one)} before): its time "
                "goes into the arithmetic, not into Python's calls."
            )
        return (
            f"On the host a whole batch at once takes even longer ({duration(whole)}, {duration(one)} before): one "
            "picture fits into the processor's caches, a batch doesn't."
        )

    def learned_lines(self) -> dict[str, list[tuple[float, float]]]:
        """Step and loss in training, the mean of five steps, with augmentation and without."""
        named = {"augmented": "card", "not augmented": "nobody"}
        losses = {name: [loss for loss in self.points[key].losses if loss is not None] for name, key in named.items()}
        return {name: running_mean(each, 5) for name, each in losses.items()}

    @property
    def others_said(self) -> str:
        """Two public threads in words, with the same numbers of this run."""
        return (
            "pytorch/vision#483: the card is busier without augmentation; here "
            f"{percent(self.busy_share('nobody'))}. pytorch/pytorch#48065: non_blocking seems to do nothing; unless "
            f"memory is pinned, so it is here: {duration(self.step_ns('asked'))} with it, "
            f"{duration(self.step_ns('copy'))} without."
        )

    @property
    def learned_said(self) -> str:
        """How the losses of those that augment agree, and what leaving it out does."""
        augmented = [self.points[key].losses for key in ("one by one", "batch", "fp64", "card") if self.has(key)]
        gap = max(max(x) - min(x) for x in zip(*augmented, strict=True) if None not in x)
        plain, new, with_new = self.points["nobody"].last_loss, self.held_out["nobody"], self.held_out["card"]
        same = "Whoever augments, the losses are the same" + (f" to within {gap:.1g}." if gap else ".")
        if plain is None or new is None or with_new is None:
            return same
        if new > with_new:
            return (
                f"{same} Without augmentation the loss in training ends at {plain:.2f}, but on new pictures at "
                f"{new:.2f} against {with_new:.2f}: the worse network."
            )
        few = "so few steps don't tell"
        return f"{same} Without augmentation it is {new:.2f} on new pictures against {with_new:.2f}: {few}."

    @property
    def pinned_said(self) -> str:
        """What each change of the copy brought."""
        step, asked = self.step_ns("copy"), self.step_ns("asked")
        nothing = "changes nothing" if asked > 0.99 * step else f"gives {duration(asked)}"
        pinned, free = duration(self.step_ns("pinned")), duration(self.step_ns("free"))
        return (
            f"Asking for non_blocking alone {nothing}: only pinned memory can be left to the card. Pinned, a step "
            f"takes {pinned}, and {free} when the host may go on."
        )

    @property
    def ahead_said(self) -> str:
        """Whether the copy is hidden, and what shows if it isn't."""
        copy, work, step = self.copy_ns("ahead"), self.work_ns, self.step_ns("ahead")
        if copy > work:
            return (
                f"The copy ({duration(copy)}) takes longer than the work ({duration(work)}), so it sets the pace: "
                f"{duration(step)}. Only fewer bytes help now."
            )
        return f"The work ({duration(work)}) takes longer than the copy ({duration(copy)}), which is out of sight."

    @property
    def bytes_said(self) -> str:
        """Whether bytes still pay once copies are hidden."""
        before, after = self.step_ns("ahead"), self.step_ns("bytes ahead")
        extra = self.kernels_ns("bytes ahead") - self.kernels_ns("ahead")
        if after < 0.98 * before:
            return f"A quarter of the bytes, and the step takes {duration(after)} in place of {duration(before)}."
        return (
            f"Bytes don't pay on this card: the copy was hidden already, and turning them into numbers takes it "
            f"{duration(extra)} ({duration(after)} in place of {duration(before)})."
        )

    @property
    def promoted(self) -> float:
        """How many times as long the conversion's kernels take when the mean is float64."""
        plain = self.kernels_ns("bytes ahead") - self.kernels_ns("ahead")
        return (self.kernels_ns("mean fp64") - self.kernels_ns("ahead")) / plain

    def law(self) -> dict[str, list[tuple[float, float]]]:
        """The step in milliseconds against bytes a value, by three rules: two of addition, one of the larger."""
        pageable_ns, pinned_ns = (self.copy_ns(key) / BYTES[key] for key in ("copy", "pinned"))
        work = self.work_ns
        values = [k / 4 for k in range(1, 33)]
        return {
            "pageable: work + copy": [(x, (work + x * pageable_ns) / 1e6) for x in values],
            "pinned: work + copy": [(x, (work + x * pinned_ns) / 1e6) for x in values],
            "ahead: the longer": [(x, max(work, x * pinned_ns) / 1e6) for x in values],
        }

    def dots(self) -> list[tuple[float, float]]:
        """The priced runs for the same picture."""
        return [(n, self.step_ns(key) / 1e6) for key, n in BYTES.items() if self.has(key)]

    def group(self, keys: Mapping[str, str]) -> list[Point]:
        """The points of `WHO` or `COPIES` that are there, in order."""
        return [self.points[key] for key in keys if key in self.points]


NOTHING = Found({}, {})


def found_in(points: Sequence[Point], data: Mapping[str, Any]) -> Found:
    """The points of a run and what its data say beside them."""
    held_out = {told["key"]: told.get("held_out") for told in data["points"]}
    return Found({point.key: point for point in points}, held_out)


def found_of(kept: Kept, on: Machine | None = None) -> Found:
    """The same from what a run left, on its own machine or another; nothing without a run.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    if not kept.tapes:
        return NOTHING
    return found_in(points_where_run(kept) if on is None else sweep_points(kept, on), kept.data)


def whole(found: Found) -> bool:
    """Whether every variant ran."""
    return found.has(*WHO, *COPIES)


def thread_rows(found: Found) -> list[tuple[Reference, float | None]]:
    """What others saw, each with the same ratio of this run."""
    return [
        (reference("augmenting on the GPU"), found.step_ns("one by one") / found.step_ns("card")),
        (reference("pinned batches"), found.step_ns("copy") / found.step_ns("pinned")),
        (reference("float64 in a kernel"), found.promoted),
    ]


def _loss(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"
