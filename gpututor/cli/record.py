"""`gpututor record`: the lessons' experiments on this machine's own GPU, as small files for machines without one."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpututor.text import NBSP

if TYPE_CHECKING:
    from rich.console import Console

    from gpututor.recordings import LessonExperiment, LessonRecording, Recorded, Row

WIDTH_WITHOUT_TERMINAL = 120  # a pipe or a file has no width of its own
INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


@click.command("record")
@click.option("--lesson", "lessons", type=int, multiple=True, metavar="N", help="This lesson alone; may be repeated.")
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder for the files; ./recordings-CARD by default. Its recordings of the same card are replaced.",
)
@click.option("--list", "only_list", is_flag=True, help="List experiments, and the recordings that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def record_command(lessons: tuple[int, ...], to: Path | None, only_list: bool, as_json: bool) -> int:
    """Measure every lesson's experiments on this machine's GPU, and keep them as small recordings.

    It takes a minute or two; keep other programs off meanwhile. Each experiment leaves timelines and a description with
    card, driver, torch, date and host; nothing is sent anywhere. At the end stands what was measured beside what the
    model expects. Ctrl-C keeps what is finished; a second one ends at once. Lessons show the recordings that lie in the
    folder `recordings` of GPUTUTOR_HOME, on this machine or another one.

    \b
    The status is 0 when everything was recorded, 1 when something was not (no GPU, for
    instance), 130 after Ctrl-C. The JSON object has: folder, stopped, recordings [{files,
    lesson, name, card, gpu, host, driver, torch, at, told, …}], missing [{lesson, name,
    sentence}], compared [{lesson, experiment, what, unit, measured, expected, low, high,
    verdict, source, reason, note}].
    """
    from gpututor.recordings import of_lessons

    experiments = of_lessons(lessons)
    if only_list:
        _list(experiments, to, as_json=as_json)
        return 0
    found = _recorded(experiments, to)
    if found is None:
        return 1
    if as_json:
        click.echo(json.dumps(document(found), indent=2))
    else:
        _print(found)
    if found.stopped:
        return INTERRUPTED
    return 0 if all(each.recording and not each.sentence for each in found.outcomes) else 1


def _recorded(experiments: Sequence[LessonExperiment], to: Path | None) -> Recorded | None:
    """What was recorded; None, and a sentence on stderr, on a machine without a GPU."""
    from gpututor import recordings

    with _progress() as tell:
        tell("looking for a GPU", 0, 0)
        why = recordings.why_no_gpu()
    if why is not None:
        sentence = f"there is no GPU to record on: {why}; run `gpututor doctor`, which says what to do about it"
        click.echo(f"gpututor: {sentence}", err=True)
        return None
    with _progress() as tell, stopped_by_ctrl_c() as should_stop:
        return recordings.record(experiments, to, tell=tell, should_stop=should_stop)


@contextmanager
def stopped_by_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; the first one only says so, the second is what it always was."""
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(*_: object) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr; one line for each new experiment where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        told = set[str]()

        def tell(what: str, k: int, n: int) -> None:
            bar.update(task, description=what, completed=k, total=n or None)
            if not console.is_terminal and ":" not in what and what not in told:  # after a colon stands a step's note
                told.add(what)
                click.echo(f"{what} …", err=True)

        yield tell
    sys.stderr.flush()


def document(found: Recorded) -> dict[str, Any]:
    """Everything that was recorded, as plain data."""
    missing = [each for each in found.outcomes if each.sentence]
    return {
        "folder": str(found.folder) if found.folder else None,
        "stopped": found.stopped,
        "recordings": [_fields(each) for each in found.recordings],
        "missing": [
            {"lesson": each.experiment.lesson, "name": each.experiment.name, "sentence": each.sentence}
            for each in missing
        ],
        "compared": [row.as_fields() for each in found.outcomes for row in each.rows],
    }


def _fields(recording: LessonRecording) -> dict[str, Any]:
    return {"files": [path.name for path in recording.files], "n_bytes": recording.n_bytes, **recording.as_fields()}


def _print(found: Recorded) -> None:
    from gpututor.paths import home

    console = _console()
    rows = [row for each in found.outcomes for row in each.rows]
    if found.recordings:
        console.print(f"[bold]Measured[/bold] {_about(found.recordings[0])}", soft_wrap=True)
        _print_table(console, rows)
        _print_notes(console, found, rows)
    for each in found.outcomes:
        if each.sentence:
            console.print(f"{_capital(each.experiment.title)}: {each.sentence}", soft_wrap=True, markup=False)
    if found.folder is None:
        console.print("Nothing was recorded.")
        return
    n_files = sum(len(each.files) for each in found.recordings)
    size = _kilobytes(sum(each.n_bytes for each in found.recordings))
    console.print(f"{n_files} files, {size}, in {found.folder}", soft_wrap=True, markup=False)
    shown = home() / "recordings"
    if found.folder.resolve() != shown.resolve():
        advice = f"Lessons show the recordings in {shown}; copy these there, or on another machine to the same place."
        console.print(advice, soft_wrap=True, markup=False)


def _console() -> Console:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def _about(recording: LessonRecording) -> str:
    driver = f"driver {recording.driver}" if recording.driver else "driver not known"
    parts = (recording.card or recording.gpu, recording.host, driver, f"torch {recording.torch}", recording.at[:10])
    return " · ".join(filter(None, parts))


def _print_table(console: Console, rows: Sequence[Row]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("lesson", justify="right")
    table.add_column("experiment")
    table.add_column("")
    for title in ("measured", "expected", "band"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in rows:
        *figures, verdict = row.cells
        table.add_row(str(row.lesson), row.experiment, row.what, *figures, verdict)
    console.print(table)


def _print_notes(console: Console, found: Recorded, rows: Sequence[Row]) -> None:
    """Where bands come from, why expectations are missing, and what belongs to the recordings."""
    sources = dict.fromkeys(row.band.source for row in rows if row.band)
    lines = [f"Bands are {'; '.join(sources)}."] if sources else []
    lines += dict.fromkeys(row.note for row in rows if row.note)
    lines += dict.fromkeys(f"Nothing is expected: {row.reason.rstrip('.')}." for row in rows if row.reason)
    for each in found.recordings:
        lines += [f"{_capital(name)} is left out: {why}." for name, why in each.told.get("left_out", {}).items()]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _kilobytes(n_bytes: int) -> str:
    return f"{max(1, round(n_bytes / 1000)):,}{NBSP}kB"


def _list(experiments: Sequence[LessonExperiment], to: Path | None, *, as_json: bool) -> None:
    from gpututor.paths import recordings_dirs
    from gpututor.recordings import read

    folders = [*recordings_dirs(), *([to] if to else sorted(Path().glob("recordings-*")))]
    names = {each.name for each in experiments}
    there = [each for folder in folders for each in read(folder) if each.name in names]
    if as_json:
        listed = [
            {"lesson": each.lesson, "name": each.name, "what": each.what, "params": dict(each.params)}
            for each in experiments
        ]
        told = [{"folder": str(each.folder), **_fields(each)} for each in there]
        click.echo(json.dumps({"experiments": listed, "recordings": told}, indent=2))
        return
    for experiment in experiments:
        click.echo(f"Lesson {experiment.lesson}  {experiment.name}: {experiment.what}")
        for each in there:
            if each.name == experiment.name:
                click.echo(f"    {_about(each)}, {_kilobytes(each.n_bytes)}, in {each.folder}")
    if not there:
        where = f"in {to} or comes with the course" if to else "here or comes with the course"
        click.echo(f"No recording of a real GPU lies {where}; on a machine with one, `gpututor record` makes them.")
