"""Lesson 17's figures: where a job runs, what a fault costs it, what Task Manager shows, what a dollar buys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import marimo as mo

from gpututor.charts import running_mean
from gpututor.doctor.faults import Fault, planted
from gpututor.doctor.words import counted
from gpututor.experiments.machine_itself import N_PHOTOS_HERE, POLICY, SENTENCES
from gpututor.lookup import machine_named
from gpututor.page.close_up import CloseUp, close_up
from gpututor.page.figures import figure
from gpututor.page.lessons.machines import (
    NAMES,
    NOTHING,
    SAMPLES,
    SEED,
    TABLE,
    Jobs,
)
from gpututor.page.lessons.offers import Offer, by_the_hour, fastest, why_said
from gpututor.page.lessons.tiny_tables import Row, table
from gpututor.page.money import spent
from gpututor.page.parts import escape, shown
from gpututor.references import reference
from gpututor.text import NBSP, dollars, duration, percent

if TYPE_CHECKING:
    from gpututor.charts.scatter import Spot

SMOOTH = 8  # steps in a mean of losses
RUNS_AHEAD = 0.85  # busier than this, a card is behind its host
GAUGES = ("gauges, busy all the time", "gauges, one block", "gauges, short kernels", "gauges, half of the time")
GRAPHS = ("Task Manager, DeepFaceLab", "Task Manager, an RTX 2070")


def times_text(ratio: float | None) -> str:
    """How many times as long, in words that a table has room for.

    >>> times_text(1.01), times_text(1.84), times_text(37.4), times_text(0.3), times_text(None)
    ('as long', '1.8\\xa0times', '37\\xa0times', '0.30\\xa0times', '—')
    """
    if ratio is None:
        return "—"
    if 1 / NOTHING < ratio < NOTHING:
        return "as long"
    digits = 2 if ratio < 1.2 else 1 if ratio < 10 else 0
    return f"{ratio:,.{digits}f}{NBSP}times"


def places(found: Jobs, on: object) -> mo.Html:
    """Each job on the chosen card and on this processor, a sample of each; `on` is the control that chooses."""
    rows: list[Row] = []
    for key in TABLE:
        ours, theirs = found.sample_ns(key), found.here_ns[key]
        rows.append((NAMES[key], (duration(ours), duration(theirs), times_text(theirs / ours))))
    processor = f"{found.here.get('cpu') or 'this processor'}, {found.here.get('n_cores')} cores"
    return figure(
        "A sample of each job: a photograph, a sentence, a state",
        f'<span class="gt-tag gt-simulated">Simulated</span> {escape(found.on.card.name)} · {escape(found.on.name)}, '
        f'beside <span class="gt-tag gt-measured">Measured</span> {escape(processor)}',
        on,
        table("The job", ("On the card", "On this processor", "It takes"), rows),
        note=f"On the processor {N_PHOTOS_HERE} photographs a step. Torch's word on a batch left behind: {found.said}",
        wide=True,
    )


def faults(found: Jobs) -> mo.Html:
    """What each fault costs three jobs on the chosen machine."""
    rows: list[Row] = [
        (fault.title, [times_text(found.fault_times(fault, key)) for key in TABLE])
        for fault in Fault
        if fault not in (Fault.NEW_CARD, Fault.GAUGE)
    ]
    heat, power = (percent(_clock(fault)) for fault in (Fault.HEAT, Fault.POWER))
    first_s = planted(Fault.NEW_CARD, SEED).facts.torch.gpus[0].kernel_s or 0
    few = counted(round(planted(Fault.FEW_CPUS, SEED).busy_cpus), "CPU")
    note = (
        f"Beside the same job on the healthy machine. Heat leaves {heat} of the clock, the power limit {power}; a "
        f"neighbour takes half of the card's time; the container is granted {few}, and without shared memory "
        f"there are no workers; a photograph takes {duration(found.decode_ns)} to decode here, and the loader follows "
        f"lesson 6's law. A card newer than torch costs {first_s:.0f}{NBSP}s at the start, and the wrong gauge nothing."
    )
    names = [NAMES[key] for key in TABLE]
    return figure(
        "What a fault costs", found.label("three jobs"), table("The fault", names, rows), note=note, wide=True
    )


def _clock(fault: Fault) -> float:
    gpu = planted(fault, SEED).gpu
    return (gpu.sm_clock_hz or 1) / (gpu.sm_clock_max_hz or 1)


def task_manager() -> mo.Html:
    """Public readings of one load by three gauges."""
    rows: list[Row] = []
    for name in GAUGES:
        one = reference(name)
        rows.append((one.what, [percent(value) for value in one.values]))
    for name in GRAPHS:
        one = reference(name)
        rows.append((one.what, ("not told", *(percent(value) for value in one.values))))
    sources = dict.fromkeys(reference(name).source for name in (*GAUGES, *GRAPHS))
    return figure(
        "One load, three gauges",
        f'<span class="gt-tag gt-recorded">Recorded</span> by others: {escape(", ".join(sources))}',
        table("What ran", ("Really", "nvidia-smi or another tool", "Task Manager"), rows),
        note="The last two are of the 3D graph, which Task Manager shows first. The others' isn't told.",
        wide=True,
    )


def offers(found: Jobs, key: str, others: mo.ui.switch) -> mo.Html:
    """The job on every machine with a price, the cheapest first, and if `others` is on, on those without one."""
    rows = [_own_row(each) for each in found.offers(key, priced=False)] if others.value else []
    without = table("Machine", ("All of it", "Busy", "Held up by"), rows) if rows else ""
    titles = ("An hour", "All of it", "It costs", "Alone", "Busy", "Held up by")
    what = SAMPLES[key][1]
    return figure(
        f"{NAMES[key]}: {what}",
        '<span class="gt-tag gt-simulated">Simulated</span> run once, priced on every machine',
        table("Machine", titles, [_row(each) for each in found.offers(key)]),
        others,
        without,
        note="One card does it. “It costs” takes the card's part of the price, as if you had work for all cards of "
        "the machine; “alone” is the price of the whole machine. On demand, AWS us-east-1; gpututor machines lists the "
        "source of each price.",
        wide=True,
    )


def _name(offer: Offer) -> str:
    n = offer.machine.n_cards
    return f"{offer.machine.name}, {offer.machine.card.name}" + (f" × {n}" if n > 1 else "")


def _row(offer: Offer) -> Row:
    hour = dollars(offer.machine.usd_per_hour)
    if offer.trouble:
        return _name(offer), (hour, offer.trouble, "—", "—", "—", "—")
    alone = dollars(offer.usd_alone) if offer.machine.n_cards > 1 else "the same"
    return _name(offer), (hour, duration(offer.whole_ns), dollars(offer.usd), alone, *_ledger(offer))


def _own_row(offer: Offer) -> Row:
    if offer.trouble:
        return _name(offer), (offer.trouble, "—", "—")
    return _name(offer), (duration(offer.whole_ns), *_ledger(offer))


def _ledger(offer: Offer) -> tuple[str, str]:
    most = offer.most
    held = "nothing much" if most.account is None else f"{most.account.value}, {percent(most.share)}"
    return percent(most.busy_share), held


def field(found: Jobs, key: str, choose: object) -> object:
    """Dollars against hours for the job, a spot for each machine with a price; whole machines are hollow.

    `choose` is the control of the job.
    """

    def drawing() -> object:
        from gpututor.charts.scatter import spots  # here, because it loads altair

        return figure(
            f"What {SAMPLES[key][1]} costs, and how long it takes",
            '<span class="gt-tag gt-simulated">Simulated</span> one card; left is faster, low is cheaper',
            choose,
            spots(things(found.rented(key)), x_title="hours", y_title="US dollars"),
            note="Orange: the cheapest for this job. Hollow: a machine of several cards of which one works. Both axes "
            "multiply.",
            wide=True,
        )

    return shown(drawing)


def things(rented: Sequence[Offer]) -> list[Spot]:
    """A spot for each offer, named by its card, and a hollow one where other cards would idle.

    Machines that have the same card at the same price share one.
    """
    from gpututor.charts.scatter import Spot

    found: dict[tuple[str, str], Spot] = {}
    names: set[str] = set()
    for each in rented:
        hours, usd, card = each.whole_ns / 3600e9, each.usd or 0.0, each.machine.card.name.partition("-")[0]
        name = card if card not in names else each.machine.name
        if (card, f"{usd:.3g}") not in found:
            found[card, f"{usd:.3g}"] = Spot(hours, usd, name, marked=each is rented[0])
            names.add(name)
        if each.machine.n_cards > 1:
            whole = f"{each.machine.n_cards} × {card}"
            found[whole, "alone"] = Spot(hours, each.usd_alone or 0.0, whole, hollow=True)
    return list(found.values())


def chosen_offers(found: Jobs, key: str) -> dict[str, Offer]:
    """The machines to look at closely: cheapest for the job, cheapest by the hour, fastest, and the course's own."""
    rented = found.rented(key)
    named = {
        "cheapest for the job": rented[0],
        "cheapest by the hour": by_the_hour(rented),
        "the fastest": fastest(rented),
        "lesson 2's": found.offer(key, machine_named()),
    }
    return {f"{words}: {each.machine.name}": each for words, each in named.items()}


