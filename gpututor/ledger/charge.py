"""Charge every nanosecond of a window to exactly one account.

The rule of accounting, from the top. An instant in which a kernel computes is busy, and divided
as `busy.py` says. Else, in a collective or a transfer between GPUs, it is exposed communication; else, in a
copy to the GPU, exposed copy; else, in a copy to the host, blocking sync. Else the GPU is idle, and the instant
belongs to what the host was doing, as `idle.py` says.

So what runs under a kernel is free, because deleting it wouldn't shorten the step. Spans that stick out of
the window are clipped: their part inside is charged. Times are whole nanoseconds and the accounts add up to
the window by construction; only the parts of busy time are rounded, to whole nanoseconds with the same sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpututor.cards import Card, find_card
from gpututor.errors import TimelineError
from gpututor.ledger import busy
from gpututor.ledger.accounts import BUSY, Account
from gpututor.ledger.book import Ledger
from gpututor.ledger.device import SHOWN_BY_NVIDIA_SMI, STATE_OF, State, Stretch
from gpututor.ledger.piece import Piece
from gpututor.ledger.tally import Tally
from gpututor.text import percent
from gpututor.timeline import COMPUTING, Span, Step, Timeline

WORTH_SAYING_SHARE = 0.05
"""Our choice: two windows whose busy shares differ by 5 points would lead to different conclusions."""


def charge(
    timeline: Timeline,
    card: Card | None = None,
    window: Literal["window", "device"] = "window",
    device: int | None = None,
    tally: Tally | None = None,
) -> Ledger:
    """The ledger of one GPU over the timeline's window, or from its first kernel to its last one.

    Without a `card`, the one that the label names is used; where that is not in our table either, busy time isn't
    broken down. A step counts where its middle lies in the window. `tally` is that of the timeline, where several of
    its windows are charged; the widest of them first is quickest.

    Raises:
        TimelineError: several GPUs and none chosen, or no kernel where the device window is asked for.
    """
    card = card or (find_card(timeline.label.card) if timeline.label.card else None)
    tally = tally or Tally(timeline, device)
    window_ns = timeline.window_ns if window == "window" else _device_window(tally.spans)
    cut, pieces = tally.within(window_ns)
    charged = Counter[Account]()
    for start, end, account in pieces:
        charged[account] += end - start
    n_sms = card.n_sms if card else timeline.label.n_sms
    kernels = _kernels(tally.spans, window_ns)
    splits = tally.splits(kernels, card, n_sms)
    charged.update(_charge_busy(splits, cut))
    steps = [s for s in timeline.steps if window_ns[0] <= (s.start_ns + s.end_ns) // 2 < window_ns[1]]
    n_samples = _n_samples(steps)
    return Ledger(
        window_ns=window_ns[1] - window_ns[0],
        charged_ns=charged,
        label=timeline.label,
        gpu_util_ns=tally.shown_ns(window_ns),
        n_kernels=sum(s.activity in COMPUTING for s in kernels.values()),
        n_steps=len(steps),
        n_samples=n_samples,
        useful_flop=_useful_flop(kernels.values(), window_ns),
        card=card,
        device=device,
        reasons=_reasons(splits.values(), card, n_sms, n_samples, _flop_unknown(kernels.values())),
        pieces=tuple(pieces),
    )


def waits(timeline: Timeline, device: int | None = None) -> tuple[Piece, ...]:
    """Every stretch of the window in which no kernel computes, with its account: what a chart paints in the gaps."""
    return tuple(Tally(timeline, device).within(timeline.window_ns)[1])


@dataclass(frozen=True, slots=True)
class TwoWindows:
    """The same GPU over the steps and from first to last kernel; `device` is None without kernels."""

    steps: Ledger
    device: Ledger | None

    @property
    def disagreement(self) -> str | None:
        """One sentence where the busy shares differ by more than `WORTH_SAYING_SHARE`, else None."""
        if self.device is None:
            return "no kernel ran, so there is no span from first to last kernel to compare with"
        if abs(self.device.busy_share - self.steps.busy_share) <= WORTH_SAYING_SHARE:
            return None
        wider = self.device.window_ns > self.steps.window_ns
        where = "in the steps" if wider else "over the whole window"
        what = "outside the steps" if wider else "before the first kernel or after the last"
        return (
            f"{where} the GPU is {percent(self.steps.busy_share)} busy, from its first kernel to its "
            f"last {percent(self.device.busy_share)}; the difference is time {what}"
        )


def charge_both(timeline: Timeline, card: Card | None = None, device: int | None = None) -> TwoWindows:
    """The ledgers of both windows, side by side.

    Raises:
        TimelineError: several GPUs and none chosen.
    """
    has_kernels, tally = timeline.device_window_ns() is not None, Tally(timeline, device)
    return TwoWindows(
        charge(timeline, card, "window", device, tally),
        charge(timeline, card, "device", device, tally) if has_kernels else None,
    )


def _device_window(spans: Sequence[Span]) -> tuple[int, int]:
    kernels = [s for s in spans if s.activity in SHOWN_BY_NVIDIA_SMI and s.duration_ns]
    if not kernels:
        raise TimelineError("no kernel ran, so there is no span from first to last kernel; charge the window instead")
    return min(s.start_ns for s in kernels), max(s.end_ns for s in kernels)


def _kernels(spans: Sequence[Span], window_ns: tuple[int, int]) -> dict[int, Span]:
    """The computing spans that reach into the window, by index."""
    lo, hi = window_ns
    return {
        k: s
        for k, s in enumerate(spans)
        if s.end_ns > lo and s.start_ns < hi and STATE_OF[s.activity] is State.COMPUTING
    }


def _charge_busy(splits: Mapping[int, busy.Split], cut: Sequence[Stretch]) -> dict[Account, int]:
    """Whole nanoseconds by busy account, summing to the computing stretches exactly."""
    alone_ns: dict[int, int] = {}  # by the split, of which there are few
    together_ns = Counter[tuple[int, ...]]()
    same = {id(split): split for split in splits.values()}
    for stretch in cut:
        running = stretch.running
        if len(running) == 1:
            split = id(splits[running[0]])
            alone_ns[split] = alone_ns.get(split, 0) + stretch.end_ns - stretch.start_ns
        elif running:
            together_ns[running] += stretch.end_ns - stretch.start_ns
    shared = [(same[k].shares, ns) for k, ns in alone_ns.items()]
    shared += [(busy.together([splits[k] for k in running]), ns) for running, ns in together_ns.items()]
    parts = [0.0] * len(BUSY)
    for shares, ns in shared:
        for k, share in enumerate(shares):
            if share:
                parts[k] += ns * share
    return busy.whole(dict(zip(BUSY, parts, strict=True)), sum(ns for _, ns in shared))


def _n_samples(steps: Sequence[Step]) -> int | None:
    if not steps or any(step.n_samples is None for step in steps):
        return None
    return sum(step.n_samples or 0 for step in steps)


def _useful_flop(kernels: Iterable[Span], window_ns: tuple[int, int]) -> float | None:
    """Useful FLOP of the parts inside the window, or None where a kernel doesn't say."""
    lo, hi = window_ns
    total = 0.0
    for span in kernels:
        if busy.moves_bytes_only(span):
            continue
        if span.work is None or span.work.flop is None:
            return None
        flop = span.work.flop if span.work.useful_flop is None else span.work.useful_flop
        if span.duration_ns:
            total += flop * (min(span.end_ns, hi) - max(span.start_ns, lo)) / span.duration_ns
    return total


