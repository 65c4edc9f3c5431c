"""What `gpututor job` prints for a reader: label, gauges, ledger, causes, money, and what moves the busy share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.table import Table

from gpututor.causes import Finding
from gpututor.expect.accuracy import in_words
from gpututor.ledger import MEANING, Ledger, rows
from gpututor.replay import Moved, Sensitivity
from gpututor.text import NBSP, dollars, duration, percent

if TYPE_CHECKING:
    from gpututor.cli.job import Ran

WIDTH_WITHOUT_TERMINAL = 120  # a pipe or a file has no width of its own
WIDTH_FOR_MEANING = 110  # below it the words on each account would be a column of single ones
BAR_WIDTH = 24
N_FINDINGS = 3  # the largest ones; --json has them all


def print_run(ran: Ran) -> None:
    """Print everything, on as many columns as the terminal has."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)
    ledger = ran.played.ledger
    label = ledger.label
    console.print(f"[bold]Simulated[/bold] {label.card} · {label.host} · {label.what}")
    console.print(f"{_steps(ran)}, {duration(ran.played.step_ns)} each")
    console.print(f"{in_words(*ran.bands)}.")
    console.print(f"Trained on this computer's CPU with torch {ran.torch}; the clock is a model.")
    console.print(ledger_table(ledger, with_meaning=console.width >= WIDTH_FOR_MEANING))
    for found in ran.findings[:N_FINDINGS]:
        _print_finding(console, found)
    console.print(money_line(ran))
    if ran.varied is not None:
        console.print()
        console.print(varied_line(ran.varied))
        console.print(sensitivity_table(ran.varied))


def _steps(ran: Ran) -> str:
    """How many steps were done, and how many of them are accounted."""
    done = f"{ran.n_done:,} {ran.job.sample}{'' if ran.n_done == 1 else 's'}"
    if ran.n_done < ran.n_asked:
        done = f"Stopped after {ran.n_done:,} of {ran.n_asked:,} {ran.job.sample}s"
    n_accounted = ran.played.ledger.n_steps
    return done if n_accounted == ran.n_done else f"{done}, the last {n_accounted:,} accounted"


def ledger_table(ledger: Ledger, *, with_meaning: bool = True) -> Table:
    """The waterfall, from wall time down: gauges at the margin, what is lost before each one set in."""
    table = _table("", "share>", "a step>", "", *([""] if with_meaning else []))
    for row in rows(ledger):
        gauge = row.kind == "gauge"
        name = f"[bold]{row.label}[/bold]" if gauge else f"  {row.label}"
        lo, hi = sorted((row.start_share, row.end_share))
        share = "not known" if row.share is None else ("" if gauge else "−") + percent(row.share)
        time = duration(row.ns / (ledger.n_steps or 1))
        cells = [name, share, time, _bar(lo, hi, "█" if gauge else "▒")]
        if with_meaning:
            said = row.reason or (_general(row.name) if gauge else MEANING[row.account] if row.account else "")
            cells.append(f"[dim]{said}[/dim]")
        table.add_row(*cells)
    return table


def _general(gauge: str) -> str:
    return {
        "busy": "a kernel computes; nvidia-smi shows this",
        "sm_fill": "share of the SMs that had work",
        "mfu": "useful FLOP, of what the card could do",
    }.get(gauge, "")


def _bar(lo: float, hi: float, mark: str) -> str:
    """A stretch of the scale from 0 to 1; a share that is not zero stays visible."""
    begin, end = round(lo * BAR_WIDTH), round(hi * BAR_WIDTH)
    if hi > lo and begin == end:
        begin = min(begin, BAR_WIDTH - 1)
        end = begin + 1
        mark = "▏"
    return " " * begin + mark * (end - begin) + " " * (BAR_WIDTH - end)


def _print_finding(console: Console, found: Finding) -> None:
    share = "" if found.share is None else f": {percent(found.share)} of the time"
    console.print(f"[bold]{found.cause.value}[/bold]{share}")
    lines = [each.text for each in found.evidence]
    lines += [f"Expect: {found.gain.text}."] if found.gain else []
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 2)))
    if found.change:
        console.print(Padding(Markdown(f"Change: {found.change}"), (0, 0, 0, 2)))
    console.print()


def money_line(ran: Ran) -> str:
    """What an epoch costs, and how much of that buys waiting."""
    ledger, machine = ran.played.ledger, ran.played.machine
    epoch_s = ledger.epoch_s(ran.job.n_samples)
    took = f"{ran.job.n_samples:,} {ran.job.sample}s take {duration(None if epoch_s is None else 1e9 * epoch_s)}"
    if ran.usd is None:
        return f"[bold]Money[/bold]: {took}; nobody quotes a price for this machine."
    waiting = dollars(ran.usd * ledger.idle_ns / ledger.window_ns)
    price = f"{dollars(machine.usd_per_hour)} an hour ({machine.price_basis})"
    return f"[bold]Money[/bold]: {took} and {dollars(ran.usd)} at {price}; {waiting} of it buys waiting."


def varied_line(varied: Sensitivity) -> str:
    """What the table below it begins with."""
    now = varied.as_it_is
    return (
        f"[bold]What moves the busy share[/bold]: as it is {percent(now.busy_share)}, {duration(now.step_ns)} a step "
        f"(the last {varied.n_steps:,} steps, priced again with some constants of the model at half and at double)"
    )


def sensitivity_table(varied: Sensitivity) -> Table:
    """For each group of constants the busy share and the step at each factor, the strongest mover of busy first."""
    factors = sorted({m.times for m in varied.moved})
    by_lever: dict[str, dict[float, Moved]] = {}
    for m in varied.moved:
        by_lever.setdefault(m.lever, {})[m.times] = m
    titles = [f"busy at {_times(f)}>" for f in factors] + [f"step at {_times(f)}>" for f in factors]
    table = _table("constants", *titles)

    def width(lever: str) -> float:
        shares = [m.busy_share for m in by_lever[lever].values()]
        return max(shares) - min(shares)

    for lever in sorted(by_lever, key=width, reverse=True):
        at = [by_lever[lever][factor] for factor in factors]
        table.add_row(lever, *(_to_a_tenth(m.busy_share) for m in at), *(duration(m.step_ns) for m in at))
    return table


def _times(factor: float) -> str:
    return "½" if factor == 0.5 else f"{factor:g}×"


def _to_a_tenth(share: float) -> str:
    """A percentage in which a small change is seen."""
    return f"{100 * share:.1f}{NBSP}%" if 0.01 <= share < 0.999 else percent(share)


def _table(*titles: str) -> Table:
    """A table without lines; a title that ends in > is set to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for k, title in enumerate(titles):
        right = title.endswith(">")
        table.add_column(title.rstrip(">"), justify="right" if right else "left", no_wrap=k < 4, min_width=3)
    return table
