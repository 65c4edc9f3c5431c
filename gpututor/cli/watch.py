"""`gpututor watch`: the gauges of GPU and CPU as they move, with what they mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from gpututor.cli.lessons import end_on_signals
from gpututor.watch.files import CsvRows, JsonLines, Log
from gpututor.watch.history import History
from gpututor.watch.loop import watch
from gpututor.watch.source import Reading, Sources

if TYPE_CHECKING:
    from gpututor.watch.page import Page


class Closes(Protocol):
    """What has to be closed in the end."""

    def close(self) -> None:
        """Let go."""


Closing = TypeVar("Closing", bound=Closes)


@click.command("watch")
@click.option("--gpu", "gpus", multiple=True, metavar="N", help='Only this GPU: CUDA\'s number of it, or "sim0".')
@click.option("--interval", "interval_s", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="S")
@click.option("--once", is_flag=True, help="One reading with what it means, then end.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="End after so many seconds.")
@click.option("--csv", "csv_path", type=click.Path(path_type=Path), metavar="FILE", help="One row a reading.")
@click.option(
    "--jsonl", type=click.Path(path_type=Path), metavar="FILE", help="One JSON object a reading, with reasons."
)
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="DIR", help="Event files for TensorBoard.")
@click.option("--page", is_flag=True, help="Serve a page with the same gauges on this machine, too.")
@click.option("--port", type=click.IntRange(1, 65535), help="Its port; 2780 or the next free one by default.")
def watch_command(
    gpus: tuple[str, ...],
    interval_s: float,
    once: bool,
    seconds: float | None,
    csv_path: Path | None,
    jsonl: Path | None,
    tensorboard: Path | None,
    page: bool,
    port: int | None,
) -> None:
    """Watch GPU and CPU together, and read what the gauges mean; Ctrl-C ends it with a summary.

    Where a GPU idles while the CPU is busy, the loader is to blame. A simulated GPU shows up while a run
    on the paced clock goes on (gpututor run --clock paced train.py). What can't be read is left out, with the reason.

    \b
    The columns of a CSV row: time_s, utc, cpu_busy_share, cpu_usable_cores,
    cpu_own_busy_cores, cpu_memory_{used,total}_bytes, then for each GPU
    name, kernel_time_share, sm_busy_share, memory_{used,total}_bytes, power_w,
    power_limit_w, sm_clock_hz, temperature_c, clock_reasons. A cell without a
    reading is empty; the reason is in --jsonl.
    """
    if once and page:
        raise click.UsageError("--once ends before a browser could open the page; take one of them")
    if port is not None and not page:
        raise click.UsageError("--port is the page's; add --page")
    end_on_signals()
    history = History()
    with ExitStack() as ending:
        logs = [ending.enter_context(_closing(log)) for log in _logs(csv_path, jsonl, tensorboard)]
        served = ending.enter_context(_closing(_page(port))) if page else None
        sources = ending.enter_context(_closing(_sources(gpus)))
        listeners = [history.note, *([served.note] if served else [])]
        try:
            with _shown(history, once=once, address=served.address if served else "") as show:
                watch(
                    sources,
                    [*listeners, show],
                    logs,
                    interval_s=interval_s,
                    seconds=seconds,
                    n_readings=1 if once else None,
                )
        except KeyboardInterrupt:
            pass
    if not once:
        _tell_the_end(history, logs)


def _sources(gpus: tuple[str, ...]) -> Sources:
    from gpututor.watch.nvidia import NvidiaGpus
    from gpututor.watch.processor import Psutil
    from gpututor.watch.simulated import SimulatedGpus

    only = [f"gpu{name}" if name.isdecimal() else name for name in gpus]
    return Sources(NvidiaGpus(), SimulatedGpus(), Psutil(), only=only)


def _logs(csv_path: Path | None, jsonl: Path | None, tensorboard: Path | None) -> Iterator[Log]:
    if csv_path is not None:
        yield CsvRows(csv_path)
    if jsonl is not None:
        yield JsonLines(jsonl)
    if tensorboard is not None:
        from gpututor.watch.tensorboard import Events

        yield Events(tensorboard)


def _page(port: int | None) -> Page:
    from gpututor.watch.page import Page

    return Page(port)


@contextmanager
def _closing(thing: Closing) -> Iterator[Closing]:
    try:
        yield thing
    finally:
        thing.close()


@contextmanager
def _shown(history: History, *, once: bool, address: str) -> Iterator[Callable[[Reading], None]]:
    """What shows a reading: a screen that is drawn again and again, or lines where there is no terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if once or not console.is_terminal or console.is_dumb_terminal:
        yield _lines(address)
        return
    from rich.live import Live

    from gpututor.watch.screen import blocks_for, fitting

    blocks = blocks_for(console.encoding)
    with Live(console=console, auto_refresh=False) as live:
        yield lambda reading: live.update(fitting(reading, history, console, blocks=blocks, page=address), refresh=True)


def _lines(address: str) -> Callable[[Reading], None]:
    from gpututor.watch.plain import explained, tick_lines

    explained_keys: set[str] | None = None

    def show(reading: Reading) -> None:
        nonlocal explained_keys
        keys = {device.key for device in reading.devices}
        if explained_keys is None and address:
            click.echo(f"The page is at {address}.")
        lines = explained(reading) if explained_keys is None or keys - explained_keys else tick_lines(reading)
        explained_keys = keys | (explained_keys or set())
        for line in lines:
            click.echo(line)
        sys.stdout.flush()

    return show


def _tell_the_end(history: History, logs: list[Log]) -> None:
    for line in history.lines():
        click.echo(line)
    for log in logs:
        if isinstance(log, CsvRows) and log.without_column:
            late = ", ".join(sorted(log.without_column))
            click.echo(f"Without a column, because they came later: {late}; --jsonl keeps every GPU.")
