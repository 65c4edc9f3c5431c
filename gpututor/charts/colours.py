"""One account, one colour, in every figure and both themes; the only place where colours are written down.

Six accounts have a plain colour. The smallest distance between any two of them (OKLab, times 100) is 11.8 for
normal, protan, deutan and tritan eyes alike, found by a random search with the colour-vision matrices of
Machado, Oliveira and Fernandes 2009 at full severity. More plain colours than six can't be kept that far apart, so
communication, pauses and unknown time carry a pattern of horizontal bands instead, which survives any zoom.
Blue means that a kernel runs; its paler shades are kernels that waste part of what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from gpututor.ledger import Account

BUSY_COLOUR = "#2f62c1"
YOURS_COLOUR = "#ed9525"  # what the reader does: their point, their line
HOST_COLOUR = "#8b95a1"
FAILED_COLOUR = "#b03d2e"
RIGHT_COLOUR = "#2d9c93"
LINE_COLOUR = "#808890"  # rules that must be seen on white and on black
LINE_COLOURS = (BUSY_COLOUR, "#2d9c93", "#803d7c", LINE_COLOUR)  # the lines of a curve, in their order

COLOUR: Mapping[Account, str] = {
    Account.LAUNCH_OVERHEAD: "#ed9525",
    Account.WAITING_FOR_INPUT: "#b98af0",
    Account.BLOCKING_SYNC: "#b03d2e",
    Account.EXPOSED_COPY: "#2d9c93",
    Account.START_UP: "#803d7c",
    Account.EXPOSED_COMMUNICATION: "#8a6237",
    Account.PAUSE: "#6f7a87",
    Account.UNKNOWN_IDLE: "#a9adb3",
    Account.TOO_FEW_BLOCKS: "#9db9e8",
    Account.LAST_WAVE_TAIL: "#b7cbef",
    Account.MEMORY_BOUND: "#6a92d8",
    Account.LATENCY_BOUND: "#86a6e0",
    Account.SLOWER_FORMAT: "#557fce",
    Account.RECOMPUTE_AND_PADDING: "#7489c9",
    Account.BUSY_UNSPLIT: BUSY_COLOUR,
    Account.USEFUL: BUSY_COLOUR,
}

_OTHER_WORDS = {
    Account.UNKNOWN_IDLE: "Idle, cause unknown",
    Account.BUSY_UNSPLIT: "Kernels running",
    Account.USEFUL: "Useful work",
}
WORDS: Mapping[Account, str] = {account: _OTHER_WORDS.get(account, account.value.capitalize()) for account in Account}
"""The account's name as it stands in a legend or at the begin of a row."""


class Pattern(Enum):
    """How a bar is filled, as bands from bottom to top: where each ends, and whether it is the pale tint."""

    SOLID = ((1.0, False),)
    STRIPES = ((0.2, False), (0.4, True), (0.6, False), (0.8, True), (1.0, False))
    HOLLOW = ((0.25, False), (0.75, True), (1.0, False))
    HALF = ((0.5, False), (1.0, True))


PATTERN: Mapping[Account, Pattern] = {
    Account.EXPOSED_COMMUNICATION: Pattern.STRIPES,
    Account.PAUSE: Pattern.HOLLOW,
    Account.UNKNOWN_IDLE: Pattern.HALF,
}


def pattern(account: Account) -> Pattern:
    """The fill of an account's bars."""
    return PATTERN.get(account, Pattern.SOLID)


def pale(colour: str) -> str:
    """The tint used inside patterns: 60 % of the way from `colour` ("#rrggbb") to white.

    >>> pale("#000000"), pale("#ffffff")
    ('#999999', '#ffffff')
    """
    channels = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(c + 0.6 * (255 - c)):02x}" for c in channels)


def bands(account: Account) -> list[tuple[float, float, str]]:
    """From bottom to top: begin and end (0 to 1) of each band of an account's fill, and its colour."""
    out, begin = [], 0.0
    for end, is_pale in pattern(account).value:
        out.append((begin, end, pale(COLOUR[account]) if is_pale else COLOUR[account]))
        begin = end
    return out


def css_fill(account: Account) -> str:
    """The value of a CSS `background` for an account: a colour, or hard-edged bands.

    >>> css_fill(Account.LAUNCH_OVERHEAD)
    '#ed9525'
    """
    if pattern(account) is Pattern.SOLID:
        return COLOUR[account]
    stops = ",".join(f"{colour} {100 * begin:.0f}% {100 * end:.0f}%" for begin, end, colour in bands(account))
    return f"linear-gradient(0deg,{stops})"
