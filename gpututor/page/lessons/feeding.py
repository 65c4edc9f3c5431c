"""What a run of lesson 6 found, as its page says it: numbers derived from the ways of feeding, and sentences on them.

Every sentence holds whichever way a comparison came out, because the host is the reader's own computer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpututor.experiments.feeds import enough_workers, law_ns
from gpututor.page.kept import Kept
from gpututor.page.sweep import Point, points_where_run
from gpututor.replay import Played
from gpututor.text import duration, percent, quantity
from gpututor.timeline import Label

NEAR_BEST = 1.1  # steps within a tenth of the fastest are called as fast: a paced run repeats within some percent
OFF_THE_LAW = 1.25  # our choice: a quarter more than the law says deserves a sentence
CROWDED = 1.5  # our choice: work that takes half as long again as its CPU time had to wait for a core
LAGGED_SHARE = 0.1  # our choice: a simulation that fell so far behind gave the workers time that a card would not
WORTH_A_FIX = 0.05  # our choice: a pause of a twentieth of an epoch is worth a setting
THOUSANDTH = 40  # batches of 32 in a thousandth of ImageNet's 1,281,167 pictures (Russakovsky et al. 2015, table 2)


@dataclass(frozen=True, slots=True)
class Feeding:
    """The ways of feeding that a run finished, by key, as points and as what the experiment told of each."""

    points: Mapping[str, Point]
    told: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Any]

    def has(self, *keys: str) -> bool:
        """Whether all of these were run."""
        return all(key in self.points for key in keys)

    def played(self, key: str) -> Played:
        """The steady steps of one way of feeding, on the run's machine."""
        played = self.points[key].played
        assert played is not None  # only those that ran are in here
        return played

    def step_ns(self, key: str) -> float:
        """Mean wall time of its steady steps."""
        return self.points[key].step_ns

    @property
    def label(self) -> Label:
        """The card and host of the run, for figures about several ways of feeding."""
        return replace(self.played("workers-0").ledger.label, what="")

    # --- the law -----------------------------------------------------------------------------------------------------

    @property
    def sweep(self) -> tuple[Point, ...]:
        """The points from no workers to the most of them."""
        return tuple(point for key, point in self.points.items() if key.startswith("workers-"))

    @property
    def n_cores(self) -> int:
        """Cores that the run could use."""
        return int(self.data["n_cores"])

    @property
    def load_ns(self) -> float:
        """What decoding one batch takes: the wait of a training process that does it itself."""
        return float(self.told["workers-0"]["wait_ns"])

    @property
    def compute_ns(self) -> float:
        """The rest of that step: copy, launches, kernels."""
        return max(1.0, self.step_ns("workers-0") - self.load_ns)

    def law_ns(self, n_workers: int) -> float:
        """The step that the law gives for so many workers with a core each."""
        return law_ns(self.load_ns, self.compute_ns, n_workers)

    @property
    def law_line(self) -> list[tuple[float, float | None]]:
        """The law in milliseconds against workers, from one to the most that were tried."""
        most = max(int(point.x or 0) for point in self.sweep)
        counts = [1 + k / 20 for k in range(20 * max(1, most - 1) + 1)]
        return [(w, max(self.load_ns / w, self.compute_ns) / 1e6) for w in counts]

    @property
    def dots(self) -> list[tuple[float, float | None]]:
        """Workers and milliseconds a step, as they were seen."""
        return [(point.x or 0.0, point.step_ns / 1e6) for point in self.sweep]

    @property
    def best(self) -> Point:
        """The fastest of the sweep."""
        return min(self.sweep, key=lambda point: point.step_ns)

    @property
    def enough(self) -> Point:
        """The one with the fewest workers whose steps are about as short as the best one's."""
        return next(point for point in self.sweep if point.step_ns <= NEAR_BEST * self.best.step_ns)

    @property
    def law_said(self) -> str:
        """How many workers the law asks for, and whether this computer can give them."""
        asked = enough_workers(self.load_ns, self.compute_ns)
        times = self.load_ns / self.compute_ns
        said = f"Decoding takes {times:.1f} times as long as the rest, so the law asks for {_counted(asked, 'worker')}"
        if asked > self.n_cores:
            return f"{said}. This computer has {_cores(self.n_cores)}: here the loader stays the slower of the two."
        return f"{said}, and this computer has {_cores(self.n_cores)}."

    @property
    def enough_said(self) -> str:
        """What fewer workers, and more, would have brought."""
        if self.enough.key == self.best.key:
            return "None with fewer comes within a tenth of it."
        return f"With {self.enough.label}, {duration(self.enough.step_ns)}, you are as good as there."

    @property
    def off_said(self) -> str:
        """Where the dots leave the line, and why; or that they don't."""
        ratios = {p.x: p.step_ns / self.law_ns(int(p.x)) for p in self.sweep if p.x}
        above = [f"{x:.0f}" for x, ratio in ratios.items() if ratio > OFF_THE_LAW]
        below = [f"{x:.0f}" for x, ratio in ratios.items() if ratio < 1 / OFF_THE_LAW]
        if above:
            return (
                f"With {_workers(above)} the circles lie above it: the law gives each worker its own core, "
                f"and {_cores(self.n_cores)} are shared with the training process and all else that runs here."
            )
        if below:
            return f"With {_workers(below)} they lie below it: decoding went slower while the line was measured."
        return "The circles follow the line."

    @property
    def noise_said(self) -> str:
        """A warning where other programs had the cores, or the simulation fell behind this computer's clock."""
        cpu_ns = self.told["workers-0"]["wait_cpu_ns"]
        if self.load_ns > CROWDED * cpu_ns:
            return (
                f"Decoding a batch is {duration(cpu_ns)} of work here and took {duration(self.load_ns)}: other "
                "programs had the cores, or the disk was slow. Run it again when it is quiet."
            )
        lagged_share = max((self.told[p.key]["lag_share"] or 0.0 for p in self.sweep), default=0.0)
        if lagged_share > LAGGED_SHARE:
            return (
                f"The cores were crowded: at worst, simulating took {percent(lagged_share)} longer than the card would "
                "have, which gave workers more time than you are charged."
            )
        return ""

    # --- the settings ------------------------------------------------------------------------------------------------

    @property
    def prefetch_said(self) -> str:
        """What reading further ahead did."""
        ratio = self.step_ns("prefetch-1") / self.step_ns("prefetch-8")
        if 1 / NEAR_BEST < ratio < NEAR_BEST:
            return "Reading further ahead changed nothing: it evens out pauses, it makes nobody decode faster."
        faster = "8 batches" if ratio > 1 else "1 batch"
        return (
            f"With {faster} ahead a step is {max(ratio, 1 / ratio):.1f} times as fast. Work comes unevenly here, and "
            "that is what a queue is for; it makes nobody decode faster."
        )

    @property
    def few_said(self) -> str:
        """What became of workers without a batch."""
        n, at_work = self.told["few-1"]["n_workers"], len(self.told["few-1"]["who"])
        ratio = self.told["few-1"]["epoch_ns"][0] / self.told["few-0"]["epoch_ns"][0]
        same = (
            f"A worker makes a whole batch: of {n} workers, {at_work} had work with one large batch. The same pictures "
        )
        if ratio < NEAR_BEST:
            return f"{same}took no longer here, as {_cores(self.n_cores)} had no more to give."
        return f"{same}took {ratio:.1f} times as long."

    @property
    def threads_said(self) -> str:
        """What threads of their own did to the workers."""
        ratio = self.step_ns("threads-n") / self.step_ns("threads-1")
        one, many = (self.told[key]["n_threads"] for key in ("threads-1", "threads-n"))
        counted = f"{many} threads in place of {one} on {_cores(self.n_cores)}" if one and many else "More threads"
        if ratio > NEAR_BEST:
            return f"{counted}, each waiting for the others: a step took {ratio:.1f} times as long."
        if ratio < 1 / NEAR_BEST:
            return f"{counted} were {1 / ratio:.1f} times as fast here, where cores were free."
        return f"{counted} made no difference here."

    def pause_ns(self, key: str) -> float:
        """Mean time from the begin of a later epoch to its first batch."""
        later: Sequence[int] = self.told[key]["first_ns"][1:]
        return sum(later) / len(later)

    def stays_gain(self, method: str, n_batches: int) -> float:
        """How many times as fast epochs of so many batches become when the workers stay, by the parts measured."""
        steps = (n_batches - 1) * max(self.load_ns, self.compute_ns)  # one worker
        return (self.pause_ns(f"{method}-anew") + steps) / (self.pause_ns(f"{method}-stay") + steps)

    @property
    def starts(self) -> tuple[str, ...]:
        """The ways to start workers that were run, this system's own first."""
        return tuple(m for m in self.data.get("starts", ()) if self.has(f"{m}-anew", f"{m}-stay"))

    @property
    def starts_said(self) -> str:
        """The pause before an epoch's first batch, for each way to start workers."""
        parts = []
        for method in self.starts:
            anew, stay = self.pause_ns(f"{method}-anew"), self.pause_ns(f"{method}-stay")
            gain = self.stays_gain(method, THOUSANDTH) - 1
            worth = "worth it" if gain > WORTH_A_FIX else "hardly worth it"
            parts.append(f"With {method}: {duration(anew)} before each epoch, {duration(stay)} if they stay, {worth}.")
        packed, held = self.data["pickled"]["paths"], self.data["pickled"]["pictures"]
        sent = f"spawn sends each worker the dataset: {quantity(packed[0], 'B')} as a list of paths,"
        return f"{' '.join(parts)} What {sent} {quantity(held[0], 'B')} with pictures in it."

    @property
    def same_losses(self) -> str:
        """Whether the small network learned the same with and without workers, in words."""
        runs = [tuple(each["losses"]) for each in self.data["learned"]]
        if len(runs) < 2:
            return "The run was stopped before the second training."
        if runs[0] == runs[1]:
            return "With no workers and with two: the same loss at every step, to the last digit."
        return "The losses differ, so something else than the loader was changed."


def feeding_in(points: Sequence[Point], data: Mapping[str, Any]) -> Feeding:
    """What a run's points and data say; a run that was stopped has fewer points."""
    ran = {point.key: point for point in points if point.played is not None}
    return Feeding(ran, {told["key"]: told for told in data.get("points", ())}, data)


def feeding_of(kept: Kept) -> Feeding:
    """The same from what a run left.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    return feeding_in(points_where_run(kept), kept.data)


def _cores(n: int) -> str:
    return _counted(n, "core")


def _workers(counts: Sequence[str]) -> str:
    return f"{', '.join(counts)} worker{'' if list(counts) == ['1'] else 's'}"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
