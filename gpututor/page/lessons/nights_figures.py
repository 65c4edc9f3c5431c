"""Lesson 18's figures: the nights as bars, one of them closely, and who found what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import marimo as mo

from gpututor import readers
from gpututor.charts import WORDS
from gpututor.charts.runs import STYLE, Repeats, run_bars
from gpututor.experiments.nights import N_NIGHTS, N_QUIET, Cause, Episode
from gpututor.history.changes import moved, signed
from gpututor.ledger import Account
from gpututor.page.figures import figure, legend
from gpututor.page.kept import Kept
from gpututor.page.lessons.nights import Nights, as_ranges, numbers_in
from gpututor.page.parts import escape, html, told, trouble_line
from gpututor.page.repeats import bar_of, repeats
from gpututor.page.run import ghost
from gpututor.store import Store
from gpututor.text import NBSP, duration
from gpututor.timeline import Label

MOVED_SHARE = 0.01  # of a step: an account that moved by less is left out
MARKS = "marks"
N_FLAGS = 7  # as many as there can be lasting changes
TALL = ".gt-tall .gt-plot { height: calc(14rem + var(--flags) * 1.5rem) }"  # flags don't press the bars down
WAITING = "Mark the nights above, or press Show me: then yours and the library's stand here, beside what was planted."


def label_of(found: Nights) -> Label:
    """What figures over several nights say of where they come from."""
    return replace(found.ledgers[1].label, what="")


# --- bars ------------------------------------------------------------------------------------------------------------


def bars(found: Nights, control: object) -> mo.Html:
    """Every night as a bar, split by account, without a word on what changed."""
    plain = Repeats(tuple(map(bar_of, found.entries)), spoken=_spoken(found))
    return _bars(found, plain, f"{N_NIGHTS} nights of one job", control, "Hover or tap for a night's figures.")


def _spoken(found: Nights) -> str:
    times = [entry.step_ns or 0.0 for entry in found.entries]
    return f"step times of {N_NIGHTS} nights, from {duration(min(times))} to {duration(max(times))}"


def _bars(found: Nights, chart: Repeats, title: str, control: object, note: str) -> mo.Html:
    inside = f'<style>{STYLE}{TALL}</style>{legend(chart.accounts[::-1])}<div class="gt-tall">{run_bars(chart)}</div>'
    return figure(title, label_of(found), control, inside, note=note, wide=True)


# --- one night -------------------------------------------------------------------------------------------------------


def night_control() -> mo.ui.slider:
    """Which night is looked at."""
    return mo.ui.slider(1, N_NIGHTS, value=N_NIGHTS, show_value=True, full_width=True, label="Night")


def one_night(found: Nights, number: int) -> mo.Html:
    """A night beside the first few: its step, its accounts, and all else that was noted."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><span class="gt-only-narrow">Usual</span>{escape(usual)}</td>'
        f'<td><span class="gt-only-narrow">Night {number}</span><b>{escape(here)}</b></td></tr>'
        for name, usual, here in _noted(found, number)
    )
    table = (
        '<table class="gt-expect gt-points"><caption class="gt-hidden">One night beside the usual</caption><thead><tr>'
        f'<td></td><th scope="col">First {N_QUIET} nights</th><th scope="col">Night {number}</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    note = "Accounts that moved by a hundredth of a step or more. What else differs in a night need not be the cause."
    return figure(f"Night {number} beside the first {N_QUIET}", label_of(found), table, note=note)


def _noted(found: Nights, number: int) -> Iterator[tuple[str, str, str]]:
    """Name, usual, and this night's, line by line."""
    entry, night, first = found.entry(number), found.night(number), found.entries[:N_QUIET]
    usual_ns, here_ns = median(each.step_ns or 0.0 for each in first), entry.step_ns or 0.0
    samples = found.all[0].n_samples
    yield "A step", duration(usual_ns), f"{duration(here_ns)} ({signed(here_ns / usual_ns - 1)})"
    yield "Samples in it", f"{samples:,}", f"{night.n_samples:,}"
    usual = {a: median(each.accounts_ns.get(a, 0.0) for each in first) for a in Account}
    for each in moved(usual, entry.accounts_ns):
        if abs(each.difference_ns) >= MOVED_SHARE * usual_ns:
            yield WORDS[each.account], _time(each.before_ns), _time(each.after_ns)
    clock_hz = found.machine.card.boost_clock_hz
    yield "Clock of the SMs", _mhz(clock_hz), _mhz(clock_hz * night.clock_share)
    yield "Driver", found.all[0].driver, night.driver
    before = found.night(number - 1).commit if number > 1 else night.commit
    yield "Commit", found.all[0].commit[:9], night.commit[:9] + (", new tonight" if night.commit != before else "")


def _time(ns: float) -> str:
    return duration(ns) if ns else "none"


def _mhz(hz: float) -> str:
    return f"{hz / 1e6:,.0f}{NBSP}MHz"


# --- who found what --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Marked:
    """What a reader typed of the nights, and whether they asked to be shown all the same."""

    typed: str
    shown: bool = False

    @property
    def revealed(self) -> bool:
        """Whether what was planted may be told."""
        numbers, trouble = numbers_in(self.typed)
        return not trouble and (bool(numbers) or self.shown)


def marks_controls(store: Store, lesson: str) -> tuple[mo.ui.text, mo.ui.button]:
    """Where a reader types the nights that got slower, which is kept, and the button that shows them all the same."""
    typed = mo.ui.text(
        value=str(store.get(lesson, MARKS) or ""),
        placeholder="such as 9-14, 23",
        on_change=lambda text: store.put(lesson, MARKS, text),
        label="Nights that got slower",
    )
    return typed, mo.ui.button(value=False, on_click=lambda _: True, label="Show me")


def verdict(found: Nights, marked: Marked, kept: Kept) -> mo.Html:
    """The reader's nights and the library's, beside what was planted; one quiet line before anything was marked."""
    mine, trouble = numbers_in(marked.typed)
    if trouble:
        return html(trouble_line(trouble))
    if not marked.revealed:
        return ghost(WAITING)
    chart = repeats(found.entries, found.changes, found.entries, n_flags=N_FLAGS)
    yours = f"You marked {as_ranges(mine)}: {found.counted(mine).text}." if mine else "You marked none."
    theirs = f"The library called {as_ranges(found.called)}: {found.counted(found.called).text}."
    said = f"<p>{escape(yours)}<br>{escape(theirs)}</p>"
    note = "Between the dashed lines lies the room of the runs before. A night alone outside it may be chance."
    return told(
        _bars(found, chart, "What the library finds", said, note),
        figure("What was planted", label_of(found), _planted(found, mine), _command(kept), wide=True),
    )


def _command(kept: Kept) -> str:
    """How the same is asked from a terminal, of the history that the run left."""
    folder = kept.result.folder if kept.result is not None else None
    if folder is None or readers.known():
        return ""
    line = f'GPUTUTOR_HOME="{folder}" gpututor history regressions --all'
    return f"<details><summary>From a terminal</summary><pre><code>{escape(line)}</code></pre></details>"


def _planted(found: Nights, marked: frozenset[int]) -> str:
    lines = "".join(_episode(found, each, marked) for each in found.episodes) + _chances(found, marked)
    heads = ("Nights", "A step", "A sample", "You", "The library")
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return (
        '<table class="gt-expect gt-points"><caption class="gt-hidden">What was planted, and who marked it</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _episode(found: Nights, one: Episode, marked: frozenset[int]) -> str:
    share = found.longer_share(one.last)
    which = "" if found.is_slower(one) else "<small>no slower on this card</small>"
    return row_of(
        f"{escape(one.cause.value.capitalize())}{which}",
        (
            ("Nights", f"{one.first} to {one.last}"),
            ("A step", signed(found.step_share(one))),
            ("A sample", signed(share)),
            ("You", _how_many(one.numbers, marked)),
            ("The library", _how_many(one.numbers, found.called)),
        ),
    )


def _chances(found: Nights, marked: frozenset[int]) -> str:
    odd = [night.number for night in found.all if night.cause is Cause.CHANCE]
    cells = (
        ("Nights", " and ".join(map(str, odd))),
        ("A step", "one night each"),
        ("A sample", "as before"),
        ("You", _how_many(odd, marked)),
        ("The library", _how_many(odd, found.called)),
    )
    return row_of(f"{escape(Cause.CHANCE.value.capitalize())}<small>no change that lasts</small>", cells)


def row_of(head: str, cells: Sequence[tuple[str, str]]) -> str:
    """A table's line: its head as HTML, and cells with their titles, which a phone shows."""
    told = "".join(f'<td><span class="gt-only-narrow">{name}</span>{escape(text)}</td>' for name, text in cells)
    return f'<tr><th scope="row">{head}</th>{told}</tr>'


def _how_many(numbers: Sequence[int], called: frozenset[int]) -> str:
    n = len(called & frozenset(numbers))
    return f"{n} of {len(numbers)}" if n else "none"
