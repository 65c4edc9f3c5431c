"""One kernel looked at closely: which SMs it keeps busy, what limits it, and what it would do with other sizes.

All of it is plain arithmetic on what the cost model prices, quick enough for a slider.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from gpututor.cards import Card
from gpututor.errors import KernelSpecError, TimelineError
from gpututor.ledger import Account, Ledger, charge
from gpututor.model.cost import price
from gpututor.model.kernels import RowReduce
from gpututor.model.spec import KernelSpec
from gpututor.model.tape import Tape, TapeOp
from gpututor.replay import Played
from gpututor.text import duration, percent, quantity
from gpututor.timeline import NS_PER_S, Activity, KernelWork, Label, Lane, LaneKind, Origin, Span, Timeline

FULL_SHARE = 0.999  # of a kernel's time; what is missing above it can't be seen in a picture


def first_kernel(tape: Tape) -> KernelSpec:
    """What the tape's first kernel has to do, on whatever card.

    Raises:
        TimelineError: the run launched none.
    """
    for entry in tape.entries:
        if isinstance(entry, TapeOp) and entry.kernels:
            return entry.kernels[0]
    raise TimelineError(f"the run {tape.what!r} launched no kernel, so there is none to look at; run it again")


def first_span(timeline: Timeline) -> tuple[int, KernelWork]:
    """Nanoseconds and work of the timeline's first kernel that says its work.

    Raises:
        TimelineError: there is none.
    """
    for span in timeline.on(Activity.KERNEL):
        if span.work is not None:
            return span.duration_ns, span.work
    raise TimelineError("the timeline has no kernel that says what it did, so there is none to look at")


# --- other sizes ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alone:
    """A kernel that has the card to itself from its begin to its end."""

    duration_ns: int
    work: KernelWork
    ledger: Ledger


def alone(spec: KernelSpec, card: Card, what: str = "") -> Alone:
    """The kernel on `card`, priced and accounted."""
    priced = price(spec, card)
    span = Span(0, Activity.KERNEL, spec.name, 0, priced.duration_ns, None, priced.work)
    label = Label(Origin.SIMULATED, card.name, None, what, (), card.n_sms)
    timeline = Timeline((Lane(LaneKind.STREAM, "stream", 0),), (span,), (0, priced.duration_ns), label)
    return Alone(priced.duration_ns, priced.work, charge(timeline, card))


def with_rows(spec: KernelSpec, n_rows: int) -> RowReduce:
    """The same kernel over `n_rows` rows of the same length.

    Raises:
        KernelSpecError: it isn't a kernel that works on rows.
    """
    if not isinstance(spec, RowReduce):
        raise KernelSpecError(f"{spec.name} doesn't work on rows, so their number can't be changed")
    times = n_rows / spec.n_rows
    return replace(spec, n_rows=n_rows, moved_bytes=round(times * spec.moved_bytes), flop=round(times * spec.flop))


def fill_by_rows(spec: KernelSpec, card: Card, most: int) -> list[tuple[int, float | None]]:
    """For 1 to `most` rows the share of the card's SMs that have a block, over the kernel's time, where it bends.

    Between two of the points it is a straight line: within a wave each block more fills one SM more, or none.
    """
    work = price(with_rows(spec, 1), card).work
    at_once = card.n_sms * max(1, work.blocks_per_sm or 1)
    bends = {n for begin in range(0, most, at_once) for n in (begin + 1, begin + card.n_sms, begin + at_once)}
    return [
        (n, alone(with_rows(spec, n), card).ledger.sm_fill_share)
        for n in sorted({n for n in bends if n < most} | {most})
    ]


def rows_for_free(spec: KernelSpec, card: Card, most: int) -> int:
    """The largest number of rows, up to `most`, that takes no longer than one row."""
    one_ns = price(with_rows(spec, 1), card).duration_ns
    return max(n for n in range(1, most + 1) if price(with_rows(spec, n), card).duration_ns <= one_ns)


# --- SMs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waves:
    """How a kernel's blocks go through the card: so many at once, so often, and so many in the last wave."""

    n_blocks: int
    n_sms: int
    n_waves: int
    in_last: int

    @property
    def sm_shares(self) -> tuple[float, ...]:
        """For each SM, the share of the kernel's time in which it has a block."""
        with_last = min(self.in_last, self.n_sms)
        return (1.0,) * with_last + ((self.n_waves - 1) / self.n_waves,) * (self.n_sms - with_last)

    @property
    def in_words(self) -> str:
        """One sentence for a reader."""
        blocks = f"{self.n_blocks:,} block{'' if self.n_blocks == 1 else 's'}"
        empty = self.n_sms - min(self.in_last, self.n_sms)
        if self.n_waves == 1 and empty:
            return f"{blocks} for {self.n_sms} SMs: {empty} {'SM never gets' if empty == 1 else 'SMs never get'} one."
        if empty and min(self.sm_shares) < FULL_SHARE:
            return f"{blocks} in {self.n_waves} waves; in the last one {empty} of {self.n_sms} SMs get none."
        waves = "one wave" if self.n_waves == 1 else f"{self.n_waves:,} waves"
        return f"{blocks} in {waves}: all {self.n_sms} SMs have one to the end."


