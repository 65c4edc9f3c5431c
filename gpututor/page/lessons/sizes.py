"""What a run of lesson 5 found on a machine: one network made wider, deeper, and deeper layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import marimo as mo

from gpututor.cards import Machine
from gpututor.exercises.ex05 import widest_case
from gpututor.exercises.form import Case
from gpututor.expect import around, compare
from gpututor.experiments.wider_or_deeper import ASKED_FACTOR, BENCHMARK_UNITS, FACTORS, TRAINED, WAYS, key_of
from gpututor.jobs.tutorial import HIDDEN, TUTORIAL_STEPS
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.sweep import BUSY, FILL, HELD_OUT, MFU, STEP, WHOLE, Point, cost_column, points_table, sweep_points
from gpututor.references import reference
from gpututor.replay import Played, play_file
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Label

MOST = FACTORS[-1]
NO_LONGER = 1.05  # times as long still counts as the same
LOOKED_AT = {
    "as he ran it": ("wide", 1),
    f"{2 * HIDDEN} units": ("wide", 2),
    "2 layers": ("deep", 2),
    "2 layers, a call each": ("each", 2),
}
BENCHMARKS = tuple(f"units_{units}" for units in BENCHMARK_UNITS)
GAUGES: Mapping[str, Callable[[Point], float | None]] = {
    "Busy": lambda point: point.busy_share,
    "SM fill": lambda point: point.played.ledger.sm_fill_share if point.played else None,
    "One step (ms)": lambda point: point.step_ns / 1e6,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The variants with one batch, by key."""

    machine: Machine
    batch: int
    points: Mapping[str, Point]

    @property
    def whole(self) -> bool:
        """Whether every size was run."""
        return all(key_of(way, factor, self.batch) in self.points for way in WAYS for factor in (1, *FACTORS))

    @property
    def source(self) -> Label | str:
        """What a figure of several variants says of where it comes from."""
        return next((point.source for point in self.points.values() if point.source), "")

    def point(self, way: str, factor: int) -> Point:
        """So many times the units or layers."""
        return self.points[key_of(way, factor, self.batch)]

    def played(self, way: str, factor: int = MOST) -> Played:
        """The same as the machine does it."""
        played = self.point(way, factor).played
        assert played is not None
        return played

    def busy_share(self, way: str, factor: int = MOST) -> float:
        """Share of the time in which a kernel runs."""
        return self.point(way, factor).busy_share or 0.0

    def lines(self, gauge: str) -> dict[str, Sequence[tuple[float, float | None]]]:
        """How often the units or layers, and the gauge then."""
        return {
            name: [(factor, GAUGES[gauge](self.point(way, factor))) for factor in (1, *FACTORS)]
            for way, name in WAYS.items()
        }

    def cost_figure(self) -> mo.Html:
        """What the first, the double and the largest sizes cost."""
        shown = [self.point("wide", 1), *(self.point(way, factor) for factor in (2, MOST) for way in WAYS)]
        columns = (STEP, BUSY, FILL, MFU, cost_column(TUTORIAL_STEPS, "All his sentences"))
        note = f"He trained on {TUTORIAL_STEPS:,} sentences. Every size reads and writes sentences of the same length."
        return figure("What it costs", self.source, points_table(shown, *columns, first="Size"), note=note, wide=True)

    @property
    def layers_said(self) -> str:
        """Whether the busy share moves with layers that are called one by one."""
        before, after = self.busy_share("wide", 1), self.busy_share("each")
        words = (
            "the busy share hardly moves, as he was told"
            if after < 1.25 * before
            else "the busy share goes up all the same"
        )
        return f"{words}: from {percent(before)} to {percent(after)}"


def sizes_of(kept: Kept, on: Machine, batch: int) -> Sizes:
    """Every size with this batch, as `on` does it.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    keys = [key_of(way, factor, batch) for way in WAYS for factor in (1, *FACTORS)]
    return Sizes(on, batch, {point.key: point for point in sweep_points(kept, on, keys)})


def free_said(base: Played, wide: Played) -> str:
    """Whether the wider network's step is as long as the first one's."""
    if wide.step_ns < NO_LONGER * base.step_ns:
        return "and width comes free: the step is as long as before"
    return f"and a step takes {duration(wide.step_ns)}"


def launches_said(played: Played) -> dict[str, str]:
    """The cause of launch overhead, in this step's numbers."""
    kernels = f"{played.ledger.n_kernels:,} kernels of {duration(played.kernel_ns)}"
    return {"launch_overhead": f"{kernels}; the host needs {duration(played.host_ns_per_launch)} to launch one."}


