"""Rules for idle time: what the GPU waits for."""

from __future__ import annotations

from gpututor.causes.case import Case
from gpututor.causes.finding import Cause, Evidence, Finding, count, part, several, time
from gpututor.causes.known import KNOWN
from gpututor.ledger import Account
from gpututor.ledger.interruptions import Interruption, interrupting
from gpututor.text import duration
from gpututor.timeline import Activity, Span


def waiting_for_input(case: Case) -> Finding | None:
    """The host prepares the next batch while the GPU has nothing to do."""
    account = Account.WAITING_FOR_INPUT
    if not case.is_large(Cause.WAITING_FOR_INPUT):
        return None
    waits = case.spans(Activity.INPUT)
    waited_ns = case.per_unit(case.ledger.charged_ns[account])
    evidence = (
        time("idle_ns", waited_ns, "the GPU idles {} " + case.unit + " for it"),
        several("n_waits", case.per_unit(len(waits)), "wait", case.unit),
    )
    return _idle(case, Cause.WAITING_FOR_INPUT, evidence)


def launch_bound(case: Case) -> Finding | None:
    """Preparing a kernel on the host takes longer than running it on the GPU."""
    account = Account.LAUNCH_OVERHEAD
    if not case.is_large(Cause.LAUNCH_BOUND):
        return None
    evidence = [several("n_kernels", case.per_unit(len(case.kernels)), "kernel", case.unit)]
    if case.kernels:
        evidence.append(time("median_kernel_ns", case.median_kernel_ns, "a typical one runs {}"))
    if case.host_ns:
        bound = case.kernel_ns / max(case.host_ns, case.kernel_ns)
        evidence.append(time("host_ns", case.host_ns, "the host needs {} for each"))
        evidence.append(part("busy_bound_share", bound, "so the GPU can't be more than {} busy at this pace"))
    evidence += [*_one_long_wait(case, account), *_small_enough_for_a_cpu(case)]
    more = ""
    if any(e.name == "cpu_ns" for e in evidence):
        more = " If the job must stay this small, compare with the CPU: a low GPU reading is no fault then."
    return _idle(case, Cause.LAUNCH_BOUND, tuple(evidence), more)


def blocking_syncs(case: Case) -> Finding | None:
    """The host waits for a value, and the GPU runs dry before the next launch."""
    account = Account.BLOCKING_SYNC
    if not case.is_large(Cause.BLOCKING_SYNCS):
        return None
    syncs = case.spans(Activity.SYNC)
    copies = case.spans(Activity.COPY_TO_HOST)
    waited_ns = sum(s.duration_ns for s in syncs)
    evidence = (
        several("n_syncs", case.per_unit(len(syncs)), "sync", case.unit),
        count("n_copies", case.per_unit(len(copies)), "copies to the host: {}"),
        time("waited_ns", case.per_unit(waited_ns), "the host waits {} " + case.unit + ", most of it often harmless"),
        time("idle_ns", case.per_unit(case.ledger.charged_ns[account]), "the GPU idles {} because of it"),
    )
    return _idle(case, Cause.BLOCKING_SYNCS, evidence)


def exposed_copy(case: Case) -> Finding | None:
    """Data travels to the GPU while nothing else runs there."""
    account = Account.EXPOSED_COPY
    if not case.is_large(Cause.EXPOSED_COPY):
        return None
    copies = case.spans(Activity.COPY_TO_GPU)
    copied_ns = sum(s.duration_ns for s in copies)
    exposed_ns = case.ledger.charged_ns[account]
    evidence = (
        count("n_copies", case.per_unit(len(copies)), "copies " + case.unit + ": {}"),
        time("copy_ns", case.per_unit(copied_ns), "{} of copying " + case.unit),
        time("exposed_ns", case.per_unit(exposed_ns), "{} with no kernel meanwhile, the call's own time included"),
    )
    return _idle(case, Cause.EXPOSED_COPY, evidence)


