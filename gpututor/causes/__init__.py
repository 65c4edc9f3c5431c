"""Ledger → findings: causes of poor use by name, the largest first.

A rule is a small function from a `Case` to a `Finding` or None. To add a cause: one entry in `RULES`, one in
`Cause`, one in `KNOWN`, one test.
"""

from __future__ import annotations

from gpututor.causes import doubts, interrupted, waiting, working
from gpututor.causes.case import Case
from gpututor.causes.finding import Cause, Confidence, Evidence, Finding, Gain, finding_fields
from gpututor.causes.known import KNOWN, Known, cause_of
from gpututor.causes.parts import Awaited
from gpututor.causes.thresholds import Thresholds
from gpututor.ledger import Ledger, charge
from gpututor.timeline import Timeline

__all__ = [
    "KNOWN",
    "RULES",
    "Awaited",
    "Cause",
    "Confidence",
    "Evidence",
    "Finding",
    "Gain",
    "Known",
    "Thresholds",
    "cause_of",
    "find_causes",
    "finding_fields",
]

RULES = (
    doubts.clock_stopped_early,
    doubts.above_peak,
    doubts.too_few_steps,
    doubts.unexplained,
    waiting.waiting_for_input,
    waiting.launch_bound,
    waiting.blocking_syncs,
    waiting.exposed_copy,
    waiting.exposed_communication,
    interrupted.straggling_rank,
    interrupted.compiling,
    interrupted.garbage_collection,
    interrupted.profiling,
    waiting.start_up,
    waiting.pauses,
    working.too_small_to_fill,
    working.memory_bound,
    working.slower_format,
    working.recompute_and_padding,
)


def find_causes(
    timeline: Timeline,
    ledger: Ledger | None = None,
    thresholds: Thresholds | None = None,
    awaited: Awaited | None = None,
) -> tuple[Finding, ...]:
    """What keeps this GPU from useful work: doubts about the timeline itself first, then causes by share of the window.

    Never empty: "nothing is wrong" and "this is not enough to tell" are findings too. `ledger` is the one of
    `timeline`; it is charged here if not given. `awaited` says when this GPU waited for others, where that is known.

    Raises:
        TimelineError: no ledger was given and the timeline has several GPUs.
    """
    case = Case(timeline, ledger or charge(timeline), thresholds or Thresholds(), awaited)
    alone = doubts.no_kernels(case) or doubts.too_few_kernels(case)
    if alone is not None:
        return (alone,)
    found = [finding for rule in RULES if (finding := rule(case)) is not None]
    silent = not any(f.share is not None or f.cause is Cause.CANNOT_TELL for f in found)
    if silent and doubts.above_peak(case) is None:
        found.append(doubts.nothing_wrong(case))
    return tuple(sorted(found, key=lambda f: (f.share is not None, -(f.share or 0))))
