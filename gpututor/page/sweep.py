"""A sweep's points on the page: each variant of a job as one machine does it, in a table, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import marimo as mo

from gpututor.cards import Machine
from gpututor.charts import running_mean
from gpututor.lookup import machine_named
from gpututor.page.kept import Kept
from gpututor.page.parts import escape
from gpututor.replay import Played, play_file
from gpututor.text import NBSP, dollars, duration, percent
from gpututor.timeline import Label

# One of each kind that people meet: what the seed's asker rents, the cheapest, a desktop's, and three data centres'.
MACHINES = {
    "V100 (p3.2xlarge)": "p3.2xlarge",
    "T4 (g4dn.xlarge)": "g4dn.xlarge",
    "A10G (g5.xlarge)": "g5.xlarge",
    "L4 (g6.xlarge)": "g6.xlarge",
    "RTX 4090": "desktop-RTX-4090",
    "A100": "A100-SXM4-80GB",
    "H100": "H100-SXM",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One variant of a sweep as a machine does it; `played` is None, and `trouble` a sentence, where it couldn't run.

    `losses` has a number or None for each step of the run, `held_out` is the loss on samples that it never saw, and
    `memory_bytes` the peak that the job asked for.
    """

    key: str
    label: str
    x: float | None
    n_samples: int | None
    played: Played | None
    losses: tuple[float | None, ...]
    memory_bytes: int | None
    trouble: str | None = None
    held_out: float | None = None

    @property
    def step_ns(self) -> float:
        """Mean wall time of a step in nanoseconds; infinite where the variant doesn't fit."""
        return self.played.step_ns if self.played else float("inf")

    @property
    def source(self) -> Label | None:
        """What a figure over several variants says of where it comes from: card and machine, no variant's name."""
        return replace(self.played.timeline.label, what="") if self.played else None

    @property
    def samples_per_s(self) -> float:
        """Samples a second; 0 where the variant doesn't fit."""
        return 1e9 * (self.n_samples or 1) / self.step_ns

    @property
    def busy_share(self) -> float | None:
        """Share of the time in which a kernel runs: what nvidia-smi shows."""
        return self.played.ledger.gpu_util_share if self.played else None

    @property
    def last_loss(self) -> float | None:
        """The loss of the run's last step, None without one."""
        return self.losses[-1] if self.losses else None

    @property
    def run_ns(self) -> float:
        """All of the run's steps on this machine, in nanoseconds."""
        return self.step_ns * len(self.losses)

    def smooth(self, n_samples: int = 512) -> list[tuple[float, float]]:
        """Seconds on this machine, and the mean loss of the last `n_samples` samples then; some 100 points."""
        tail = max(1, n_samples // (self.n_samples or 1))
        means = running_mean([loss for loss in self.losses if loss is not None], tail)
        return [(k * self.step_ns / 1e9, loss) for k, loss in means[:: max(1, len(means) // 100)]]

    def reaches_ns(self, loss: float, n_samples: int = 512) -> float | None:
        """When the mean loss of the last `n_samples` samples first is at most `loss`; None if the run never gets there.

        Not asked before so many samples were seen.
        """
        tail = max(1, n_samples // (self.n_samples or 1))
        means = running_mean([one for one in self.losses if one is not None], tail)
        return next((k * self.step_ns for k, mean in means[tail - 1 :] if mean <= loss), None)

    def takes_ns(self, n_samples: float) -> float:
        """Nanoseconds that so many samples take on the machine; infinite where it doesn't fit."""
        return self.step_ns * n_samples / (self.n_samples or 1)

    def usd(self, n_samples: float) -> float | None:
        """What so many samples cost on the machine; None without a price or where it doesn't fit."""
        if self.played is None or self.played.machine.usd_per_hour is None:
            return None
        return n_samples / self.samples_per_s / 3600 * self.played.machine.usd_per_hour


def machine_control(chosen: str = "p3.2xlarge") -> mo.ui.dropdown:
    """A list of simulated machines to choose from; its value is a name for `lookup.machine_named`."""
    label = next(label for label, name in MACHINES.items() if name == chosen)
    return mo.ui.dropdown(MACHINES, value=label, label="Simulated machine")


def sweep_points(kept: Kept, on: Machine, keys: Collection[str] | None = None) -> tuple[Point, ...]:
    """Every variant of a finished run, priced on a machine; a variant whose memory its card hasn't got is trouble.

    With `keys` only these are priced, for a page that shows some of them first.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    told: Sequence[Mapping[str, Any]] = kept.data["points"] if kept.tapes else ()
    return tuple(_point(each, kept, on) for each in told if keys is None or each["key"] in keys)


def points_where_run(kept: Kept) -> tuple[Point, ...]:
    """Every variant on the machine that the run had, for a run whose host was this computer; none without a run.

    Raises:
        TimelineError: a tape is gone or damaged.
    """
    return sweep_points(kept, machine_named(kept.data["machine"])) if kept.tapes else ()


def _point(told: Mapping[str, Any], kept: Kept, on: Machine) -> Point:
    trouble, played = told["trouble"], None
    memory_bytes = told["memory_bytes"]
    if trouble is None and memory_bytes is not None and memory_bytes > on.card.memory_bytes:
        trouble = f"needs {memory_bytes / 2**30:.1f} GiB, the {on.card.name} has {on.card.memory_bytes / 2**30:.0f}"
    if trouble is None:
        played = play_file(kept.tapes[told["key"]], on)
    losses = tuple(told["losses"])
    samples, held_out = told["n_samples"], told.get("held_out")
    return Point(told["key"], told["label"], told["x"], samples, played, losses, memory_bytes, trouble, held_out)


Column = tuple[str, Callable[[Point], str]]
STEP: Column = ("One step", lambda point: duration(point.step_ns) if point.played else "—")
BUSY: Column = ("Busy", lambda point: percent(point.busy_share) if point.played else "—")
RATE: Column = ("Samples a second", lambda point: f"{point.samples_per_s:,.0f}" if point.played else "—")
FILL: Column = ("SM fill", lambda point: percent(point.played.ledger.sm_fill_share) if point.played else "—")
MFU: Column = ("MFU", lambda point: percent(point.played.ledger.mfu) if point.played else "—")
LOSS: Column = ("Last loss", lambda point: "—" if point.last_loss is None else f"{point.last_loss:.3g}")
HELD_OUT: Column = (
    "Loss, unseen samples",
    lambda point: "—" if point.held_out is None else f"{point.held_out:.2f}",
)
STEPS: Column = ("Steps", lambda point: f"{len(point.losses):,}")
WHOLE: Column = ("All of them", lambda point: duration(point.run_ns))
MEMORY: Column = (
    "Peak memory",
    lambda point: "—" if point.memory_bytes is None else f"{point.memory_bytes / 2**30:.2f}{NBSP}GiB",
)


def cost_column(n_samples: int, what: str) -> Column:
    """A column with the price of so many samples, headed by `what` they are ("An epoch")."""
    return (what, lambda point: dollars(point.usd(n_samples)) if point.usd(n_samples) is not None else "—")


def points_table(points: Sequence[Point], *columns: Column, first: str = "", marked: str | None = None) -> str:
    """The points line by line as an HTML table; `first` heads their labels, `marked` is the key of one to stress.

    Where a variant could not run, its trouble stands across the line.
    """
    head = f'<th scope="col">{escape(first)}</th>' + "".join(
        f'<th scope="col">{escape(title)}</th>' for title, _ in columns
    )
    lines = "".join(_line(point, columns, point.key == marked) for point in points)
    return (
        f'<table class="gt-expect gt-points"><caption class="gt-hidden">{escape(first)} by variant</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _line(point: Point, columns: Sequence[Column], marked: bool) -> str:
    kind = ' class="gt-marked"' if marked else ""
    if point.played is None:
        cells = f'<td colspan="{len(columns)}" class="gt-cant">{escape(point.trouble or "did not run")}</td>'
    else:
        cells = "".join(
            f'<td><span class="gt-only-narrow">{escape(title)}</span>{escape(text(point))}</td>'
            for title, text in columns
        )
    return f'<tr{kind}><th scope="row">{escape(point.label)}</th>{cells}</tr>'
