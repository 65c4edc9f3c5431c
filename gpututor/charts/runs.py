"""The runs of one configuration as bars side by side, each split by account; HTML without scripts or requests.

The bars stand at even distances in the order of the runs, from zero, so that heights can be compared. Over them lies
the room that a step usually has, and a flag stands where it left that room.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from gpututor.charts.colours import WORDS, css_fill
from gpututor.ledger import Account
from gpututor.text import duration

HEADROOM = 1.06  # our choice: the tallest bar stays clear of the frame
SHOWN_SHARE = 0.01  # our choice: an account below a hundredth of the tallest bar is thinner than a line
N_NUMBERS = 8  # our choice: as many run numbers of four digits as fit below the bars on a phone
N_SLOTS = 12  # our choice: one run alone is a bar too, not a wall
LATE = 0.55  # from this share of the width on, words stand to the left of what they are about
Kind = Literal["slower", "faster", "over"]  # what a flag is of: a change that stands, or one that is over
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))

STYLE = """
.gt-plot { position: relative; margin: 0 0 1.5rem 2.9rem; height: 15rem; padding-top: calc(var(--flags) * 1.5rem);
  font-size: .85rem; font-variant-numeric: tabular-nums }
.gt-plot > div { position: relative; height: 100%; border-bottom: 1px solid var(--gt-wall) }
.gt-plot * { position: absolute; font-style: normal; text-decoration: none }
.gt-plot .gt-run { bottom: 0; top: 0 }
.gt-plot .gt-run > span { inset: auto .5px 0; display: flex; flex-direction: column-reverse; min-height: 1px;
  background: var(--gt-track) }
.gt-plot .gt-run > span i { position: static; display: block; flex: none }
.gt-plot .gt-run:hover, .gt-plot .gt-run:focus { background: var(--gt-track); outline: 0 }
.gt-plot .gt-run:focus-visible { outline: 2px solid var(--gt-link) }
.gt-plot .gt-tip { display: none; top: .3rem; z-index: 3; width: max-content; max-width: 14rem; padding: .4rem .6rem;
  background: var(--background); color: var(--foreground); border: 1px solid var(--gt-wall); border-radius: 6px;
  line-height: 1.4; pointer-events: none; white-space: pre-line; left: calc(100% + .3rem) }
.gt-plot .gt-late .gt-tip { left: auto; right: calc(100% + .3rem) }
.gt-plot .gt-run:hover .gt-tip, .gt-plot .gt-run:focus .gt-tip { display: block }
.gt-plot .gt-run:hover { z-index: 2 }
.gt-plot .gt-run b { position: absolute; top: calc(100% + .25rem); left: 50%; translate: -50%; font-weight: 400;
  color: var(--gt-soft) }
.gt-plot .gt-tick { left: 0; right: 0; border-top: 1px solid var(--gt-line) }
.gt-plot .gt-tick span { right: calc(100% + .4rem); top: -.7em; color: var(--gt-soft) }
.gt-plot .gt-room { z-index: 1; pointer-events: none; border-block: 1px dashed var(--foreground);
  background: color-mix(in srgb, var(--background) 30%, transparent) }
.gt-plot .gt-turn { top: calc(var(--row) * 1.5rem - var(--flags) * 1.5rem); bottom: 0; z-index: 1;
  border-left: 2px solid var(--gt-turn); pointer-events: none }
.gt-plot .gt-turn span { top: -.1rem; left: 0; padding: 0 .5rem; white-space: nowrap; color: #fff;
  background: var(--gt-turn); font-weight: 700; line-height: 1.3rem; border-radius: 0 3px 3px 0 }
.gt-plot .gt-turn.gt-late span { left: auto; right: 0; border-radius: 3px 0 0 3px }
.gt-plot .gt-turn em { position: static; font-weight: 400 }
.gt-slower { --gt-turn: var(--gt-bad) } .gt-faster { --gt-turn: color-mix(in srgb, var(--gt-good) 75%, black) }
.gt-over { --gt-turn: color-mix(in srgb, var(--gt-busy) 15%, dimgray) }
.gt-axis { font-size: .85rem; color: var(--gt-soft) }
@media (max-width: 640px) {
  .gt-plot { height: 13rem }
  .gt-plot .gt-turn em { display: none }
  .gt-plot .gt-run .gt-tip { position: fixed; inset: auto 1rem 1rem; width: auto; max-width: none }
}
@media print { .gt-plot * { print-color-adjust: exact } }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A run: its number, the length of a step, the accounts of a step, and the words shown over it."""

    number: int
    step_ns: float
    accounts_ns: Mapping[Account, float]
    words: str


@dataclass(frozen=True, slots=True)
class Room:
    """The room of a step over the bars from `first` up to `end`."""

    first: int
    end: int
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A flag at the left edge of bar `at`; `more` are words for which a phone has no place."""

    at: int
    words: str
    more: str = ""
    kind: Kind = "slower"


