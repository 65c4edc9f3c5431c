"""What the rules look at: a timeline, its ledger, and a few readings made from both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import median

from gpututor.causes import parts
from gpututor.causes.finding import Cause, Confidence, Gain
from gpututor.causes.known import KNOWN
from gpututor.causes.parts import Awaited
from gpututor.causes.thresholds import Thresholds
from gpututor.ledger import Account, Ledger, Piece, waits
from gpututor.ledger.interruptions import Interruption
from gpututor.timeline import COMPUTING, Activity, Origin, Span, Timeline, covered_ns

HOST_WORK = frozenset({Activity.PYTHON, Activity.DISPATCH, Activity.LAUNCH})


@dataclass(frozen=True)  # without slots, which cached_property can't do
class Case:
    """One GPU's window as the rules see it. Counts and times are of spans that begin in the window."""

    timeline: Timeline
    ledger: Ledger
    limits: Thresholds
    awaited: Awaited | None = None

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
        """The spans of these activities that begin in the window, activity by activity."""
        lo, hi = self.timeline.window_ns
        return [s for s in self.own(*activities) if lo <= s.start_ns < hi]

    def own(self, *activities: Activity) -> list[Span]:
        """The same, in the window or not: those of the host and of the ledger's GPU."""
        other = {
            k
            for k, lane in enumerate(self.timeline.lanes)
            if self.ledger.device is not None and lane.device not in (None, self.ledger.device)
        }
        return [s for each in activities for s in self.timeline.on(each) if s.lane not in other]

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
        work = [s for lane in launching for s in self.timeline.by_lane[lane] if s.activity in HOST_WORK]
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

    def is_large(self, cause: Cause) -> bool:
        """Whether the accounts of a cause hold enough of the window for it to be named."""
        known = KNOWN[cause]
        return known.least is not None and self.share_of(cause) >= known.least(self.limits)

    def ns_of(self, cause: Cause) -> int:
        """Nanoseconds that a cause explains: its accounts, without what causes of a part of them explain."""
        known = KNOWN[cause]
        if known.part_of is not None:
            return self.parts_ns[cause]
        inner = (c for c in self.parts_ns if KNOWN[c].part_of in known.accounts and self.is_large(c))
        return sum(self.ledger.charged_ns[a] for a in known.accounts) - sum(self.parts_ns[c] for c in inner)

    def share_of(self, cause: Cause) -> float:
        """The same as a share of the window."""
        return self.ns_of(cause) / self.ledger.window_ns

    @cached_property
    def parts_ns(self) -> dict[Cause, int]:
        """Nanoseconds of each cause that explains a part of an account; none is in two."""
        interrupted = any(self.ledger.charged_ns[account] for account in (Account.PAUSE, Account.START_UP))
        interrupting = self.own(Activity.PAUSE, Activity.STARTUP) if interrupted else ()
        told = parts.interruptions_ns(interrupting, self.waits)
        return {
            Cause.GARBAGE_COLLECTION: told[Interruption.COLLECTING],
            Cause.PROFILING: told[Interruption.PROFILING],
            Cause.COMPILING: sum(told[kind] for kind in parts.COMPILES),
            Cause.STRAGGLING_RANK: parts.awaited_ns(self.awaited, self.waits),
        }

    def gain(self, *accounts: Account) -> Gain | None:
        """The bound that emptying these accounts gives, or None where they are the whole window."""
        return self.gain_of(sum(self.ledger.charged_ns[account] for account in set(accounts)))

    def gain_of(self, ns: int) -> Gain | None:
        """The bound that losing so much of the window gives, or None where it is all of it."""
        left_ns = self.ledger.window_ns - ns
        if left_ns <= 0:
            return None
        before_ns, after_ns = self.per_unit(self.ledger.window_ns), self.per_unit(left_ns)
        return Gain(before_ns, after_ns, "step" if self.ledger.n_steps else "window")

    @cached_property
    def idle_confidence(self) -> Confidence:
        """How sure the split of idle time is."""
        if self.too_few_steps:
            return Confidence("a guess", f"{self.ledger.n_steps} steps are too few to tell chance from cause")
        if self.timeline.label.origin is Origin.SIMULATED:
            return Confidence("sure", "the simulated clock knows what the host did at every instant")
        calls = {s.launch for each in HOST_WORK for s in self.timeline.on(each)} - {None}
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
