"""Lesson 15's figures: an epoch by its parts, the law over steps between pauses, switches, growth, losses, threads."""

from __future__ import annotations

import marimo as mo

from gpututor.charts import css_fill
from gpututor.experiments.pauses import COLLECTED, EVERY, N_PICTURES, N_VALIDATED, resnet_key, small_key
from gpututor.ledger import Account
from gpututor.page.figures import figure
from gpututor.page.lessons.epochs import PARTS
from gpututor.page.lessons.pauses import ENOUGH, FOUND, OFTEN, READING, SWITCHES, TIDY, Pauses
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.line_figure import line_figure
from gpututor.page.money import spent
from gpututor.page.threads import threads_table
from gpututor.references import Reference, reference
from gpututor.text import NBSP, dollars, duration, percent

N_EPOCHS = 10_000  # of a month of such trainings
GIB = 2**30


def question_picture(n_epochs: int = 3, n_steps: int = 7) -> str:
    """The question as a picture: steps of an epoch, and between two epochs a gap of unknown length."""
    step = f'<i style="flex:1;height:1.6rem;border-radius:3px;background:{css_fill(Account.USEFUL)}"></i>'
    gap = (
        '<b style="flex:3;border-radius:4px;border:1px solid var(--gt-line);display:grid;place-items:center;'
        'background:repeating-linear-gradient(-45deg, var(--gt-track) 0 7px, transparent 7px 14px)">?</b>'
    )
    return (
        '<div role="img" aria-label="Steps of training, and after every few of them a gap of unknown length" '
        f'style="margin-top:1rem;display:flex;gap:.2rem">{(step * n_steps + gap) * n_epochs}</div>'
    )


def parts(found: Pauses, on: object) -> mo.Html:
    """An epoch by its parts, as it was found and tidied up; `on` is the control that chooses the machine."""
    ways = {
        "training, step by step": ("the same", found.found.steps_ns, found.tidy.steps_ns),
        READING: ("once, at the end", found.found.reading_ns, found.tidy.reading_ns),
    }
    tidied = ("large batches, no graphs, read once", "a snapshot, written by a thread", "counted on the card")
    for part, how in zip(PARTS, tidied, strict=True):
        ways[part] = (how, found.found.parts_ns[part], found.tidy.parts_ns[part])
    rows: list[Row] = [(name, (_ns(before), _ns(after), how)) for name, (how, before, after) in ways.items()]
    rows.append(("the whole epoch", (_ns(found.found.total_ns), _ns(found.tidy.total_ns), "")))
    return figure(
        f"An epoch of {EVERY} steps",
        found.label("a small network, its pauses, files and histograms"),
        on,
        table("What", ("As found", "Tidied up", "How"), rows),
        note=f"Files and histograms are this computer's real time, whatever the card. {found.written_said}",
        wide=True,
    )


def _ns(ns: float) -> str:
    return duration(ns) if ns >= 500 else f"0{NBSP}ns"


def shares(found: Pauses) -> object:
    """The share of the time that trains, over the steps between two pauses."""
    often = ""
    if found.has(OFTEN):
        often = (
            f"Found with a pause every {EVERY // 4} steps, it trained for {percent(found.epoch(OFTEN).trained_share)}. "
        )
    return line_figure(
        "How much of the time trains",
        found.label("the law; circles were run"),
        found.share_lines(),
        x_title="steps between two pauses",
        y_title="time in steps",
        kind="share",
        log_x=True,
        dots=found.share_dots(),
        note=f"{often}As found, {found.steps_for(found.found):,.0f} steps must lie between two pauses for "
        f"{percent(ENOUGH)} of training; tidied up, {found.steps_for(found.tidy):,.0f} do. A faster card has shorter "
        "steps; files and histograms take as long.",
        wide=True,
    )


def switches(found: Pauses) -> mo.Html:
    """Each switch's step as times the plain one, for the small network and for ResNet-50."""
    rows: list[Row] = []
    for switch in found.left_on:
        small, large = found.times(switch)
        rows.append((SWITCHES[switch], (_times(small), _times(large))))
    if found.dilated_times is not None:
        rows.append(("deterministic, dilated convolutions", ("—", _times(found.dilated_times))))
    small_ns = duration(found.steps[small_key("off")].step_ns)
    large_ns = duration(found.steps[resnet_key("off")].step_ns) if found.has(resnet_key("off")) else "not run"
    return figure(
        "Left on by mistake: a step, times as long",
        found.label("a network of small layers; ResNet-50 by its shapes"),
        table("What was left on", ("Small network", f"ResNet-50, {N_PICTURES} pictures"), rows),
        note=f"Without any, a step takes {small_ns} and {large_ns}. The last row is a step of convolutions with gaps. "
        f"{found.switches_said}",
        wide=True,
    )


def _times(times: float | None) -> str:
    if times is None:
        return "—"
    return f"{times:.2f}" if times < 1.5 else f"{times:.1f}"


