"""Rules about the timeline itself: no kernels, too few steps, unexplained time, a clock that can't be right."""

from __future__ import annotations

from gpututor.causes.case import Case
from gpututor.causes.finding import Cause, Confidence, Evidence, Finding, count, part, several, time
from gpututor.causes.known import KNOWN
from gpututor.ledger import Account
from gpututor.text import quantity
from gpututor.timeline import COMPUTING, ON_HOST, Activity, Origin


def no_kernels(case: Case) -> Finding | None:
    """Nothing ran on the GPU, so there is nothing to explain."""
    if case.ledger.n_kernels:
        return None
    change = (
        "Check that model and batch are on the GPU (`next(model.parameters()).device`), and that the recording "
        "includes it (`ProfilerActivity.CUDA`)."
    )
    evidence = (count("n_kernels", 0, "no kernel ran in the window"),)
    return _cannot_tell(None, None, evidence, change, "a job without kernels doesn't use this GPU")


def too_few_kernels(case: Case) -> Finding | None:
    """A recording of hardly anything: shares of it would be about chance."""
    n, least = case.ledger.n_kernels, case.limits.least_kernels
    if case.timeline.label.origin is not Origin.RECORDED or n >= least:
        return None
    evidence = (several("n_kernels", n, "kernel", f"recorded; {least} are the least"),)
    change = "Record a few whole training steps."
    return _cannot_tell(None, None, evidence, change, "so few kernels are no training")


def too_few_steps(case: Case) -> Finding | None:
    """A measurement too short to compare one step with the next."""
    if not case.too_few_steps:
        return None
    n, least = case.ledger.n_steps, case.limits.least_steps
    evidence = (several("n_steps", n, "step", f"recorded; {least} are the least"),)
    change = "Record more steps, and leave out the first ones: they pay for start-up."
    return _cannot_tell(None, None, evidence, change, "one step can't show what is usual")


def unexplained(case: Case) -> Finding | None:
    """Much idle time while the timeline doesn't say what the host did."""
    account = Account.UNKNOWN_IDLE
    share = case.ledger.share(account)
    mostly = case.ledger.charged_ns[account] >= case.limits.unknown_of_idle_share * case.ledger.idle_ns
    if share < case.limits.unknown_share and not (mostly and share >= case.limits.idle_share):
        return None
    evidence = (
        time("idle_ns", case.per_unit(case.ledger.charged_ns[account]), "{} " + case.unit + " without a known reason"),
    )
    change = "Record host activity too (`ProfilerActivity.CPU`), or mark your own code with `record_function`."
    return _cannot_tell(account, share, evidence, change, "idle time is explained by the host, and it isn't recorded")


def clock_stopped_early(case: Case) -> Finding | None:
    """The host's clock stopped while the GPU still had work from these steps.

    Launches return before their kernels run. Only where there are steps: a window without is nobody's clock. Work that
    the window inherits from earlier steps is taken off, so that one step out of a steady run raises no alarm.
    """
    if not case.ledger.n_steps or case.timeline.label.origin is Origin.RECORDED:  # a profiler's marks time nothing
        return None
    lo, hi = case.timeline.window_ns
    kernels = case.own(*COMPUTING, Activity.COLLECTIVE)
    after_ns = max((k.end_ns for k in kernels), default=hi) - hi
    calls: dict[int | None, int] = {s.launch: s.start_ns for s in case.timeline.on(*ON_HOST) if s.launch is not None}
    inherited = [k.end_ns for k in kernels if k.start_ns < lo or (calls and calls.get(k.launch, lo - 1) < lo)]
    net_ns = after_ns - max(0, max(inherited, default=lo) - lo)
    share = net_ns / case.ledger.window_ns
    if share < case.limits.overrun_share:
        return None
    evidence = (
        time("overrun_ns", net_ns, "the GPU still works {} after the clock stopped"),
        part("overrun_share", share, "{} of the time that was measured"),
    )
    reason = "launches are asynchronous, and kernels of these steps end after the window"
    return _suspect(evidence, KNOWN[Cause.TIMER_SUSPECT].change, reason)


def above_peak(case: Case) -> Finding | None:
    """More FLOP than the card can do in the time."""
    flop, card = case.ledger.useful_flop, case.ledger.card
    if not flop or card is None:
        return None
    rate, peak = flop / case.ledger.window_ns * 1e9, card.top_peak_flop_per_s
    if rate < case.limits.above_peak * peak:
        return None
    evidence = (
        Evidence("rate", rate, "FLOP/s", f"{quantity(rate, 'FLOP/s')} seen"),
        Evidence("peak", peak, "FLOP/s", f"{quantity(peak, 'FLOP/s')} is the card's peak"),
    )
    change = "Synchronize before reading the clock, and check the card's name and the FLOP count."
    return _suspect(evidence, change, "no card does more than its peak")


def nothing_wrong(case: Case) -> Finding:
    """What is said when no other rule speaks."""
    ledger = case.ledger
    evidence = [part("busy_share", ledger.busy_share, "{} busy")]
    if ledger.sm_fill_share is not None:
        evidence.append(part("sm_fill_share", ledger.sm_fill_share, "{} SM fill"))
    if ledger.mfu is not None:
        evidence.append(part("mfu", ledger.mfu, "{} MFU"))
    explained = ledger.share(Account.BUSY_UNSPLIT) < case.limits.unknown_share
    confidence = (
        case.busy_confidence
        if explained
        else Confidence("likely", "idle time is small; how well the busy time is used, the source doesn't say")
    )
    known = KNOWN[Cause.NONE_FOUND]
    return Finding(Cause.NONE_FOUND, None, None, tuple(evidence), known.change, None, confidence, known.lesson)


def _cannot_tell(
    account: Account | None, share: float | None, evidence: tuple[Evidence, ...], change: str, reason: str
) -> Finding:
    lesson = KNOWN[Cause.CANNOT_TELL].lesson
    return Finding(Cause.CANNOT_TELL, account, share, evidence, change, None, Confidence("sure", reason), lesson)


def _suspect(evidence: tuple[Evidence, ...], change: str, reason: str) -> Finding:
    lesson = KNOWN[Cause.TIMER_SUSPECT].lesson
    return Finding(Cause.TIMER_SUSPECT, None, None, evidence, change, None, Confidence("sure", reason), lesson)