def closely(offer: Offer) -> tuple[CloseUp, str]:
    """A close-up of the job on this machine, and its title.

    Where the host runs ahead a step of its own is no step of the card's, so then it is all that was kept.
    """
    played = offer.played
    ahead = played.ledger.gpu_util_share > RUNS_AHEAD
    return close_up(played, whole=ahead), f"{played.ledger.n_steps} steps, to the end" if ahead else "One step"


def cost(found: Jobs, key: str, offer: Offer) -> mo.Html:
    """What of the money on this machine buys waiting; and what the cheapest machine takes, and why."""
    cheap, what = found.rented(key)[0], SAMPLES[key][1]
    told = f"{what[:1].upper()}{what[1:]} on a card of {offer.machine.name}: {duration(offer.whole_ns)}."
    told += target_said(found, key, offer)
    if cheap.machine.name != offer.machine.name:
        told += f" On {cheap.machine.name} it takes {duration(cheap.whole_ns)} and costs {dollars(cheap.usd)}."
        told += f" {why_said(cheap)}"
    return spent(offer.played, offer.usd, told)


def target_said(found: Jobs, key: str, offer: Offer) -> str:
    """What it takes and costs on this machine to half of the first loss; nothing where it never got there."""
    losses = [one for one in found.told[key]["losses"] if one is not None]
    means = running_mean(losses, SMOOTH) if len(losses) > SMOOTH else []
    step = next((k for k, mean in means[SMOOTH:] if mean <= losses[0] / 2), None)
    if step is None or offer.trouble:
        return ""
    whole_ns = step * offer.step_ns
    usd = None if offer.machine.usd_per_card_hour is None else whole_ns / 3600e9 * offer.machine.usd_per_card_hour
    return f" To half of its first loss it takes {step:.0f} steps, {duration(whole_ns)} and {dollars(usd)}."