def growth(found: Pauses) -> object:
    """A step's length over the steps so far."""
    return line_figure(
        "The same loop, step after step",
        found.label("a tiny network that keeps its losses"),
        found.growth_lines(),
        x_title="steps so far",
        y_title="one step (ms)",
        note=f"Each point is the middle one of some steps. {found.growth_said} The page is "
        "really written: that line is this computer's.",
        wide=True,
    )


def kept(found: Pauses) -> mo.Html | None:
    """What collections of garbage take, and what a validation keeps; nothing where neither was run."""
    rows: list[Row] = []
    for key, words in zip(
        COLLECTED, ("nothing more alive", "many small objects alive", "the same, frozen"), strict=True
    ):
        if key in found.collections_ns:
            n = found.noted[key].get("n_looked_at", 0.0)
            rows.append(
                (f"gc.collect(), {words}", (f"{n:,.0f} objects looked at", duration(found.collections_ns[key])))
            )
    peaks = found.graphs_bytes
    if peaks is not None:
        for words, peak in zip(("with graphs, losses added up", "under no_grad()"), peaks, strict=True):
            fits = "fits" if peak < found.machine.card.memory_bytes else f"too much for a {found.machine.card.name}"
            rows.append((f"validating {N_VALIDATED} batches {words}", (f"{peak / GIB:.1f}{NBSP}GiB at most", fits)))
    if not rows:
        return None
    return figure(
        "What is kept alive",
        found.label("collections are real, this computer's; ResNet-50 by its shapes"),
        table("What", ("How much", "So"), rows),
        note="A collection looks at every object of the process that may be part of a cycle; torch alone brings most. "
        "gc.freeze() sets aside what is there. Adding up a loss that has a graph keeps the graph, and with it "
        "every activation of its batch.",
        wide=True,
    )


def learning(found: Pauses) -> object:
    """Losses over this machine's seconds, and what was found on held-out pictures."""
    held = [found.held(key) for key in (FOUND, TIDY)]
    step_ns = [float(found.steps[key].step_ns) for key in (FOUND, TIDY)]
    rows: list[Row] = [
        (f"after {k} steps", (*(duration(k * ns) for ns in step_ns), *(f"{losses[k]:.3f}" for losses in held)))
        for k in held[0]
        if k in held[1]
    ]
    return line_figure(
        "The same training, by the clock",
        found.label("a small network on drawn shapes"),
        found.learning_lines(),
        table("Held-out loss", ("As found, at", "Tidied up, at", "As found", "Tidied up"), rows),
        x_title="seconds on this machine",
        y_title="loss",
        note=f"Means of some losses. {found.same_losses_said} Validating in large batches gives the same number.",
        wide=True,
    )


def money(found: Pauses) -> mo.Html | None:
    """What many epochs cost as found, and tidied up."""
    if not found.has_epochs:
        return None
    slow_ns, fast_ns = (N_EPOCHS * epoch.total_ns for epoch in (found.found, found.tidy))
    usd = found.usd(fast_ns)
    tidied = f"tidied up they take {duration(fast_ns)}" + ("." if usd is None else f" and cost {dollars(usd)}.")
    return spent(
        found.played(FOUND), found.usd(slow_ns), f"{N_EPOCHS:,} epochs as found, {duration(slow_ns)}; {tidied}"
    )


def threads(found: Pauses) -> list[tuple[Reference, float | None]]:
    """Each public thread of the lesson with the same ratio from this run, None where it wasn't run."""
    small, large = found.times("anomaly")
    fill = found.ratio(resnet_key("deterministic"), resnet_key("unfilled"))
    emptied = found.times("emptied")[1]
    collect_ns = found.collections_ns.get(COLLECTED[0])
    off_ns = found.steps[resnet_key("off")].step_ns if found.has(resnet_key("off")) else None
    both = None
    if collect_ns is not None and off_ns is not None and emptied is not None:
        both = emptied + collect_ns / off_ns
    saved = drawn = None
    if found.has_epochs:
        saved = 1 + found.found.parts_ns["checkpoint"] / found.found.steps_ns
        drawn = 1 + found.found.parts_ns["histograms"] / found.step_ns
    return [
        (reference("anomaly mode, a large network"), large),
        (reference("anomaly mode, small work"), small),
        (reference("deterministic, filled to not"), fill),
        (reference("deterministic, dilated"), found.dilated_times),
        (reference("empty_cache each step"), emptied),
        (reference("collect and empty each step"), both),
        (reference("a checkpoint each epoch"), saved),
        (reference("histograms each step"), drawn),
    ]


def elsewhere(found: Pauses) -> mo.Html | None:
    """Public threads beside this run; nothing where too little was run."""
    if not found.has(small_key("off"), small_key("anomaly")):
        return None
    return figure("What others saw", found.label("this run"), threads_table(threads(found)), wide=True)
