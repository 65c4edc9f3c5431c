"""Lesson 18's figures: the nights as bars, one of them closely, who found what, energy, learning, public threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import marimo as mo

from gpututor.charts import WORDS, running_mean
from gpututor.charts.runs import STYLE, Repeats, run_bars
from gpututor.experiments.nights import N_NIGHTS, N_QUIET, Cause, Episode
from gpututor.history.changes import FLOOR_SHARE, SIGMA, moved, signed
from gpututor.ledger import Account
from gpututor.page.figures import figure, legend
from gpututor.page.kept import Kept
from gpututor.page.lessons.nights import Nights, as_ranges, numbers_in
from gpututor.page.line_figure import line_figure
from gpututor.page.parts import escape, html, trouble_line
from gpututor.page.repeats import bar_of, repeats
from gpututor.page.run import ghost
from gpututor.page.threads import threads_table
from gpututor.references import reference
from gpututor.results import StoredResult
from gpututor.store import Store
from gpututor.text import NBSP, dollars, duration, percent
from gpututor.timeline import Label

J_A_KWH = 3.6e6
MOVED_SHARE = 0.01  # of a step: an account that moved by less is left out
SMOOTH = 3  # steps
MARKS = "marks"
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
    inside = f"<style>{STYLE}</style>{legend(chart.accounts[::-1])}{run_bars(chart)}"
    return figure(title, label_of(found), control, inside, note=note, wide=True)


# --- one night -------------------------------------------------------------------------------------------------------


def one_night(found: Nights, number: int) -> mo.Html:
    """A night beside the first few: its step, its accounts, and all else that was noted."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><span class="gt-only-narrow">Usual</span>{escape(usual)}</td>'
        f'<td><span class="gt-only-narrow">Night {number}</span><b>{escape(here)}</b></td></tr>'
        for name, usual, here in _noted(found, number)
    )
    table = (
        '<table class="gt-expect"><caption class="gt-hidden">One night beside the usual</caption><thead><tr><td></td>'
        f'<th scope="col">First {N_QUIET} nights</th><th scope="col">Night {number}</th></tr></thead>'
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


def marks_controls(store: Store, lesson: str) -> tuple[mo.ui.text, mo.ui.run_button]:
    """Where a reader types the nights that got slower, which is kept, and the button that shows them all the same."""
    typed = mo.ui.text(
        value=str(store.get(lesson, MARKS) or ""),
        placeholder="such as 9-14, 23",
        on_change=lambda text: store.put(lesson, MARKS, text),
        label="Nights that got slower",
    )
    return typed, mo.ui.run_button(label="Show me")


def verdict(found: Nights, typed: str, *, shown: bool) -> mo.Html:
    """The reader's nights and the library's, beside what was planted; one quiet line before anything was marked."""
    marked, trouble = numbers_in(typed)
    if trouble:
        return html(trouble_line(trouble))
    if not marked and not shown:
        return ghost(WAITING)
    chart = repeats(found.entries, found.changes, found.entries, n_flags=4)
    yours = f"You marked {as_ranges(marked)}: {found.counted(marked).text}." if marked else "You marked none."
    theirs = f"The library called {as_ranges(found.called)}: {found.counted(found.called).text}."
    said = f"<p>{escape(yours)}<br>{escape(theirs)}</p>"
    note = "Between the dashed lines lies the room of the runs before. A night alone outside it may be chance."
    return html(
        _bars(found, chart, "What the library finds", said, note),
        figure("What was planted", label_of(found), _planted(found, marked), wide=True),
    )


def _planted(found: Nights, marked: frozenset[int]) -> str:
    lines = "".join(_episode(found, each, marked) for each in found.episodes) + _chances(found, marked)
    heads = ("Nights", "A step", "A sample", "You", "The library")
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return (
        '<table class="gt-expect"><caption class="gt-hidden">What was planted, and who marked it</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )


def _episode(found: Nights, one: Episode, marked: frozenset[int]) -> str:
    share = found.longer_share(one.last)
    which = "" if found.is_slower(one) else "<small>no slower on this card</small>"
    return _row(
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
    return _row(f"{escape(Cause.CHANCE.value.capitalize())}<small>no change that lasts</small>", cells)


def _row(head: str, cells: Sequence[tuple[str, str]]) -> str:
    told = "".join(f'<td><span class="gt-only-narrow">{name}</span>{escape(text)}</td>' for name, text in cells)
    return f'<tr><th scope="row">{head}</th>{told}</tr>'


def _how_many(numbers: Sequence[int], called: frozenset[int]) -> str:
    n = len(called & frozenset(numbers))
    return f"{n} of {len(numbers)}" if n else "none"


# --- energy and money ------------------------------------------------------------------------------------------------


def energy(found: Nights, usd_a_kwh: float, control: object) -> mo.Html:
    """What nights take: time, rent, energy at most, and its price."""
    machine = found.machine
    slow = [one for one in found.episodes if found.is_slower(one)]
    rows = [("A usual night", found.night_ns())]
    rows += [(f"Night {one.last}: {one.cause.value}", found.night_ns(one.last)) for one in slow]
    rows.append(("All slower nights, beyond usual ones", found.lost_ns))
    lines = "".join(_spent(found, name, ns, usd_a_kwh) for name, ns in rows)
    head = "".join(f'<th scope="col">{word}</th>' for word in ("Takes", "Rent", "Energy, at most", "Its price"))
    table = (
        '<table class="gt-expect"><caption class="gt-hidden">Rent and energy of nights</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody></table>"
    )
    note = (
        f"Power isn't simulated, so this is the card's own limit, {machine.card.tdp_w:.0f}{NBSP}W, times the time: the "
        "most that it can draw. Host and cooling come on top."
    )
    return figure("Rent and energy", label_of(found), control, table, note=note, wide=True)


def kwh_at_most(found: Nights, ns: float) -> float:
    """The card's power limit for so long, in kilowatt-hours."""
    return found.machine.card.tdp_w * ns / 1e9 / J_A_KWH


def _spent(found: Nights, name: str, ns: float, usd_a_kwh: float) -> str:
    usd, kwh = found.machine.usd_per_hour, kwh_at_most(found, ns)
    rent = "no price" if usd is None else dollars(usd * ns / 3.6e12)
    cells = (
        ("Takes", duration(ns)),
        ("Rent", rent),
        ("Energy, at most", f"{kwh:.2f}{NBSP}kWh"),
        ("Its price", dollars(kwh * usd_a_kwh)),
    )
    return _row(escape(name), cells)


def energy_said(found: Nights, usd_a_kwh: float) -> str:
    """Rent beside the price of energy."""
    usd = found.machine.usd_per_hour
    price = usd_a_kwh * found.machine.card.tdp_w / 1000
    if usd is None:
        return f"An hour at full power costs at most {dollars(price)}; nobody quotes a rent for this machine."
    return f"An hour's rent is {dollars(usd)}, an hour's energy at most {dollars(price)}: slowness costs rent first."


# --- learning, threads, the reader's own machine ---------------------------------------------------------------------


def learning(found: Nights, kept: Kept) -> object:
    """The loss of the usual job and of the one with twice the batch, by time on this machine."""
    told = {point["key"]: point for point in kept.data["points"]}
    lines: dict[str, list[tuple[float, float | None]]] = {}
    for form in ("usual", "larger"):
        losses = [loss for loss in told[form]["losses"] if loss is not None]
        numbers = [n.number for n in found.all if n.form == form and n.cause in (None, Cause.BATCH)]
        step_s = (found.entry(numbers[0]).step_ns or 0.0) / 1e9
        lines[told[form]["label"]] = [(k * step_s, loss) for k, loss in running_mean(losses, SMOOTH)]
    ends = {form: told[form]["held_out"] for form in ("usual", "larger")}
    note = (
        f"After the same {len(told['usual']['losses']) * told['usual']['n_samples']:,} pictures, on unseen ones: "
        f"{ends['usual']:.2f} as usual, {ends['larger']:.2f} with twice the batch."
    )
    source = replace(label_of(found), what="the job that the nights repeat")
    return line_figure("Is a shorter night a better one?", source, lines, x_title="seconds", y_title="loss", note=note)


def threads(found: Nights) -> mo.Html:
    """Public threads beside what was planted here."""
    by_cause = {one.cause: 1 + found.longer_share(one.last) for one in found.episodes}
    ours = {
        "hot card, GTX 1080": by_cause[Cause.HEAT],
        "an update, RTX 3090": by_cause[Cause.DRIVER],
        "a version, Lightning": by_cause[Cause.DRIVER],
        "histograms, char-rnn": by_cause[Cause.READS],
    }
    table = threads_table([(reference(name), ratio) for name, ratio in ours.items()])
    return figure("What others ran into", "times as long · their jobs, and the nights above", table, wide=True)


def own(result: StoredResult | None) -> mo.Html | None:
    """How much repeats of one job differ on the reader's machine, so what could be seen there; and their energy."""
    data: Any = result.data if result is not None else {}
    steps = [p["step_ns"] for p in data.get("points", ()) if p["key"].startswith("usual") and p["step_ns"]]
    if len(steps) < 3:
        return None
    middle = median(steps)
    room = max(FLOOR_SHARE, 3 * SIGMA * median(abs(ns - middle) for ns in steps) / middle)
    farthest = max(abs(ns / middle - 1) for ns in steps)
    said = (
        f"{len(steps)} repeats of the usual job differ by up to {percent(farthest)} from their middle. After them, a "
        f"run would be called slower from {percent(room)} on."
    )
    energy_told = data.get("energy")
    if energy_told is None:
        drew = f"Energy is not known: {data.get('why_no_energy') or 'no reason was given'}."
    else:
        kwh = energy_told["energy_j"] / J_A_KWH
        drew = f"The card drew {kwh:.4f}{NBSP}kWh in {energy_told['seconds']:.0f}{NBSP}s ({energy_told['how']})."
    return html(f'<p class="gt">{escape(said)} {escape(drew)}</p>')
