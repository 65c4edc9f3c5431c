"""How busy time divides: SMs without a block, slow work, useful work.

One kernel alone. With B blocks on a card of n SMs, R of them resident on an SM, the kernel runs in
ceil(B / (n R)) waves of equal length. Full waves fill the card; the last, with b blocks, fills min(b, n) / n of it:
one block is enough for an SM to have work. The filled time then pays, in this order and as far as it reaches:

    useful FLOP / best rate of the card
    all FLOP / rate of their number format  -  all FLOP / best rate
    bytes / bandwidth  -  all FLOP / rate of their number format
    (all - useful) FLOP / best rate

and what is left is latency and below-peak work. Rates are those of the data sheet, so a stream that reaches
80 % of the bandwidth is four fifths memory-bound. What the source doesn't know isn't guessed: that rest of the
kernel's time is `BUSY_UNSPLIT`.

Kernels at the same time. Their fills add up, to 1 at most, and so do their FLOP and bytes: two kernels that
each use a fifth of the card's rate use two fifths together. The instant is still charged once.

Source of waves: CUDA C++ Best Practices Guide, "Execution Configuration"; roofline: Williams, Waterman, Patterson 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from msgspec import structs

from gpututor.cards import Card
from gpututor.ledger.accounts import BUSY, Account
from gpututor.timeline import Activity, KernelWork, Span

MOVES_BYTES_ONLY = frozenset({Activity.MEMSET, Activity.COPY_ON_GPU})
"""They compute nothing and have no blocks of ours; a kernel whose work is of that kind counts as one."""

PAYING_ORDER = (Account.USEFUL, Account.SLOWER_FORMAT, Account.MEMORY_BOUND, Account.RECOMPUTE_AND_PADDING)


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of one kernel's time by account, summing to 1, and what is missing for the gauges."""

    shares: tuple[float, ...]  # in the order of BUSY
    fill_known: bool
    flop_known: bool

    def __getitem__(self, account: Account) -> float:
        return self.shares[_PLACE[account]]


_MOVING_KINDS = frozenset(activity.value for activity in MOVES_BYTES_ONLY)
_PLACE = {account: k for k, account in enumerate(BUSY)}


def moves_bytes_only(span: Span) -> bool:
    """Whether this is a memset or a copy within the GPU, by its activity or by the kind of its work."""
    return span.activity in MOVES_BYTES_ONLY or (span.work is not None and span.work.kind in _MOVING_KINDS)


def split(span: Span, card: Card | None, n_sms: int | None) -> Split:
    """How the time of one kernel that has the card to itself divides among the busy accounts.

    A memset or a copy within the GPU without further detail is memory-bound as a whole: it does nothing else.
    """
    work = span.work
    if moves_bytes_only(span):
        if card is None or work is None or work.moved_bytes is None:
            return _split({Account.MEMORY_BOUND: 1.0}, True, True)
        work = structs.replace(work, flop=work.flop or 0.0)
    if work is None:
        return _split({Account.BUSY_UNSPLIT: 1.0}, False, False)
    fill = _fill(work, n_sms)
    if fill is None and moves_bytes_only(span):
        fill = 1.0
    shares: dict[Account, float] = {}
    if fill is not None and fill < 1:
        too_few = work.n_blocks is not None and n_sms is not None and work.n_blocks < n_sms
        shares[Account.TOO_FEW_BLOCKS if too_few else Account.LAST_WAVE_TAIL] = 1 - fill
    left = 1.0 if fill is None else fill
    costs, complete = _costs_s(work, card)
    duration_s = span.duration_ns / 1e9
    for account in PAYING_ORDER:
        paid = min(left, costs.get(account, 0.0) / duration_s)
        shares[account] = paid
        left -= paid
    shares[Account.LATENCY_BOUND if complete and fill is not None else Account.BUSY_UNSPLIT] = max(0.0, left)
    return _split(shares, fill is not None, work.flop is not None)


