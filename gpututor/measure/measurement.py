"""What a measured loop gave: its steps split into parts, readings beside them, and what follows from both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from gpututor.ledger import Ledger, charge
from gpututor.measure.parts import Part, SplitStep
from gpututor.measure.readings import Over, in_words
from gpututor.measure.spans import timeline_of
from gpututor.recording import Recording
from gpututor.text import duration, percent, quantity
from gpututor.timeline import Label, Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from gpututor.expect import Verdicts

HAS_A_QUEUE_NS = 100_000
"""Our choice: a launch takes some microseconds to reach an idle GPU; a host further ahead than that has work queued."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured loop, to be saved, loaded and compared.

    `readings` are numbers by name, units in the name (`memory_peak_bytes`, `energy_j`, `sampler_core_share`, …);
    `reasons` says why one is missing. `series` are times (nanoseconds since sampling began) and values of what the
    driver said, by metric. `window` is an exact look
    at a few steps by a profiler, or None with its reason under "window". `pauses` lie between two loops, `n_left_out`
    steps came before the first kept one, and `n_dropped` kept ones were let go of in a long run.
    """

    label: Label
    steps: tuple[SplitStep, ...]
    pauses: tuple[tuple[int, int], ...] = ()
    n_samples: int | None = None
    n_left_out: int = 0
    n_dropped: int = 0
    readings: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    series: Over = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    window: Timeline | None = None
    measured_at: str = ""  # UTC, ISO 8601
    usd_per_hour: float | None = None
    configuration: Mapping[str, object] = field(default_factory=dict)  # what makes it another run than its repeats

    def __str__(self) -> str:
        return as_text(self)

    @property
    def timeline(self) -> Timeline:
        """The steps as spans, one a part, on the GPU and on the host."""
        return timeline_of(self)

    @property
    def ledger(self) -> Ledger:
        """The ledger of all steps. Inside a part it can't tell a kernel from a gap, and says busy."""
        return charge(self.timeline)

    @property
    def window_ledger(self) -> Ledger | None:
        """The ledger of the profiler's few steps, with every account; None without a window."""
        return None if self.window is None else charge(self.window)

    @property
    def best_ledger(self) -> Ledger:
        """The profiler's ledger where there is one, else that of the parts."""
        return self.window_ledger or self.ledger

    @property
    def recording(self) -> Recording:
        """What every recorder hands back."""
        return Recording(self.window or self.timeline, (None,) * len((self.window or self.timeline).steps), self.notes)

    @property
    def step_ns(self) -> float:
        """The median step, in nanoseconds."""
        return median(step.duration_ns for step in self.steps)

    @property
    def mean_step_ns(self) -> float:
        """The mean step; the means of the parts sum to it."""
        return sum(step.duration_ns for step in self.steps) / len(self.steps)

    @property
    def lead_ns(self) -> float:
        """How far the host was ahead of the GPU at most, in the median step."""
        return median(step.lead_ns for step in self.steps)

    def part_ns(self, part: Part) -> float:
        """Mean nanoseconds a step of this part, on the GPU's clock."""
        return sum(step.on_gpu_ns(part) for step in self.steps) / len(self.steps)

    def host_part_ns(self, part: Part) -> float:
        """Mean nanoseconds a step of this part, on the host's clock."""
        return sum(step.on_host_ns(part) for step in self.steps) / len(self.steps)

    def part_share(self, part: Part) -> float:
        """The part's share of all steps, on the GPU's clock."""
        return self.part_ns(part) / self.mean_step_ns if self.mean_step_ns else 0.0

    @property
    def samples_per_s(self) -> float | None:
        """Samples a second at the mean step, or None where the loop doesn't say how many a step has."""
        return None if self.n_samples is None or not self.mean_step_ns else 1e9 * self.n_samples / self.mean_step_ns

    @property
    def usd_per_1000_steps(self) -> float | None:
        """What a thousand such steps cost in US dollars; None without a price."""
        return None if self.usd_per_hour is None else 1000 * self.mean_step_ns / 1e9 / 3600 * self.usd_per_hour

    def expect(
        self, expected: Measurement | Timeline | None = None, *, known: Mapping[str, bool] | None = None
    ) -> Verdicts:
        """A verdict on each account beside `expected`: another measurement, a predicted timeline, or the runs before.

        `known` are circumstances by name (gpututor.expect.verdicts.CIRCUMSTANCES) that rule explanations in or out.

        Raises:
            ExpectationError: nothing is given, and the history has too few runs of this configuration to tell.
            HistoryError: the history can't be read.
        """
        from gpututor.measure.expected import verdicts

        return verdicts(self, expected, known=known)

    @property
    def energy_per_step_j(self) -> float | None:
        """Joules a step, or None where the energy isn't known; what the GPU used between two loops is in it."""
        energy_j = self.readings.get("energy_j")
        return None if energy_j is None else energy_j / (len(self.steps) + self.n_dropped)

    def save(self, path: str | Path) -> None:
        """Write it to a file, gzipped when the name ends in .gz.

        Raises:
            OSError: the disk is full or read-only.
        """
        from gpututor.measure.measurement_file import save

        save(self, path)


def as_text(found: Measurement) -> str:
    """The split as lines of text: whose it is, the parts, the readings, what to know."""
    label, n = found.label, len(found.steps)
    whose = " · ".join(part for part in (label.card or "CPU", label.host, label.what) if part)
    left_out = f", {found.n_left_out} before left out" if found.n_left_out else ""
    steps = f"{n:,} step{'' if n == 1 else 's'}, median {duration(found.step_ns)}"
    lines = [
        f"{label.origin.value.capitalize()} {whose}",
        f"{steps}, mean {duration(found.mean_step_ns)}{left_out}",
        "",
        f"{'a step, mean':<16}{'on the GPU' if label.card else 'here':>12}{'share':>10}{'host':>12}",
    ]
    for part in Part:
        if found.part_ns(part) or found.host_part_ns(part):
            cells = duration(found.part_ns(part)), percent(found.part_share(part)), duration(found.host_part_ns(part))
            lines.append(f"{part.value:<16}{cells[0]:>12}{cells[1]:>10}{cells[2]:>12}")
    lines += ["", *_readings(found)]
    return "\n".join([*lines, *(f"{note[0].upper()}{note[1:]}." for note in found.notes)])


def _readings(found: Measurement) -> list[str]:
    known = [text for name, value in found.readings.items() if (text := in_words(name, value)) is not None]
    if found.energy_per_step_j is not None:
        known.append(f"{quantity(found.energy_per_step_j, 'J')} a step")
    missing = [f"not known: {name} ({why})" for name, why in found.reasons.items()]
    return [" · ".join(known), *missing] if known else missing