def money(point: Point) -> mo.Html:
    """What all the tutorial's sentences cost with one size."""
    per = f"{TUTORIAL_STEPS:,} sentences, {point.label}, {duration(point.takes_ns(TUTORIAL_STEPS))}."
    return spent(point.played, point.usd(TUTORIAL_STEPS), per)


def turned_said(kept: Kept, on: Machine) -> str:
    """Whether another card turns the order of wide and deep on the gauge, and what SM fill says."""
    wide, deep = (play_file(kept.tapes[key_of(way, 2)], on).ledger for way in ("wide", "deep"))
    wide_busy, deep_busy = (ledger.gpu_util_share or 0.0 for ledger in (wide, deep))
    wide_fill, deep_fill = (ledger.sm_fill_share or 0.0 for ledger in (wide, deep))
    order = (
        "the order turns: a kernel twice as wide takes hardly longer there, so layers win on the gauge"
        if deep_busy > wide_busy
        else "the order is the same"
    )
    fill = "Look at SM fill, and the wider one is ahead again" if wide_fill > deep_fill else "SM fill agrees"
    return (
        f"{order}: {percent(deep_busy)} with two layers, {percent(wide_busy)} with {2 * HIDDEN} units. {fill}: "
        f"{percent(wide_fill)} against {percent(deep_fill)}."
    )


@dataclass(frozen=True, slots=True)
class Learners:
    """Three sizes that trained on the same sentences; the loss is a mean of the last `tail`."""

    points: Sequence[Point]
    tail: int

    @property
    def label(self) -> Label | str:
        """What their figure says of where it comes from."""
        source = self.points[0].source
        return replace(source, what=f"loss, mean of the last {self.tail} sentences") if source else ""

    def lines(self) -> dict[str, list[tuple[float, float]]]:
        """Seconds and loss."""
        return {point.label: point.smooth(self.tail) for point in self.points}

    def table(self) -> str:
        """When each is down to the loss that all reach, and what that costs; as HTML."""
        target = max(points[-1][1] for points in self.lines().values())

        def reached_ns(point: Point) -> float:
            return point.reaches_ns(target, self.tail) or point.run_ns

        def cost(point: Point) -> str:
            usd = point.usd(1000 * reached_ns(point) / point.step_ns)
            return "—" if usd is None else dollars(usd)

        down = (f"Down to {target:.2f}", lambda point: duration(reached_ns(point)))
        return points_table(self.points, WHOLE, down, ("A thousand such runs", cost), HELD_OUT, first="Size")


def learning(kept: Kept, on: Machine, n_steps: int) -> object:
    """The losses of the sizes that really trained, over time on `on`."""
    learners = learners_of(kept, on, n_steps)
    return line_figure(
        "It really trains",
        learners.label,
        learners.lines(),
        learners.table(),
        x_title="seconds of training",
        note=f"{n_steps} sentences say who starts faster, not who translates better in the end.",
    )


def learners_of(kept: Kept, on: Machine, n_steps: int) -> Learners:
    """The sizes that really trained, as `on` does them.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    return Learners(sweep_points(kept, on, TRAINED), max(1, n_steps // 5))


def beside_benchmark(kept: Kept, on: Machine) -> mo.Html:
    """A published benchmark of two widths beside the same here, as a figure."""
    few, many = (play_file(kept.tapes[key], on) for key in BENCHMARKS)
    seen = reference("LSTM, 500 units against 100")
    room = around(seen.value, 0.1, seen.unit, seen.source)
    words = f"A step with {BENCHMARK_UNITS[1]} units, over one with {BENCHMARK_UNITS[0]}"
    busy = [percent(each.ledger.gpu_util_share) for each in (few, many)]
    return figure(
        "What others saw",
        replace(few.ledger.label, what="an LSTM called word by word"),
        expected_table([(words, compare(room, many.step_ns / few.step_ns))]),
        note=f"Kernels run {busy[0]} of the time with few units here and {busy[1]} with many. In NervanaSystems/neon "
        "issue 323, a recurrent network at a quarter got the same verdict: small layers, so Python is the limit; wider "
        "ones would load the card.",
    )


def asked_case(kept: Kept, on: Machine) -> Case | None:
    """What exercise 5.1 needs of the run; None where the sizes it asks about weren't run."""
    keys = [key_of("wide", factor) for factor in (1, *FACTORS[-2:], ASKED_FACTOR)]
    points = sweep_points(kept, on, keys)
    if len(points) < len(keys):
        return None
    factors = [int(point.x or 0) for point in points]
    run_ns = [point.played.ledger.gpu_util_ns if point.played else 0 for point in points]
    steps_ns = dict(zip(factors, (point.step_ns for point in points), strict=True))
    return {**widest_case(steps_ns, dict(zip(factors, run_ns, strict=True))), "machine": on.name}