def together(splits: Sequence[Split]) -> tuple[float, ...]:
    """Shares of an instant by account, in the order of BUSY, while several kernels run at once."""
    sums = [sum(parts) for parts in zip(*(s.shares for s in splits), strict=True)]
    out = [0.0] * len(BUSY)
    fill = min(1.0, sum(1 - s[Account.TOO_FEW_BLOCKS] - s[Account.LAST_WAVE_TAIL] for s in splits))
    _divide(out, sums, 1 - fill, (Account.TOO_FEW_BLOCKS, Account.LAST_WAVE_TAIL))
    left = fill
    for account in PAYING_ORDER:
        paid = min(left, sums[_PLACE[account]])
        out[_PLACE[account]] = paid
        left -= paid
    _divide(out, sums, max(0.0, left), (Account.BUSY_UNSPLIT, Account.LATENCY_BOUND))
    return tuple(out)


def whole(parts: dict[Account, float], total: int) -> dict[Account, int]:
    """Whole numbers that sum to `total` and differ from `parts` by less than 1 each (largest remainders).

    >>> whole({Account.USEFUL: 1.5, Account.MEMORY_BOUND: 1.25, Account.LATENCY_BOUND: 0.25}, 3)[Account.USEFUL]
    2
    """
    out = {account: floor(part) for account, part in parts.items()}
    missing = total - sum(out.values())
    by_remainder = sorted(parts, key=lambda a: floor(parts[a]) - parts[a])
    for account in by_remainder[: max(0, missing)]:
        out[account] += 1
    drift = total - sum(out.values())
    if drift:  # sums of binary fractions can miss by a few units in windows of hours
        largest = max(out, key=lambda a: out[a])
        out[largest] += drift
    return out


def _fill(work: KernelWork, n_sms: int | None) -> float | None:
    """Mean share of SMs with a block, or None where it can't be told."""
    blocks = work.n_blocks
    if n_sms is None or blocks is None or blocks < 1:
        return None
    if blocks < n_sms:
        return blocks / n_sms
    if work.blocks_per_sm is None or work.blocks_per_sm < 1:
        return None
    wave = n_sms * work.blocks_per_sm
    waves = ceil(blocks / wave)
    last = blocks - (waves - 1) * wave
    return (waves - 1 + min(last, n_sms) / n_sms) / waves


def _costs_s(work: KernelWork, card: Card | None) -> tuple[dict[Account, float], bool]:
    """Seconds that each account may claim, and whether nothing was missing to know them all."""
    if card is None or work.flop is None:
        return {}, False
    best = card.top_peak_flop_per_s
    useful = work.flop if work.useful_flop is None else min(work.useful_flop, work.flop)
    costs = {Account.USEFUL: useful / best, Account.RECOMPUTE_AND_PADDING: (work.flop - useful) / best}
    rate = card.peak(work.number_format) if work.number_format else None
    if rate is None and work.flop > 0:
        return costs, False
    arithmetic_s = work.flop / rate if rate else 0.0
    costs[Account.SLOWER_FORMAT] = max(0.0, arithmetic_s - work.flop / best)
    if work.moved_bytes is None:
        return costs, False
    costs[Account.MEMORY_BOUND] = max(0.0, work.moved_bytes / card.bandwidth_bytes_per_s - arithmetic_s)
    return costs, True


def _split(shares: dict[Account, float], fill_known: bool, flop_known: bool) -> Split:
    return Split(tuple(shares.get(account, 0.0) for account in BUSY), fill_known, flop_known)


def _divide(out: list[float], sums: Sequence[float], amount: float, among: tuple[Account, Account]) -> None:
    """Give `amount` to two accounts in proportion to their sums; to the second where both are zero."""
    first, second = (_PLACE[account] for account in among)
    both = sums[first] + sums[second]
    out[first] = amount * sums[first] / both if both > 0 else 0.0
    out[second] = amount - out[first]
