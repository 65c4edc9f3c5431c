"""What a sampler hands out: plain data, to save, compare and draw. What is missing is None with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpututor.measure.nvml.clocks import ClockReason, clock_reasons
from gpututor.measure.nvml.columns import Figure
from gpututor.measure.nvml.devices import Device


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one metric of one GPU; times in nanoseconds since sampling began.

    A moment without a value has no entry; `reason` says why there is none at all, or none any more.
    """

    metric: str
    unit: str
    uuid: str
    times_ns: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU at one moment, nanoseconds since sampling began; `reasons` explains each None by the metric's name."""

    device: Device
    at_ns: int
    values: Mapping[str, float | None]
    reasons: Mapping[str, str]

    @property
    def clocks(self) -> tuple[ClockReason, ...] | None:
        """Why the clocks are where they are; None if not known."""
        mask = self.values.get("clock_reasons")
        return None if mask is None else clock_reasons(int(mask))


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy of a run in joules, over `seconds`, and how it was found."""

    energy_j: float
    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class Held:
    """One reason for the clocks, with the share of samples that gave it."""

    bit: int
    name: str
    words: str
    slows: bool
    share: float


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """One GPU over a whole run.

    `figures` holds a metric only where it had values; `states` says for each how it stood at the end, and `reasons` why
    it has none. `lost` is the sentence on a GPU that fell off the bus. `call_s` has the mean length of a
    call in seconds, under the first metric that it gives.
    """

    device: Device
    figures: Mapping[str, Figure]
    states: Mapping[str, str]
    reasons: Mapping[str, str]
    energy: Energy | None = None
    energy_reason: str | None = None
    held: tuple[Held, ...] = ()
    lost: str | None = None
    call_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def kernel_time_share(self) -> float | None:
        """Share of the time with a kernel running: from every sample of the driver, else from its gauge; else None."""
        for name in ("kernel_time_samples_share", "kernel_time_share"):
            if name in self.figures:
                return self.figures[name].mean
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """One way in which one metric failed, told once; `uuid` and `metric` are None for what concerns all."""

    said: str
    uuid: str | None = None
    metric: str | None = None
    code: int | None = None
    first_ns: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What sampling took itself: processor time of its thread as a share of one core, and the length of one round.

    `opening_s` is the time until the end of the first round, which `cpu_share` leaves out. A round that began later
    than its time counts as late. None where there were no rounds to tell from.
    """

    n_rounds: int
    n_late: int
    opening_s: float | None
    cpu_share: float | None
    mean_s: float | None
    longest_s: float | None
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole run of the sampler; `reason` says why there are no GPUs in it. `began_s` is Unix time."""

    began_s: float
    seconds: float
    interval_s: float
    gpus: tuple[GpuSummary, ...]
    cost: Cost
    versions: Mapping[str, str]
    notes: tuple[Note, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Sampled:
    """A summary with the series behind it: what is kept of a run."""

    summary: Summary
    series: tuple[Series, ...]

    def of(self, metric: str, uuid: str | None = None) -> Series | None:
        """The series of this metric, of the first GPU unless one is named; None where there is none."""
        for one in self.series:
            if one.metric == metric and uuid in {None, one.uuid}:
                return one
        return None
