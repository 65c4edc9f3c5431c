"""`gpututor cards` and `gpututor machines`: our tables, with the source of each figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from gpututor import own_machine
from gpututor.cards import Card, Machine, card, cards, machines
from gpututor.errors import CalibrationDamaged
from gpututor.text import dollars, percent, quantity

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH_WITHOUT_TERMINAL = 140  # a pipe or a file has no width of its own


@click.command("cards")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def cards_command(name: str | None, as_json: bool) -> None:
    """List the GPUs we know, or show NAME with the source of each figure."""
    if as_json:
        shown = card_fields(card(name)) if name else [card_fields(c) for c in cards().values()]
        click.echo(json.dumps(shown, indent=2))
    elif name:
        chosen = card(name)
        click.echo(f"{chosen.name} · {chosen.architecture} · compute capability {chosen.compute_capability}")
        if chosen.note:
            click.echo(chosen.note)
        _show(_one_card(chosen))
    else:
        _show(_card_list())
        click.echo("Rates are dense, with fp32 accumulation. gpututor cards NAME shows sources and sustained rates.")


@click.command("machines")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def machines_command(as_json: bool) -> None:
    """List rented and owned machines: cards, host and price with its basis."""
    if as_json:
        click.echo(json.dumps([machine_fields(m) for m in machines().values()], indent=2))
        return
    table = _table(
        "machine", "provider", "cards", "CPU", "threads>", "$ an hour>", "$ a card-hour>", "basis of the price"
    )
    for m in machines().values():
        n_cards = f"{m.n_cards} × " if m.n_cards > 1 else ""
        price = ("–", "–") if m.usd_per_hour is None else (_price(m.usd_per_hour), dollars(m.usd_per_card_hour))
        table.add_row(m.name, m.provider, n_cards + m.card.name, m.host.cpu, str(m.host.n_cpus), *price, m.price_basis)
    _show(table)
    click.echo(_own_machine())


def _own_machine() -> str:
    """Whether the reader's own computer is among the machines."""
    try:
        found = own_machine.load()
    except CalibrationDamaged as error:
        return f"Your own computer is none of them: {error}."
    if found is None:
        return "Your own computer is none of them until `gpututor calibrate` has measured it."
    name = '"here"' if found.card else '"T4 here", and so with any card,'
    return f"{name} is your own computer, calibrated on {found.measured_at[:10]} ({found.host.cpu or 'its own CPU'})."


def card_fields(shown: Card) -> dict[str, object]:
    """All fields of a card as plain data for JSON; names carry the units."""
    return {f.name: _plain(getattr(shown, f.name)) for f in fields(shown)}


def machine_fields(shown: Machine) -> dict[str, object]:
    """All fields of a machine as plain data for JSON, card and host by name."""
    plain = {f.name: _plain(getattr(shown, f.name)) for f in fields(shown)}
    return plain | {"card": shown.card.name, "host": shown.host.name, "usd_per_card_hour": shown.usd_per_card_hour}


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def _price(usd: float) -> str:
    """A list price to the digit that it is quoted with."""
    return f"${usd:.2f}" if round(usd, 2) == usd else f"${usd:g}"


def _card_list() -> Table:
    table = _table("card", "architecture", "SMs>", "memory>", "bandwidth>", "fp32>", "fastest format>", "board>")
    for c in cards().values():
        name, rate = c.top_format()
        table.add_row(
            c.name,
            c.architecture,
            str(c.n_sms),
            f"{c.memory_bytes / 2**30:.0f} GiB",
            quantity(c.bandwidth_bytes_per_s, "B/s"),
            quantity(c.peak("fp32"), "FLOP/s"),
            f"{name} {quantity(rate, 'FLOP/s')}",
            f"{c.tdp_w:.0f} W",
        )
    return table


def _one_card(c: Card) -> Table:
    """Figure, value, source: one row for each figure that has a source."""
    values = {
        "n_sms": str(c.n_sms),
        "fp32_cores_per_sm": str(c.fp32_cores_per_sm),
        "boost_clock_mhz": f"{c.boost_clock_hz / 1e6:.0f} MHz",
        "memory_gib": f"{c.memory_bytes / 2**30:.0f} GiB {c.memory_type}",
        "bandwidth_gb_per_s": quantity(c.bandwidth_bytes_per_s, "B/s"),
        "l2_mib": f"{c.l2_bytes / 2**20:g} MiB",
        "smem_kib_per_sm": f"{c.smem_bytes_per_sm / 2**10:.0f} KiB",
        "max_warps_per_sm": str(c.max_warps_per_sm),
        "max_blocks_per_sm": "not known" if c.max_blocks_per_sm is None else str(c.max_blocks_per_sm),
        "tdp_w": f"{c.tdp_w:.0f} W",
        "pcie_gen": str(c.pcie_gen),
        "pcie_lanes": str(c.pcie_lanes),
        "nvlink_gb_per_s": quantity(c.nvlink_bytes_per_s, "B/s"),
        "bandwidth_share": percent(c.bandwidth_share),
    }
    values |= {
        f"peak_tflops.{f}": quantity(rate, "OP/s" if f == "int8" else "FLOP/s") for f, rate in c.peak_flop_per_s.items()
    }
    values |= {f"sustained.{f}": percent(share) for f, share in c.sustained.items()}
    table = _table("figure", "value>", "source")
    for figure, source in c.sources.items():
        table.add_row(figure, values[figure], source)
    return table


def _table(*titles: str) -> Table:
    """A table without lines; a title that ends in > is set to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for k, title in enumerate(titles):
        table.add_column(
            title.rstrip(">"), justify="right" if title.endswith(">") else "left", no_wrap=k == 0 or title.endswith(">")
        )
    return table


def _show(table: Table) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False).print(table)