@dataclass(frozen=True, slots=True)
class Repeats:
    """The runs of one configuration, in order."""

    bars: tuple[Bar, ...]
    rooms: tuple[Room, ...] = ()
    turns: tuple[Turn, ...] = ()
    spoken: str = ""
    top_ns: float = field(init=False)

    def __post_init__(self) -> None:
        highest = max((*(bar.step_ns for bar in self.bars), *(room.high_ns for room in self.rooms)), default=0.0)
        object.__setattr__(self, "top_ns", max(highest, 1.0) * HEADROOM)

    @property
    def n_slots(self) -> int:
        """How many bars there is a place for."""
        return max(len(self.bars), N_SLOTS)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """The accounts that can be seen, from the floor upwards: useful work first."""
        least_ns = SHOWN_SHARE * self.top_ns
        return tuple(a for a in reversed(Account) if any(bar.accounts_ns.get(a, 0.0) >= least_ns for bar in self.bars))


def run_bars(runs: Repeats) -> str:
    """The chart as HTML; it needs `STYLE` and the variables of lessons/look.css."""
    size, unit = unit_of(runs.top_ns)
    lines = "".join(
        f'<u class="gt-tick" style="bottom:{100 * tick / runs.top_ns:.2f}%"><span>{tick / size:g}</span></u>'
        for tick in ticks(runs.top_ns)
    )
    rooms = "".join(_room(room, runs) for room in runs.rooms)
    turns = "".join(_turn(row, turn, runs) for row, turn in enumerate(runs.turns))
    inside = f"{lines}{''.join(_bars(runs))}{rooms}{turns}"
    return (
        f'<div class="gt-axis">a step ({unit}), by number of the run</div>'
        f'<div class="gt-plot" style="--flags:{len(runs.turns)}" role="group" aria-label="{escape(runs.spoken)}">'
        f"<div>{inside}</div></div>"
    )


def unit_of(ns: float) -> tuple[float, str]:
    """The largest unit of time that isn't longer than this: its length in nanoseconds, its name.

    >>> unit_of(9.9e6), unit_of(0.5)
    ((1000000.0, 'ms'), (1.0, 'ns'))
    """
    return next(((size, unit) for size, unit in UNITS if ns >= size), UNITS[-1])


def ticks(top: float) -> list[float]:
    """Round numbers from zero up to `top`, three to six of them.

    >>> ticks(10.6), ticks(2.4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 0.5, 1.0, 1.5, 2.0])
    """
    rough = top / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= rough * 0.93)
    return [k * step for k in range(int(top / step) + 1)]


def _bars(runs: Repeats) -> Iterator[str]:
    n, last = runs.n_slots, len(runs.bars) - 1
    every = -(-n // N_NUMBERS)
    for k, bar in enumerate(runs.bars):
        named = k % every == 0
        number = f"<b>{bar.number}</b>" if named else ""
        late = " gt-late" if k >= LATE * n else ""
        tab = 0 if k == last or any(turn.at == k for turn in runs.turns) else -1
        yield (
            f'<div class="gt-run{late}" role="img" tabindex="{tab}" aria-label="{escape(bar.words)}" '
            f'style="left:{100 * k / n:.3f}%;width:{100 / n:.3f}%">'
            f'<span style="height:{100 * bar.step_ns / runs.top_ns:.2f}%">{_pieces(bar, runs)}</span>'
            f'{number}<div class="gt-tip">{escape(_tip(bar))}</div></div>'
        )


def _pieces(bar: Bar, runs: Repeats) -> str:
    """The bar's accounts from the floor upwards; what they leave over stays pale."""
    whole_ns = max(bar.step_ns, sum(bar.accounts_ns.values()))
    return "".join(
        f'<i style="height:{100 * bar.accounts_ns[account] / whole_ns:.2f}%;background:{css_fill(account)}"></i>'
        for account in runs.accounts
        if account in bar.accounts_ns
    )


def _tip(bar: Bar) -> str:
    largest = sorted(bar.accounts_ns.items(), key=lambda pair: -pair[1])[:4]
    return "\n".join([bar.words, *(f"{WORDS[account]}: {duration(ns)}" for account, ns in largest)])


def _room(room: Room, runs: Repeats) -> str:
    n = runs.n_slots
    return (
        f'<u class="gt-room" style="left:{100 * room.first / n:.3f}%;width:{100 * (room.end - room.first) / n:.3f}%;'
        f"bottom:{100 * room.low_ns / runs.top_ns:.2f}%;"
        f'height:{100 * (room.high_ns - room.low_ns) / runs.top_ns:.2f}%"></u>'
    )


def _turn(row: int, turn: Turn, runs: Repeats) -> str:
    share = turn.at / runs.n_slots
    more = f"<em>{escape(turn.more)}</em>" if turn.more else ""
    return (
        f'<div class="gt-turn gt-{turn.kind}{" gt-late" if share >= LATE else ""}" '
        f'style="left:{100 * share:.3f}%;--row:{row}"><span>{escape(turn.words)}{more}</span></div>'
    )
