"""Lesson 19's figures: the levers, both trainings side by side, their ledgers, prices, attempts, and our solution."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import marimo as mo

from gpututor.exercises import ex19, leaderboard
from gpututor.experiments.capstone import ASKED, MYSTERY, YOURS
from gpututor.jobs.levers import BATCHES, MOST, RATES, RULES, Bits, Choices, Launch, Layers, Lengths, Reading, Schedule
from gpututor.jobs.rules import Way
from gpututor.ledger import rows
from gpututor.lookup import machine_named
from gpututor.page.endings import is_instructor
from gpututor.page.figures import figure, source_line
from gpututor.page.kept import Kept
from gpututor.page.lessons.raising import (
    LESSON,
    Raising,
    Training,
    attempts,
    our_training,
    ours_on,
    training,
)
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.parts import escape, html, markup
from gpututor.page.sweep import MACHINES
from gpututor.page.waterfall import waterfall
from gpututor.replay import play_file
from gpututor.store import Store
from gpututor.text import dollars, duration, percent
from gpututor.timeline import Label, Origin

CHEAP, CHEAP_TOO = "g4dn.xlarge", "g6.xlarge"
N_RUNS = 1000  # trainings of a search for good settings

LEVERS: dict[str, tuple[str, Sequence[Any]]] = {
    "batch": ("sentences a step", BATCHES),
    "lengths": ("those in a batch are", tuple(Lengths)),
    "layers": ("the model is called", tuple(Layers)),
    "launch": ("kernels are launched", tuple(Launch)),
    "rule": ("optimizer", RULES),
    "update": ("its update is", tuple(Way)),
    "rate": ("learning rate", RATES),
    "schedule": ("and that rate", tuple(Schedule)),
    "reading": ("the loss is read", tuple(Reading)),
    "bits": ("products in", tuple(Bits)),
    "most": ("give up after, sentences", MOST),
}
"""What a reader may choose: the name in `Choices`, what it is called, and the options."""


def shown_as(option: Any) -> str:
    """An option as a reader sees it.

    >>> shown_as(Layers.WHOLE), shown_as(2500), shown_as(0.003)
    ('whole sentences', '2,500', '0.003')
    """
    if isinstance(option, Enum):
        return str(option.value)
    return f"{option:,}" if isinstance(option, int) else f"{option:g}"


def levers_controls(store: Store) -> mo.ui.dictionary:
    """A list for each lever, as the reader left them; before the first run they stand at what the lesson asks about."""
    kept = store.get(LESSON, "levers")
    data = {**ASKED.as_data(), **(kept if isinstance(kept, dict) and store.get(LESSON, "asked") is not None else {})}
    made = {}
    for name, (label, options) in LEVERS.items():
        told = {shown_as(each): each.name if isinstance(each, Enum) else each for each in options}
        chosen = next((text for text, value in told.items() if value == data.get(name)), next(iter(told)))
        made[name] = mo.ui.dropdown(told, value=chosen, label=label)
    return mo.ui.dictionary(made, on_change=lambda value: store.put(LESSON, "levers", value))


def levers_shown(levers: mo.ui.dictionary) -> mo.Html:
    """The levers, and why these choices can't go together, where they can't."""
    cells = "".join(f"<div>{markup(levers[name])}</div>" for name in LEVERS)
    grid = "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,16rem),1fr));gap:.3rem 1.2rem"
    clash = Choices.from_data(levers.value).clash
    told = f'<p class="gt-note" role="status">{escape(clash)}</p>' if clash else ""
    return html(f'<div style="{grid};width:min(36rem,calc(100vw - 6.5rem))">{cells}</div>{told}')


def said(chosen: Choices) -> str:
    """What differs from the tutorial, in a few words."""
    usual = Choices()
    parts = []
    for name in LEVERS:
        value = getattr(chosen, name)
        if value == getattr(usual, name) or name == "most":
            continue
        text = shown_as(value)
        parts.append({"batch": f"{text} a step", "rate": f"rate {text}", "lengths": f"{text}"}.get(name, text))
    return ", ".join(parts) or "as the tutorial has it"


# --- both trainings --------------------------------------------------------------------------------------------------


def _cells(each: Training) -> tuple[str, ...]:
    usd = each.usd()
    loss = "—" if each.held_out is None else f"{each.held_out:.2f}"
    return (
        duration(each.step_ns),
        percent(each.busy_share),
        percent(each.whole_busy_share),
        f"{each.n_seen:,}",
        duration(each.run_ns),
        "—" if usd is None else dollars(N_RUNS * usd),
        loss if each.reached else f"{loss}, not there",
    )


def side_by_side(found: Raising, on: object) -> mo.Html | None:
    """The mystery job and the attempt, from the step to the bill; `on` is the control that chooses the machine."""
    if found.mystery is None:
        return None
    those = [each for each in (found.mystery, found.yours) if each is not None]
    titles = ("One step", "Busy", "Busy, all", "Sentences", "All of them", f"{N_RUNS:,} runs", "Loss, unseen")
    body: list[Row] = [(each.label, _cells(each)) for each in those]
    return figure(
        f"To a loss of {found.target:.2f} on sentences that no step sees",
        label_of(found.mystery, "both trainings"),
        on,
        table("Training", titles, body),
        note="Busy is the share of time with a kernel running: in usual steps, and with warming up and capturing. "
        "Looking at the unseen sentences is left out of the time.",
        wide=True,
    )


def label_of(each: Training, what: str) -> Label:
    """What a figure must say that shows several trainings."""
    card = each.machine.card
    return Label(Origin.SIMULATED, card.name, each.machine.name, what, n_sms=card.n_sms)


def learning(found: Raising) -> object:
    """Loss on unseen sentences over this machine's seconds; both axes' ends are the mystery job's."""
    if found.mystery is None:
        return None
    lines = {"the mystery job": found.mystery.line()}
    if found.yours is not None and found.yours.looked:
        lines["yours"] = found.yours.line()
    end_s = max(x for line in lines.values() for x, _ in line)
    begin_s = min(x for line in lines.values() for x, _ in line)
    lines["asked for"] = [(begin_s, found.target), (end_s, found.target)]
    return line_figure(
        "What it has learned, by the clock",
        label_of(found.mystery, "both trainings"),
        lines,
        x_title="seconds of training (each mark ten times the one before)",
        y_title="loss of a word, unseen",
        log_x=True,
        log_base=10,
        note="The mystery job's line was trained before, to its end; a run here trains its first sentences again.",
        wide=True,
    )


