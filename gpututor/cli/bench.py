"""`gpututor bench`: our own claims, measured on the reader's machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpututor.text import percent

if TYPE_CHECKING:
    from gpututor.bench.accuracy.bands import Sorted
    from gpututor.bench.accuracy.points import Point
    from gpututor.bench.accuracy.rows import Row
    from gpututor.bench.sampling import Sampling
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
    """How long a training step takes to account, beside torch's fake tensors and the CPU; and what the sampler takes.

    In JSON, "steps" holds a row for each workload and "sampler" what reading the GPU five times a second takes.
    """
    from gpututor.bench import sampling, speed

    found = []
    for one in speed.speeds(n_steps, foreach=foreach):
        found.append(one)
        if not as_json and sys.stderr.isatty():
            click.echo(f"{one.workload} done", err=True)
    sampled = sampling.sampling()
    if as_json:
        told = {"steps": [one.as_fields() for one in found], "sampler": sampled.as_fields()}
        click.echo(json.dumps(told, indent=2))
    else:
        _show(found, foreach)
        click.echo(_sampler_line(sampled))


def _sampler_line(sampled: Sampling) -> str:
    from gpututor.bench import sampling

    if sampled.core_share is None:
        return f"What the sampler of the GPU takes is not known here: {sampled.reason}."
    what = "this machine's driver" if sampled.driver == "real" else "a fake driver, which answers at once"
    gpus = "1 GPU" if sampled.n_gpus == 1 else f"{sampled.n_gpus} GPUs"
    verdict = "within" if sampled.within_bar else "outside"
    return (
        f"The sampler takes {percent(sampled.core_share)} of a core at 5 Hz with {gpus} of {what}: {verdict} its bar "
        f"of {percent(sampling.BAR_SHARE)}."
    )


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


@bench_command.command("accuracy")
@click.option(
    "--points",
    "path",
    type=click.Path(path_type=Path),
    help="A CSV file of measured points; ours, data/points.csv, without it.",
)
@click.option("--only", multiple=True, metavar="NAME", help="A regime or a point's id; can be given several times.")
@click.option(
    "--show", "what", type=click.Choice(["worst", "all"]), default="worst", show_default=True, help="Rows to list."
)
@click.option("--json", "as_json", is_flag=True, help="Print statistics and every row as JSON.")
@click.option(
    "--write-bands", is_flag=True, help="Also write data/bands.toml, from which every prediction has its band."
)
def accuracy_command(path: Path | None, only: tuple[str, ...], what: str, as_json: bool, write_bands: bool) -> None:
    """How far our predictions are from published measurements.

    In JSON, errors, biases and ratios are shares (0.06 is 6 %) of predicted over measured time, less 1; utilization
    is in percentage points. "n" counts predicted points, "skipped" the others; each row says why it was skipped. Stop
    with Ctrl-C to see what there is so far.
    """
    from gpututor.bench.accuracy.fields import fields_of
    from gpututor.bench.accuracy.points import default_points, read_points
    from gpututor.bench.accuracy.summary import report_of
    from gpututor.bench.accuracy.table import show

    name = path or default_points()
    points = _chosen(read_points(name), only, name)
    if write_bands:
        from gpututor.bench.accuracy.bands import Sorted

        if path or only:
            raise click.UsageError("bands come from all of our own points; leave --points and --only out")
        kinds = Sorted()
        report = report_of(_until_stopped(points, kinds.row))
        _write_bands(kinds, name, len(points))
    else:
        report = report_of(_until_stopped(points))
    if as_json:
        click.echo(json.dumps(fields_of(report), indent=2))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 180, highlight=False)
    show(console, report, what)


def _chosen(points: Iterable[Point], only: tuple[str, ...], name: Path) -> tuple[Point, ...]:
    """The points of these regimes and ids, all without any."""
    from gpututor.errors import NotKnown

    points = tuple(points)
    known = {word for point in points for word in (point.id, point.regime)}
    for word in only:
        if word not in known:
            raise NotKnown(f"point or regime in {name}", word, sorted(known))
    return tuple(point for point in points if not only or {point.id, point.regime} & set(only))


def _write_bands(kinds: Sorted, name: Path, n_points: int) -> None:
    """Write the file of bands; not where the report was stopped, since its last points may be of one kind."""
    from gpututor.bench.accuracy.bands import write

    if kinds.n_seen < n_points:
        raise click.ClickException("the report was stopped, so data/bands.toml stays what it was")
    written = write(kinds, name)
    if written is None:
        raise click.ClickException(f"{name} has too few points that can be predicted; data/bands.toml stays as it was")
    click.echo(f"data/bands.toml holds the bands of {', '.join(written)}.", err=True)


def _until_stopped(points: tuple[Point, ...], row_of: Callable[[Point], Row] | None = None) -> Iterator[Row]:
    """A row for each point, with a line on stderr on how far we are; after Ctrl-C the rest counts as skipped."""
    from gpututor.bench.accuracy import rows

    row_of = row_of or rows.row_of
    telling, done = sys.stderr.isatty(), 0
    try:
        for point in points:
            if telling:
                click.echo(f"\r\x1b[K{done + 1} of {len(points)}: {point.id} {point.model}", err=True, nl=False)
            row = row_of(point)
            done += 1
            yield row
    except KeyboardInterrupt:
        for point in points[done:]:
            yield rows.Row(point, skipped="stopped before its turn")
    finally:
        if telling:
            click.echo("\r\x1b[K", err=True, nl=False)