def _flop_unknown(kernels: Iterable[Span]) -> str:
    """Why most of the kernels without FLOP have none, in a source's own words; empty where it doesn't say."""
    unsaid = [s.work for s in kernels if s.duration_ns and s.work is not None and s.work.flop is None]
    words = Counter(work.flop_unknown for work in unsaid if work.flop_unknown)
    if not words:
        return ""
    why, n = words.most_common(1)[0]
    return f"{n:,} of them: {why}"


def _reasons(
    splits: Collection[busy.Split], card: Card | None, n_sms: int | None, n_samples: int | None, flop_unknown: str = ""
) -> dict[str, str]:
    """Why a gauge can't be read, by the gauge's name; empty where all can."""
    n, no_fill = len(splits), sum(not s.fill_known for s in splits)
    no_flop = sum(not s.flop_known for s in splits)
    reasons: dict[str, str] = {}
    if n and n_sms is None:
        reasons["sm_fill"] = "the number of SMs isn't known: no card in our table and none in the label"
    elif no_fill:
        reasons["sm_fill"] = f"{no_fill:,} of {n:,} kernels don't say their blocks, or how many an SM holds"
    if n and card is None:
        reasons["mfu"] = "the card isn't in our table, so its peak isn't known"
    elif no_flop:
        why = flop_unknown or "a trace without shapes"
        reasons["mfu"] = f"{no_flop:,} of {n:,} kernels don't say their FLOP ({why})"
    if n_samples is None:
        reasons["samples_per_s"] = "the steps don't say how many samples they hold"
    return reasons