def ledgers(found: Raising) -> mo.Html | None:
    """Before and after, each from wall time down to useful arithmetic."""
    if found.mystery is None:
        return None
    those = [("Before", found.mystery), *([("After", found.yours)] if found.yours is not None else [])]
    body = [
        f'<p class="gt-note"><b>{when}</b>: {escape(each.label)}, {escape(said(each.choices))}; a step takes '
        f"{escape(duration(each.step_ns))}</p>{waterfall(rows(each.usual.ledger))}"
        for when, each in those
    ]
    return figure("Two ledgers, usual steps", label_of(found.mystery, "both trainings"), *body, wide=True)


# --- money -----------------------------------------------------------------------------------------------------------


def prices(kept: Kept) -> mo.Html | None:
    """The attempt on every machine that is let: time, sum and busy share, the cheapest first."""
    if not kept.has(YOURS):
        return None
    (told,) = (each for each in kept.data["points"] if each["key"] == YOURS)
    let = [each for each in map(machine_named, MACHINES.values()) if each.usd_per_hour is not None]
    found = [training(told, kept.tapes, each) for each in let]
    priced = sorted(((each, usd) for each in found if (usd := each.usd()) is not None), key=lambda pair: pair[1])
    if not priced:
        return None
    body: list[Row] = [
        (
            f"{each.machine.card.name}, {each.machine.name}",
            (
                dollars(each.machine.usd_per_hour or 0.0),
                duration(each.run_ns),
                percent(each.busy_share),
                dollars(N_RUNS * usd),
            ),
        )
        for each, usd in priced
    ]
    return figure(
        "Your attempt on other machines",
        source_line(Label(Origin.SIMULATED, "", "", "your attempt as it ran"), ""),
        table("Machine", ("An hour", "Your run", "Busy", f"{N_RUNS:,} runs"), body),
        note="The same work under another card and host, at each machine's price on demand. The cheapest stands first.",
        wide=True,
    )


