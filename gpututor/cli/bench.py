"""`gpututor bench`: our own claims, measured on the reader's machine."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from gpututor.text import percent

if TYPE_CHECKING:
    from gpututor.bench.speed import Speed


@click.group("bench")
def bench_command() -> None:
    """Measure on this machine what we claim."""


@bench_command.command("speed")
@click.option(
    "--steps", "n_steps", default=7, show_default=True, type=click.IntRange(1), help="Steps to take the median of."
)
@click.option("--foreach", is_flag=True, help="Let the optimizer take all parameters in one op, as on CUDA.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def speed_command(n_steps: int, foreach: bool, as_json: bool) -> None:
    """How long a training step takes to account, beside torch's fake tensors and the CPU."""
    from gpututor.bench import speed

    found = []
    for one in speed.speeds(n_steps, foreach=foreach):
        found.append(one)
        if not as_json and sys.stderr.isatty():
            click.echo(f"{one.workload} done", err=True)
    if as_json:
        click.echo(json.dumps([one.as_fields() for one in found], indent=2))
    else:
        _show(found, foreach)


def _show(found: list[Speed], foreach: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from gpututor.bench import speed

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in (
        "training step",
        "ops",
        "numerics off",
        "of fake tensors + FLOP counter",
        "numerics on, over the CPU",
        "",
    ):
        table.add_column(title, justify="left" if title == "training step" else "right")
    for one in found:
        table.add_row(
            one.workload,
            str(one.n_ops),
            f"{one.off_us:.1f} µs/op, {one.off_step_s * 1e3:.1f} ms",
            f"{percent(one.share_of_fake)} of {one.fake_step_s * 1e3:.0f} ms",
            f"{one.on_over_cpu_us:.1f} µs/op",
            "within" if one.within_bars else "outside",
        )
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    console.print(table)
    console.print(
        f"Bars: at most {speed.OFF_BAR_US:g} µs an op with numerics off, {percent(speed.FAKE_BAR_SHARE)} of the time "
        f"of FakeTensorMode and FlopCounterMode, {speed.ON_BAR_US:g} µs an op over the CPU with numerics on (on small "
        f"networks). AdamW takes {'all parameters in one op' if foreach else 'one parameter after the other'}. "
        "CPU time of one thread, medians."
    )