def exposed_communication(case: Case) -> Finding | None:
    """The GPU exchanges data with others, or waits for them, and computes nothing."""
    if not case.is_large(Cause.EXPOSED_COMMUNICATION):
        return None
    collectives = case.spans(Activity.COLLECTIVE)
    total_ns = sum(s.duration_ns for s in collectives)
    evidence = (
        several("n_collectives", case.per_unit(len(collectives)), "collective", case.unit),
        time("collective_ns", case.per_unit(total_ns), "{} of collectives " + case.unit),
        time("exposed_ns", case.per_unit(case.ns_of(Cause.EXPOSED_COMMUNICATION)), "{} not hidden by a kernel"),
    )
    return _idle(case, Cause.EXPOSED_COMMUNICATION, evidence)


def start_up(case: Case) -> Finding | None:
    """Tuning and first calls are a large part of the window; what is known to be compiling is told by itself."""
    if not case.is_large(Cause.START_UP):
        return None
    evidence = (time("idle_ns", case.ns_of(Cause.START_UP), "{} in the window"),)
    return _idle(case, Cause.START_UP, evidence)


def pauses(case: Case) -> Finding | None:
    """Evaluation, checkpoints, logging or garbage collection."""
    if not case.is_large(Cause.PAUSES):
        return None
    found = [s for s in case.spans(Activity.PAUSE) if not _told_apart(case, s)]
    longest = max(found, key=lambda s: s.duration_ns, default=None)
    evidence: tuple[Evidence, ...] = (several("n_pauses", len(found), "pause", "in the window"),)
    if longest is not None:
        text = f"the longest, {longest.name!r}, lasts {duration(longest.duration_ns)}"
        evidence += (Evidence("longest_ns", longest.duration_ns, "ns", text),)
    return _idle(case, Cause.PAUSES, evidence)


def _told_apart(case: Case, pause: Span) -> bool:
    """Whether a pause has a finding of its own."""
    cause = {Interruption.COLLECTING: Cause.GARBAGE_COLLECTION, Interruption.PROFILING: Cause.PROFILING}
    kind = interrupting(pause)
    return kind in cause and case.is_large(cause[kind])


def _idle(case: Case, cause: Cause, evidence: tuple[Evidence, ...], more: str = "") -> Finding:
    """The finding of a cause with one account; `more` follows what to change."""
    known = KNOWN[cause]
    (account,) = known.accounts
    share, gain = case.share_of(cause), case.gain_of(case.ns_of(cause))
    return Finding(cause, account, share, evidence, known.change + more, gain, case.idle_confidence, known.lesson)


def _one_long_wait(case: Case, account: Account) -> list[Evidence]:
    """The longest wait on this account, where it alone is a large part: then look there first, not at every launch."""
    longest = max((w for w in case.waits if w.account is account), key=lambda w: w.end_ns - w.start_ns, default=None)
    if longest is None:
        return []
    wait_ns = longest.end_ns - longest.start_ns
    if wait_ns < case.limits.one_wait_share * case.ledger.charged_ns[account]:
        return []
    names = case.host_names(longest.start_ns, longest.end_ns)
    return [time("longest_wait_ns", wait_ns, "one wait alone is {}" + (f", most of it in {names[0]}" if names else ""))]


def _small_enough_for_a_cpu(case: Case) -> list[Evidence]:
    """The same FLOP on one CPU core, where that is so little that the CPU may be the right place."""
    if not case.ledger.useful_flop or not case.ledger.step_ns:
        return []
    cpu_ns = case.per_unit(case.ledger.useful_flop) / case.limits.cpu_flop_per_s * 1e9
    if cpu_ns > case.limits.cpu_step_share * case.ledger.step_ns:
        return []
    return [time("cpu_ns", cpu_ns, "one CPU core at its peak would do a step's arithmetic in {}")]
