"""The report of a run as text for a terminal, 80 columns or more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpututor.causes import Finding
from gpututor.ledger import Ledger, Row, rows
from gpututor.model import tape_file
from gpututor.run.outcome import Outcome, verdicts
from gpututor.run.words import bytes_in_words, how_far_to_trust, how_many_steps, what_nvidia_smi_shows
from gpututor.text import dollars, duration, percent
from gpututor.trace import writing

WIDTH_WITHOUT_TERMINAL = 120
WIDE = 110  # columns from which there is room for what each account means
GAUGE_WORDS = {"wall": "Wall time", "busy": "Busy", "sm_fill": "SM fill", "mfu": "MFU"}


def console() -> Console:
    """Where reports are printed: the terminal, or plain text of a fixed width."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def save(outcome: Outcome, path: Path) -> Iterator[str]:
    """Write timeline and tape; a sentence for each file.

    Raises:
        OSError: the disk is full or read-only.
    """
    if outcome.timeline is None:
        yield f"Nothing was saved: {outcome.why_none}."
        return
    writing.save(outcome.timeline, path)
    yield f"The timeline is in {path}."
    if outcome.tape is not None:
        beside = path.with_name(f"{path.name.partition('.')[0]}.tape.gz")
        tape_file.save(outcome.tape, beside)
        yield f"The tape, which can be priced on other machines, is in {beside}."


def show(outcome: Outcome, console: Console) -> None:
    """Print the report."""
    console.print(Group(*parts(outcome, console.width)))


def parts(outcome: Outcome, width: int) -> Iterator[RenderableType]:
    """The report's blocks from top to bottom."""
    yield Text("")
    yield head(outcome)
    if outcome.ledger is None:
        yield Text(f"No ledger: {outcome.why_none}.")
        return
    yield Text("")
    yield waterfall(outcome.ledger, width)
    yield Text("")
    yield from (finding(found) for found in outcome.findings)
    yield money(outcome)
    yield Text("")
    yield from (Padding(Text(f"{note[0].upper()}{note[1:]}.", style="dim"), (0, 0, 0, 0)) for note in outcome.notes)


def head(outcome: Outcome) -> Text:
    """What ran, where, how far, and how it ended."""
    ended, machine = outcome.ended, outcome.machine
    word = "Measured" if outcome.request.here else "Simulated"
    where = f"{machine.card.name} · {machine.name}" if machine else "this machine's GPU"
    lines = [(f"{word} · {where} · {outcome.request.name}", "bold")]
    if outcome.ledger is not None:
        lines.append((f"\n{how_many_steps(outcome)}", ""))
        if outcome.memory_peak_bytes is not None and machine is not None:
            peak, of = bytes_in_words(outcome.memory_peak_bytes), bytes_in_words(machine.card.memory_bytes)
            lines.append((f" · memory peak {peak} of {of}", ""))
        if trust := how_far_to_trust(outcome):
            lines.append((f"\n{trust}", ""))
        if smi := what_nvidia_smi_shows(outcome):
            lines.append((f"\n{smi}", ""))
    held = bytes_in_words(ended.host_memory_peak_bytes)
    lines.append((f"\nhere: {ended.seconds:.1f} s, {held} of memory", "dim"))
    if ended.stopped:
        lines.append((f", stopped {ended.stopped}", "dim"))
    elif ended.status:
        lines.append((f"; the script ended with {ended.how}", ""))
    return Text.assemble(*lines)


def waterfall(ledger: Ledger, width: int) -> Table:
    """From wall time down to useful work: name, bar, share, time a step."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    if width >= WIDE:
        table.add_column()
    wide = 24 if width < WIDE else 30
    for row in rows(ledger):
        gauge = row.kind == "gauge"
        name = GAUGE_WORDS.get(row.name, row.label) if gauge else f"  − {row.label}"
        share = "—" if row.share is None else percent(row.share)
        long = duration(row.ns / (ledger.n_steps or 1)) if row.share is not None else ""
        cells: list[RenderableType] = [name, bar(row, wide), share, long]
        if width >= WIDE:
            cells.append(_meaning(row))
        table.add_row(*cells, style="bold" if gauge else "")
    return table


def bar(row: Row, wide: int) -> str:
    """The row's place on the scale of the whole window, at least an eighth of a cell where there is anything."""
    if row.share is None:
        return ""
    lo, hi = sorted((row.start_share, row.end_share))
    before, upto = round(lo * wide), round(hi * wide)
    mark = "█" if row.kind == "gauge" else "▒"
    return " " * min(before, wide - 1) + mark * max(upto - before, 1 if row.share else 0)


def _meaning(row: Row) -> Text:
    from gpututor.ledger import MEANING

    return Text(row.reason or (MEANING[row.account] if row.account else ""), style="dim")


def finding(found: Finding) -> RenderableType:
    """Cause and share, then what proves it and what to try."""
    share = "" if found.share is None else f"  {percent(found.share)} of the time"
    lines = [Text.assemble((found.cause.value, "bold"), share)]
    if found.evidence:
        lines.append(Text("; ".join(e.text for e in found.evidence)))
    if found.change:
        lines.append(Text(f"Try: {found.change.replace('`', '')}"))
    if found.gain:
        lines.append(Text(f"Expect: {found.gain.text}"))
    return Padding(Group(lines[0], *(Padding(line, (0, 0, 0, 2)) for line in lines[1:])), (0, 0, 1, 0))


def money(outcome: Outcome) -> Text:
    """Price of the machine, of 1,000 steps, and what of it buys waiting."""
    ledger, machine = outcome.ledger, outcome.machine
    if machine is None or machine.usd_per_hour is None or ledger is None:
        where = machine.name if machine else "this machine"
        return Text(f"There is no price for {where}.")
    idle = percent(ledger.idle_ns / ledger.window_ns)
    text = f"{dollars(machine.usd_per_hour)} an hour ({machine.price_basis}); {idle} of it buys waiting."
    if outcome.usd_per_1000_steps is not None:
        text = f"1,000 steps cost {dollars(outcome.usd_per_1000_steps)} at {text}"
    return Text(text)


def show_comparison(predicted: Outcome, measured: Outcome, console: Console) -> None:
    """Both ledgers side by side, account by account."""
    if predicted.ledger is None or measured.ledger is None:
        console.print("One of the two runs has no ledger, so they can't be compared.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("", "predicted", "measured"):
        table.add_column(title, justify="left" if not title else "right", no_wrap=True)
    one, other = predicted.ledger, measured.ledger
    table.add_row("a step", duration(one.step_ns), duration(other.step_ns))
    pairs = zip(rows(one, empty=True), rows(other, empty=True), strict=True)
    for a, b in pairs:
        if a.ns or b.ns:
            name = GAUGE_WORDS.get(a.name, a.label) if a.kind == "gauge" else f"  − {a.label}"
            table.add_row(name, percent(a.share), percent(b.share))
    console.print("\nPredicted and measured", style="bold")
    console.print(table)
    found = verdicts(predicted, measured)
    if found is not None:
        console.print(f"\n{found.text}", markup=False)
