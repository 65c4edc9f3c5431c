"""Lesson 18's other figures: what nights cost and teach, public threads, and repeats on the reader's own machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import marimo as mo

from gpututor.charts import running_mean
from gpututor.experiments.nights import Cause
from gpututor.history.changes import FLOOR_SHARE, SIGMA
from gpututor.page.figures import figure
from gpututor.page.kept import Kept
from gpututor.page.lessons.nights import Nights
from gpututor.page.lessons.nights_figures import Marked, label_of, row_of
from gpututor.page.line_figure import line_figure
from gpututor.page.parts import escape, html
from gpututor.page.threads import threads_table
from gpututor.references import reference
from gpututor.results import StoredResult
from gpututor.text import NBSP, dollars, duration, percent
from gpututor.watch.energy import J_A_KWH

SMOOTH = 3  # steps


def price_control() -> mo.ui.slider:
    """The price of a kilowatt-hour in US dollars, for the reader to set."""
    return mo.ui.slider(0.05, 0.6, step=0.01, value=0.15, show_value=True, label="Price of a kWh (US dollars)")


def energy(found: Nights, usd_a_kwh: float, control: object, marked: Marked) -> mo.Html:
    """What nights take: time, rent, energy at most, and its price; the slower ones one by one once they are told."""
    machine = found.machine
    slow = [one for one in found.episodes if found.is_slower(one) and marked.revealed]
    rows = [("A usual night", found.night_ns())]
    rows += [(f"Night {one.last}: {one.cause.value}", found.night_ns(one.last)) for one in slow]
    rows.append(("All slower nights, beyond usual ones", found.lost_ns))
    lines = "".join(_spent(found, name, ns, usd_a_kwh) for name, ns in rows)
    head = "".join(f'<th scope="col">{word}</th>' for word in ("Takes", "Rent", "Energy, at most", "Its price"))
    table = (
        '<table class="gt-expect gt-points"><caption class="gt-hidden">Rent and energy of nights</caption>'
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
    return row_of(escape(name), cells)


def energy_said(found: Nights, usd_a_kwh: float) -> str:
    """Rent beside the price of energy."""
    usd = found.machine.usd_per_hour
    price = usd_a_kwh * found.machine.card.tdp_w / 1000
    if usd is None:
        return f"An hour at full power costs at most {dollars(price)}; nobody quotes a rent for this machine."
    return f"An hour's rent is {dollars(usd)}, an hour's energy at most {dollars(price)}: slowness costs rent first."


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
        f"{ends['usual']:.2f} as usual, {ends['larger']:.2f} with twice the batch.{_less_said(ends)}"
    )
    source = replace(label_of(found), what="the job that the nights repeat")
    return line_figure(
        "Is a shorter night a better one?", source, lines, x_title="seconds of training", y_title="loss", note=note
    )


def _less_said(ends: Mapping[str, float]) -> str:
    """What follows where the larger batch learned less."""
    return " A quicker sample that teaches less is no gain yet." if ends["larger"] > ends["usual"] else ""


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
