"""What the rules look at: a timeline, its ledger, and a few readings made from both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median

from gpututor.causes.finding import Confidence, Gain
from gpututor.causes.thresholds import Thresholds
from gpututor.errors import LedgerError
from gpututor.ledger import Account, Ledger, Piece, waits, without
from gpututor.timeline import COMPUTING, Activity, Origin, Span, Timeline, covered_ns

HOST_WORK = frozenset({Activity.PYTHON, Activity.DISPATCH, Activity.LAUNCH})


@dataclass(frozen=True)  # without slots, which cached_property can't do
class Case:
    """One GPU's window as the rules see it. Counts and times are of spans that begin in the window."""

    timeline: Timeline
    ledger: Ledger
    limits: Thresholds

    @property
    def n_units(self) -> int:
        """Steps in the window, or 1 where there are none: what "a step" divides by."""
        return self.ledger.n_steps or 1

    @property
    def unit(self) -> str:
        """The words for one of `n_units`."""
        return "a step" if self.ledger.n_steps else "in the window"

    def per_unit(self, total: float) -> float:
        """A total of the window, for one step."""
        return total / self.n_units

    def spans(self, *activities: Activity) -> list[Span]:
        """The spans of these activities that begin in the window."""
        lo, hi = self.timeline.window_ns
        return [s for s in self.own if s.activity in activities and lo <= s.start_ns < hi]

    @cached_property
    def own(self) -> list[Span]:
        """The spans of the host and of the ledger's GPU, in the window or not."""
        other = {
            k
            for k, lane in enumerate(self.timeline.lanes)
            if self.ledger.device is not None and lane.device not in (None, self.ledger.device)
        }
        return [s for s in self.timeline.spans if s.lane not in other]

    @cached_property
    def waits(self) -> tuple[Piece, ...]:
        """The stretches without a computing kernel, with their accounts."""
        return self.ledger.pieces or waits(self.timeline, self.ledger.device)

    @cached_property
    def kernels(self) -> list[Span]:
        """The computing kernels."""
        return self.spans(*COMPUTING)

    @cached_property
    def median_kernel_ns(self) -> float:
        """The typical kernel's duration; 0 without kernels."""
        return median(k.duration_ns for k in self.kernels) if self.kernels else 0.0

    @cached_property
    def kernel_ns(self) -> float:
        """Busy time for each kernel."""
        return self.ledger.busy_ns / len(self.kernels) if self.kernels else 0.0

    @cached_property
    def host_ns(self) -> float:
        """Time of Python, framework and driver for each kernel; threads that work at the same time count once."""
        launching = {s.lane for s in self.timeline.on(Activity.LAUNCH)}
        work = (s for s in self.timeline.on(*HOST_WORK) if s.lane in launching)
        return covered_ns(work, self.timeline.window_ns) / len(self.kernels) if self.kernels else 0.0

    def host_names(self, start_ns: int, end_ns: int) -> list[str]:
        """Names of the framework calls that fill most of a stretch, the innermost first."""
        half = (end_ns - start_ns) / 2
        calls = [
            s
            for s in self.timeline.on(Activity.DISPATCH, Activity.LAUNCH)
            if min(s.end_ns, end_ns) - max(s.start_ns, start_ns) > half
        ]
        return [s.name for s in sorted(calls, key=lambda s: s.duration_ns)]

    def gain(self, *accounts: Account) -> Gain | None:
        """The bound that emptying these accounts gives, or None where they are the whole window."""
        try:
            better = without(self.ledger, *accounts)
        except LedgerError:
            return None
        before_ns, after_ns = self.per_unit(self.ledger.window_ns), self.per_unit(better.window_ns)
        return Gain(before_ns, after_ns, "step" if self.ledger.n_steps else "window")

    @cached_property
    def idle_confidence(self) -> Confidence:
        """How sure the split of idle time is."""
        if self.too_few_steps:
            return Confidence("a guess", f"{self.ledger.n_steps} steps are too few to tell chance from cause")
        if self.timeline.label.origin is Origin.SIMULATED:
            return Confidence("sure", "the simulated clock knows what the host did at every instant")
        calls = {s.launch for s in self.timeline.on(*HOST_WORK) if s.launch is not None}
        linked = sum(k.launch in calls for k in self.kernels)
        if linked < len(self.kernels) / 2:
            return Confidence("a guess", "the timeline doesn't link launches to kernels, so the thread is a guess")
        return Confidence("likely", "the profiler itself slows the host down, so host time is somewhat overstated")

    @cached_property
    def busy_confidence(self) -> Confidence:
        """How sure the split of busy time is."""
        if self.timeline.label.origin is Origin.SIMULATED:
            return Confidence("sure", "the simulated card knows each kernel's FLOP, bytes and blocks")
        return Confidence("likely", "FLOP and bytes follow from the shapes; caches may have served some of the bytes")

    @property
    def too_few_steps(self) -> bool:
        """Whether a measurement has fewer steps than can be compared; simulated steps repeat exactly."""
        simulated = self.timeline.label.origin is Origin.SIMULATED
        return not simulated and 0 < self.ledger.n_steps < self.limits.least_steps
