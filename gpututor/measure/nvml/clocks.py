"""Why a card's clocks are where they are, in words: bits of NVML's clocks event reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockReason:
    """One bit; `slows` where the card runs slower than it could, which a power limit on a busy card does healthily."""

    bit: int
    name: str
    words: str
    slows: bool


# Source: nvml.h of API 13, nvmlClocksEventReason*. The last two are nvidia-ml-py's, 13.615, and in no header.
_REASONS = (
    ClockReason(0x001, "idle", "nothing runs, so the clocks are low", slows=False),
    ClockReason(0x002, "set by a user", "somebody set the application clocks", slows=True),
    ClockReason(0x004, "power limit", "the power limit is reached; normal on a busy card", slows=True),
    ClockReason(0x008, "hardware slowdown", "the card halved its clocks or more: heat, brake, supply", slows=True),
    ClockReason(0x010, "sync boost", "held to the slowest card of its group", slows=True),
    ClockReason(0x020, "too hot (driver)", "chip or memory is above its highest operating temperature", slows=True),
    ClockReason(0x040, "too hot (card)", "the card halved its clocks or more because of heat", slows=True),
    ClockReason(0x080, "power brake", "the power supply told the card to halve its clocks or more", slows=True),
    ClockReason(0x100, "display", "the clock that the display needs", slows=False),
    ClockReason(0x200, "board limit", "the board's limit is reached", slows=True),
    ClockReason(0x400, "reliability", "held for the voltage's reliability", slows=True),
)
REASONS: Mapping[int, ClockReason] = {reason.bit: reason for reason in _REASONS}


def clock_reasons(mask: int) -> tuple[ClockReason, ...]:
    """The reasons of a mask, lowest bit first; a bit that is in no list is kept under its number.

    >>> [reason.name for reason in clock_reasons(0x44)]
    ['power limit', 'too hot (card)']
    >>> clock_reasons(0x1000)[0].words
    'a reason that is newer than this list (bit 0x1000)'
    """
    bits = [1 << k for k in range(mask.bit_length()) if mask >> k & 1]
    return tuple(REASONS.get(bit) or _not_listed(bit) for bit in bits)


def _not_listed(bit: int) -> ClockReason:
    return ClockReason(bit, f"bit {bit:#x}", f"a reason that is newer than this list (bit {bit:#x})", slows=True)
