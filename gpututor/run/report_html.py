"""The report of a run as one HTML file: no scripts, no requests, light and dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpututor.charts import strip_svg
from gpututor.ledger import rows, waits
from gpututor.page import findings, gauges, legend_of, money, source_line, waterfall
from gpututor.page.alone import alone, without_links
from gpututor.page.parts import escape
from gpututor.run.outcome import Outcome
from gpututor.run.words import bytes_in_words, how_far_to_trust, how_many_steps, what_nvidia_smi_shows
from gpututor.text import dollars, duration


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole file; several outcomes (predicted and measured) stand one after the other."""
    body = "".join(part for outcome in outcomes for part in parts(outcome))
    return alone(f"{outcomes[0].request.name}: where the GPU's time goes", body)


def parts(outcome: Outcome) -> Iterator[str]:
    """The blocks of one outcome from top to bottom, as HTML text."""
    yield _head(outcome)
    if outcome.ledger is None or outcome.timeline is None:
        yield f'<p class="gt gt-trouble">No ledger: {escape(outcome.why_none or "")}.</p>'
        return
    yield gauges(outcome.ledger).text
    yield _section("Where the time goes", waterfall(rows(outcome.ledger)))
    yield _strip(outcome)
    yield _section("What to change", without_links(findings(outcome.findings).text))
    yield _money(outcome)
    notes = "".join(f"<li>{escape(note[0].upper() + note[1:])}.</li>" for note in outcome.notes)
    yield _section("How to read this", f'<ul class="gt-notes-list">{notes}</ul>')


def _section(title: str, inside: str) -> str:
    return f'<section class="gt"><h2>{escape(title)}</h2>{inside}</section>'


def _head(outcome: Outcome) -> str:
    request, ended, machine = outcome.request, outcome.ended, outcome.machine
    where = f"a simulated {machine.card.name}" if machine else "the GPU of this machine"
    command = " ".join([*(["-m"] if request.is_module else []), request.target, *request.arguments])
    facts = [("Command", f"<code>{escape(command)}</code>")]
    if machine:
        facts.append(("Machine", escape(f"{machine.name} · {machine.host.cpu}")))
        of = bytes_in_words(machine.card.memory_bytes)
        facts.append(("Card memory", f"{bytes_in_words(outcome.memory_peak_bytes)} at the peak, of {of}"))
    if trust := how_far_to_trust(outcome):
        facts.append(("How far to trust it", escape(trust)))
    if smi := what_nvidia_smi_shows(outcome):
        facts.append(("nvidia-smi", escape(smi.removeprefix("nvidia-smi "))))
    here = f"{ended.seconds:.1f} s, {bytes_in_words(ended.host_memory_peak_bytes)} of memory"
    facts.append(("Run here", escape(here + (f"; stopped {ended.stopped}" if ended.stopped else f"; {ended.how}"))))
    listed = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return (
        f'<header class="gt gt-head"><h1>{escape(request.name)} on {escape(where)}</h1>'
        f'<p class="gt-lead">{escape(how_many_steps(outcome))}</p><dl class="gt-facts">{listed}</dl></header>'
    )


def _strip(outcome: Outcome) -> str:
    """One step in the middle of the run as a picture; the whole window where there are no steps."""
    timeline = outcome.timeline
    assert timeline is not None
    shown = timeline.step(len(timeline.steps) // 2) if timeline.steps else timeline
    idle = waits(shown, outcome.device)
    what = "One step" if timeline.steps else "The whole run"
    line = source_line(shown.label, duration(shown.duration_ns))
    return _section(what, f'<p class="gt-note">{line}</p>{legend_of(idle)}{strip_svg(shown, idle, height_px=72)}')


def _money(outcome: Outcome) -> str:
    machine, ledger = outcome.machine, outcome.ledger
    assert ledger is not None
    usd, per = outcome.usd_per_1000_steps, "A thousand steps."
    if usd is None:
        usd, per = outcome.usd_per_hour, "One hour."
    price = ""
    if machine is not None and machine.usd_per_hour is not None:
        price = f"On {machine.name} at {dollars(machine.usd_per_hour)} an hour ({machine.price_basis})."
    return money(ledger, usd, per, price).text
