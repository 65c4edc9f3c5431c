"""Rules for parts of idle accounts that the timeline names: compiling, garbage, the profiler, a late rank."""

from __future__ import annotations

from gpututor.causes.case import Case
from gpututor.causes.finding import Cause, Confidence, Evidence, Finding, several, time
from gpututor.causes.known import KNOWN
from gpututor.causes.parts import COMPILES
from gpututor.ledger.interruptions import Interruption, interrupting
from gpututor.text import duration
from gpututor.timeline import Activity


def garbage_collection(case: Case) -> Finding | None:
    """Python looks for garbage while the GPU has nothing to do."""
    return _interruption(case, Cause.GARBAGE_COLLECTION, (Interruption.COLLECTING,))


def compiling(case: Case) -> Finding | None:
    """Code is compiled, tried out or loaded while the GPU has nothing to do."""
    return _interruption(case, Cause.COMPILING, COMPILES)


def profiling(case: Case) -> Finding | None:
    """The profiler keeps its own books while the GPU has nothing to do."""
    return _interruption(case, Cause.PROFILING, (Interruption.PROFILING,))


def straggling_rank(case: Case) -> Finding | None:
    """In collectives this GPU waits until the last one has come."""
    if case.awaited is None or not case.is_large(Cause.STRAGGLING_RANK):
        return None
    ns, awaited = case.ns_of(Cause.STRAGGLING_RANK), case.awaited
    evidence = [
        several("n_matched", awaited.n_matched, "collective", "found on all ranks"),
        time("idle_ns", case.per_unit(ns), "the GPU waits {} " + case.unit + " for the last rank"),
    ]
    if awaited.last:
        name, n = awaited.last[0]
        evidence.append(Evidence("n_last", n, "1", f"{name} comes last in {n:,} of them"))
    reason = (
        "the same collective is matched across ranks by its order and name; their traces may not cover the same time"
    )
    return _part(case, Cause.STRAGGLING_RANK, tuple(evidence), Confidence("likely", reason))


def _interruption(case: Case, cause: Cause, kinds: tuple[Interruption, ...]) -> Finding | None:
    """The finding of a part that is told by names of host spans."""
    if not case.is_large(cause):
        return None
    lo, hi = case.timeline.window_ns
    spans = case.own(Activity.PAUSE, Activity.STARTUP)
    spans = [s for s in spans if s.start_ns < hi and s.end_ns > lo and interrupting(s) in kinds]
    longest = max(spans, key=lambda s: s.duration_ns)
    evidence = [time("idle_ns", case.per_unit(case.ns_of(cause)), "the GPU idles {} " + case.unit + " for it")]
    evidence.append(
        Evidence(
            "longest_ns",
            longest.duration_ns,
            "ns",
            f"the longest, {longest.name!r}, lasts {duration(longest.duration_ns)}",
        )
    )
    return _part(case, cause, tuple(evidence), case.idle_confidence)


def _part(case: Case, cause: Cause, evidence: tuple[Evidence, ...], confidence: Confidence) -> Finding:
    known = KNOWN[cause]
    share, gain = case.share_of(cause), case.gain_of(case.ns_of(cause))
    return Finding(cause, known.part_of, share, evidence, known.change, gain, confidence, known.lesson)