LINE = 'device = "cuda" if torch.cuda.is_available() else "cpu"'


def question_picture() -> str:
    """The question as a picture: the line that most scripts begin with, and nothing that says how it ended."""
    return (
        f'<div role="img" aria-label="A line of a script: {escape(LINE)}; which half it takes is the question" '
        'style="margin-top:1rem;border:1px solid var(--gt-line);border-radius:8px;padding:.7rem .9rem;display:flex;'
        f'gap:1rem;justify-content:space-between;align-items:center;flex-wrap:wrap"><code>{escape(LINE)}</code>'
        '<b style="padding:0 .8rem;border-radius:4px;border:1px solid var(--gt-line);background:'
        'repeating-linear-gradient(-45deg, var(--gt-track) 0 7px, transparent 7px 14px)">?</b></div>'
    )


def learned_said(found: Jobs) -> str:
    """That the machine doesn't change what is learned, with the losses of the jobs that learn."""
    parts = [
        f"{NAMES[key]} from {losses[0]:.2g} to {losses[-1]:.2g} in {len(losses)} steps"
        for key in (SENTENCES, POLICY)
        if found.has(key) and (losses := [one for one in found.told[key]["losses"] if one is not None])
    ]
    return f"The loss is the same wherever it runs: {', '.join(parts)}." if parts else ""