# --- attempts and the board ------------------------------------------------------------------------------------------


def attempts_table(store: Store) -> mo.Html:
    """The attempts that are remembered and our own solution, on the machines that they ran on, the newest first."""
    ours = our_training(machine_named())
    body: list[Row] = []
    for each in reversed(attempts(store)):
        usd, loss = each["usd"], each["held_out"]
        there = "yes" if each["reached"] else "no"
        cells = (percent(each["busy"]), duration(each["run_ns"]), "—" if usd is None else dollars(N_RUNS * usd))
        text = there if loss is None else f"{there}, {loss:.2f}"
        body.append((said(Choices.from_data(each["choices"])), (*cells, text)))
    cost = ours.usd()
    sums = (duration(ours.run_ns), "—" if cost is None else dollars(N_RUNS * cost))
    body.append(("our solution", (percent(ours.busy_share), *sums, f"yes, {ours.held_out:.2f}")))
    return figure(
        "Your attempts, and ours",
        source_line(Label(Origin.SIMULATED, machine_named().card.name, machine_named().name, "each to its end")),
        table("Choices", ("Busy", "Time", f"{N_RUNS:,} runs", "There?"), body),
        note="How ours was done is not told here: beat it.",
        wide=True,
    )


def name_control(store: Store) -> mo.ui.text:
    """The name under which a learner is shown on the class's board; empty means not at all."""
    return mo.ui.text(
        value=leaderboard.name_on_board(store, ex19.RAISED),
        placeholder="not shown",
        max_length=leaderboard.LONGEST_NAME,
        label="Show my best on the class's board, as",
        on_change=lambda name: leaderboard.join(store, ex19.RAISED, name),
    )


def class_board(store: Store, name: object, in_a_class: bool, *_drawn_by: object) -> mo.Html:
    """The class's board of exercise 19.2 with the control to be on it; alone, the reader's own best."""
    if not in_a_class:
        mine = leaderboard.cheapest(store, ex19.RAISED)
        text = "Nothing of yours was checked and good enough yet."
        if mine is not None:
            text = f"Your cheapest training of exercise {ex19.RAISED.number}: {dollars(mine.usd)} on {mine.machine}."
        return html(f'<p class="gt gt-note">{escape(text)} In a workshop a board stands here.</p>')
    listed = leaderboard.board(ex19.RAISED)
    body: list[Row] = [
        (f"{k}. {each.name}", (f"${each.cheapest.usd:.6f}", each.cheapest.machine, each.cheapest.at[:10]))
        for k, each in enumerate(listed, 1)
    ]
    shown: object = table("Who", ("To the loss", "Machine", "When"), body) if body else "<p>Nobody is shown yet.</p>"
    return figure(
        f"The class's board, exercise {ex19.RAISED.number}",
        "US dollars to the loss, as our judge priced them",
        name,
        shown,
        note="Only who chooses a name is shown. The list is as it was when this page drew it.",
        wide=True,
    )


# --- our solution ----------------------------------------------------------------------------------------------------


def our_solution() -> mo.Html | None:
    """For instructors, folded: our choices, what they bring, and both ledgers, from the run that we kept."""
    if not is_instructor():
        return None
    found = ours_on(machine_named())
    assert found.yours is not None
    inside = f"<p>{escape(said(found.yours.choices))}.</p>{markup(side_by_side(found, ''))}{markup(ledgers(found))}"
    return html(f'<details class="gt gt-notes"><summary>For instructors: our solution</summary>{inside}</details>')


def priced_case(found: Raising, kept: Kept) -> dict[str, Any] | None:
    """The case of exercise 19.1: the attempt's step, or the mystery job's, here and on a cheaper machine."""
    if found.mystery is None:
        return None
    tape = kept.tapes[YOURS if found.yours is not None else MYSTERY]
    here = found.mystery.machine if found.mystery.machine.usd_per_hour is not None else machine_named()
    there = machine_named(CHEAP if here.name != CHEAP else CHEAP_TOO)
    return ex19.case_priced(play_file(tape, here).step_ns, here, there, play_file(tape, there).step_ns)