def waves(work: KernelWork, card: Card) -> Waves:
    """The waves in which this kernel runs on `card`, by the rule of the ledger (`ledger.busy`).

    Raises:
        TimelineError: the kernel doesn't say its blocks.
    """
    if not work.n_blocks:
        raise TimelineError(f"a {work.kind} kernel doesn't say how many blocks it has, so its waves can't be counted")
    at_once = card.n_sms * max(1, work.blocks_per_sm or 1)
    n_waves = ceil(work.n_blocks / at_once)
    return Waves(work.n_blocks, card.n_sms, n_waves, work.n_blocks - (n_waves - 1) * at_once)


# --- limits ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roof:
    """The two times that a kernel can't beat, from the card's data sheet, and the time it took, in nanoseconds."""

    bytes_ns: float
    flop_ns: float
    took_ns: float
    number_format: str

    @property
    def reached_share(self) -> float:
        """The slower of the two limits, as a share of the time taken."""
        return max(self.bytes_ns, self.flop_ns) / self.took_ns


def roof(played: Played) -> Roof:
    """Limits and time of the run's first kernel.

    Source: Williams, Waterman, Patterson 2009, "Roofline: An Insightful Visual Performance Model".

    Raises:
        TimelineError: no kernel says its work.
    """
    took_ns, work = first_span(played.timeline)
    card, number_format = played.machine.card, work.number_format or "fp32"
    peak_flop_per_s = card.peak(number_format) or card.peak_flop_per_s["fp32"]
    return Roof(
        NS_PER_S * (work.moved_bytes or 0) / card.bandwidth_bytes_per_s,
        NS_PER_S * (work.flop or 0) / peak_flop_per_s,
        took_ns,
        number_format,
    )


def explained(played: Played) -> dict[str, str]:
    """What the lines of the run's waterfall mean here, with this run's numbers: Markdown by the row's name."""
    took_ns, work = first_span(played.timeline)
    card, limits, ledger = played.machine.card, roof(played), played.ledger
    best, best_flop_per_s = card.top_format()
    flop, moved = quantity(work.flop, "FLOP"), quantity(work.moved_bytes, "B")
    blocks = waves(work, card).in_words
    gap_ns = ledger.charged_ns[Account.LAUNCH_OVERHEAD] / max(1, ledger.n_kernels)
    filled = ledger.sm_fill_share is not None and ledger.sm_fill_share > 0.5
    memory = f"{moved} at {quantity(card.bandwidth_bytes_per_s, 'B/s')} take {duration(limits.bytes_ns)}"
    return {
        "blocking_sync": "Once, at the end, the host waits until all is done.",
        "launch_overhead": f"From one kernel to the next pass {duration(gap_ns)}.",
        "too_few_blocks": blocks,
        "last_wave_tail": blocks,
        "memory_bound": f"{memory} of the kernel's {duration(took_ns)}."
        if filled
        else f"What little of the card works is moving {moved}.",
        "latency_bound": f"The kernel reaches {percent(limits.reached_share)} of its limit on the data sheet.",
        "slower_format": f"{flop} take {duration(limits.flop_ns)} in {limits.number_format} at best, "
        f"{duration(NS_PER_S * (work.flop or 0) / best_flop_per_s)} in {best}.",
        "mfu": f"{flop} in {duration(took_ns)}; in {best} the card could do "
        f"{quantity(best_flop_per_s * took_ns / NS_PER_S, 'FLOP')} meanwhile.",
    }


def largest_loss(ledger: Ledger) -> Account:
    """The account, other than useful work, that took most of the window."""
    return max((a for a in Account if a is not Account.USEFUL), key=lambda a: ledger.charged_ns[a])
