"""Rules for busy time: why a GPU that runs kernels gets little done."""

from __future__ import annotations

from statistics import median

from gpututor.causes.case import Case
from gpututor.causes.finding import Cause, Evidence, Finding, count, part, several
from gpututor.causes.known import KNOWN
from gpututor.ledger import Account
from gpututor.text import quantity


def too_small_to_fill(case: Case) -> Finding | None:
    """Kernels have fewer blocks than the card has SMs, or leave many empty at their end."""
    if not case.is_large(Cause.TOO_SMALL_TO_FILL):
        return None
    few, tail = KNOWN[Cause.TOO_SMALL_TO_FILL].accounts
    blocks = [k.work.n_blocks for k in case.kernels if k.work is not None and k.work.n_blocks is not None]
    n_sms = case.ledger.card.n_sms if case.ledger.card else case.timeline.label.n_sms
    evidence: list[Evidence] = []
    if blocks and n_sms:
        small = sum(n < n_sms for n in blocks)
        evidence = [
            several("median_blocks", median(blocks), "block", "in a typical kernel"),
            count("n_sms", n_sms, "the card has {} SMs"),
            part("small_share", small / len(blocks), "{} of the kernels have fewer blocks than that"),
        ]
    account = few if case.ledger.charged_ns[few] >= case.ledger.charged_ns[tail] else tail
    return _busy(case, Cause.TOO_SMALL_TO_FILL, tuple(evidence), account)


def memory_bound(case: Case) -> Finding | None:
    """Kernels that move many bytes for each FLOP."""
    if not case.is_large(Cause.MEMORY_BOUND):
        return None
    works = [k.work for k in case.kernels if k.work is not None and k.work.moved_bytes]
    evidence: list[Evidence] = []
    card = case.ledger.card
    n_bytes = sum(w.moved_bytes or 0 for w in works)
    if n_bytes and card:
        intensity = sum(w.flop or 0 for w in works) / n_bytes
        balance = card.top_peak_flop_per_s / card.bandwidth_bytes_per_s
        moved = quantity(case.per_unit(n_bytes), "B")
        evidence = [
            Evidence("moved_bytes", case.per_unit(n_bytes), "B", f"{moved} moved {case.unit}"),
            Evidence("flop_per_byte", intensity, "FLOP/B", f"{intensity:.3g} FLOP for each byte"),
            Evidence("balance", balance, "FLOP/B", f"the card could do {balance:.3g} meanwhile"),
        ]
    return _busy(case, Cause.MEMORY_BOUND, tuple(evidence))


def slower_format(case: Case) -> Finding | None:
    """Arithmetic in a number format for which the card has a faster neighbour."""
    card = case.ledger.card
    if not case.is_large(Cause.SLOWER_FORMAT) or card is None:
        return None
    flop: dict[str, float] = {}
    for kernel in case.kernels:
        if kernel.work is not None and kernel.work.flop and kernel.work.number_format:
            flop[kernel.work.number_format] = flop.get(kernel.work.number_format, 0) + kernel.work.flop
    best, best_rate = card.top_format()
    evidence = []
    if flop:
        most = max(flop, key=lambda f: flop[f])
        evidence = [
            part("format_share", flop[most] / sum(flop.values()), "{} of the FLOP are in " + most),
            Evidence("rate", card.peak(most) or 0, "FLOP/s", f"{quantity(card.peak(most), 'FLOP/s')} at best"),
            Evidence("best_rate", best_rate, "FLOP/s", f"{best} does {quantity(best_rate, 'FLOP/s')}"),
        ]
    return _busy(case, Cause.SLOWER_FORMAT, tuple(evidence), more=f" The fastest on this card is {best}.")


def recompute_and_padding(case: Case) -> Finding | None:
    """FLOP that the result doesn't need."""
    if not case.is_large(Cause.RECOMPUTE_AND_PADDING):
        return None
    works = [k.work for k in case.kernels if k.work is not None and k.work.flop]
    done = sum(w.flop or 0 for w in works)
    useful = sum((w.flop if w.useful_flop is None else w.useful_flop) or 0 for w in works)
    evidence = (part("wasted_share", 1 - useful / done, "{} of the FLOP serve no result"),) if done else ()
    return _busy(case, Cause.RECOMPUTE_AND_PADDING, evidence)


def _busy(
    case: Case, cause: Cause, evidence: tuple[Evidence, ...], account: Account | None = None, more: str = ""
) -> Finding:
    """The finding of a cause, under the main one of its accounts unless another is given.

    `more` follows what to change.
    """
    known = KNOWN[cause]
    share, gain = case.ledger.share(*known.accounts), case.gain(*known.accounts)
    return Finding(
        cause,
        account or known.accounts[0],
        share,
        evidence,
        known.change + more,
        gain,
        case.busy_confidence,
        known.lesson,
    )
