"""`gpututor calibrate`: what a launch costs on the reader's own machine, and with it a narrower band."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from gpututor import own_machine
from gpututor.own_machine import Calibration
from gpututor.text import NBSP, percent, quantity


@click.command("calibrate")
@click.option("--show", "only_show", is_flag=True, help="Measure nothing; print what was measured before.")
@click.option("--reset", is_flag=True, help="Forget what was measured before.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def calibrate_command(only_show: bool, reset: bool, as_json: bool) -> None:
    """Measure this machine, in under a minute, so that predictions for it are nearer.

    Without a GPU it times operators on the CPU that cost the host the same beside one, and compares them with those of
    a recorded server: an estimate. With one it times launches, waits, copies and matrix products on it. What it
    finds lies in your own folder. Then "here" is a machine (gpututor job seq2seq --machine "T4 here" puts a T4 into
    this computer), and a run measured here is compared with it. Keep other programs off meanwhile.

    \b
    The JSON object has: file, measured_at, host {cpu, n_cpus, times, error_share, how,
    pinned_bytes_per_s, pageable_bytes_per_s, sync_us}, card {name, driver, sustained,
    bandwidth_share} or null, versions, noted, reasons {figure: why it is missing},
    warnings. `times` is how long the host takes over the amounts in data/hosts.toml.
    """
    if reset and only_show:
        raise click.UsageError("--reset forgets what --show would print; take one of them")
    if reset:
        from gpututor.calibration.whole import forget

        click.echo(f"{own_machine.path()} is deleted." if forget() else "There was no calibration to forget.")
        return
    if only_show:
        found = own_machine.load()
        if found is None:
            raise click.ClickException("this machine has not been calibrated; run `gpututor calibrate` without --show")
    else:
        found = _measured()
    if as_json:
        click.echo(json.dumps({"file": str(own_machine.path()), **fields_of(found)}, indent=2))
    else:
        for line in lines(found):
            click.echo(line)


def fields_of(found: Calibration) -> dict[str, Any]:
    """The calibration as plain data."""
    plain = {name: getattr(found, name) for name in found.__slots__}
    plain |= {name: dict(plain[name]) for name in ("versions", "noted", "reasons")}
    plain["host"] = asdict(found.host)
    if found.card is not None:
        card = found.card
        plain["card"] = {name: getattr(card, name) for name in card.__slots__} | {"sustained": dict(card.sustained)}
    return plain


def _measured() -> Calibration:
    from gpututor.calibration.whole import calibrate, keep
    from gpututor.lab.lock import measuring

    with measuring("gpututor calibrate"), _progress() as tell:
        found = calibrate(tell)
    keep(found)
    return found


def lines(found: Calibration) -> Iterator[str]:
    """The calibration in words."""
    host, card = found.host, found.card
    yield f"{host.cpu or 'This computer'}, {host.n_cpus} threads, measured {found.measured_at}"
    yield (
        f"  Host work takes {host.times:.3g} times the amounts of our table, give or take {percent(host.error_share)}: "
        f"{host.how}."
    )
    yield f"  {_beside(host.times)}"
    figures = (
        ("pinned copies", quantity(host.pinned_bytes_per_s, "B/s"), host.pinned_bytes_per_s),
        ("pageable copies", quantity(host.pageable_bytes_per_s, "B/s"), host.pageable_bytes_per_s),
        ("a waiting thread goes on after", f"{host.sync_us or 0:.1f}{NBSP}µs", host.sync_us),
    )
    yield from (f"  {name}: {text}" for name, text, value in figures if value is not None)
    if card is not None:
        yield f"{card.name}" + (f", driver {card.driver}" if card.driver else "")
        if card.bandwidth_share is not None:
            yield f"  memory: {percent(card.bandwidth_share)} of the data sheet's bandwidth"
        yield from (f"  {name}: {percent(share)} of the data sheet's rate" for name, share in card.sustained.items())
    yield from (f"  {name.removesuffix('_us')}: {value:.2f}{NBSP}µs" for name, value in found.noted.items())
    yield from (f"  not measured: {name} ({why})" for name, why in found.reasons.items())
    yield from (f"Warning: {warning}." for warning in found.warnings)
    example = "--machine here" if card is not None else '--machine "T4 here"'
    yield f"Kept in {own_machine.path()}. Try: gpututor job seq2seq {example}"


def _beside(times: float) -> str:
    """The host of our tables that is nearest to it."""
    from gpututor.cards import hosts

    base = own_machine.base_costs()["launch"]
    by_times = {host.cpu: host.costs["launch"] / base for host in hosts().values()}
    cpu = min(by_times, key=lambda name: abs(by_times[name] - times))
    return f"Nearest in our table: {cpu}, {by_times[cpu]:.3g} times."


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, k, n: bar.update(task, description=what, completed=k, total=n)
    sys.stderr.flush()
