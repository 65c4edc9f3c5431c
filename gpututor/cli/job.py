"""`gpututor job`: train one of the course's jobs on a simulated machine, and account for its time."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from gpututor.causes import Finding, find_causes
from gpututor.errors import ExperimentError, NotKnown
from gpututor.expect import Band
from gpututor.expect.accuracy import step_band, util_band
from gpututor.history import Entry, log
from gpututor.history.entry import accounts_a_step
from gpututor.jobs.tutorial import TUTORIAL_STEPS
from gpututor.lookup import machine_named
from gpututor.progress import Progress, Stopped
from gpututor.replay import Played, Sensitivity, play_file, read_tape, sensitivity
from gpututor.run.report_json import bands
from gpututor.trace import writing

if TYPE_CHECKING:
    from gpututor.cards import Machine
    from gpututor.model.tape import Tape

INTERRUPTED = 130  # 128 and SIGINT's number, as shells have it
N_ACCOUNTED = 300  # steps at most: the spans of one take half a megabyte of memory
N_VARIED = 50  # steps at most for the sensitivity, which prices them two dozen times


@dataclass(frozen=True, slots=True)
class Job:
    """A job that can be run: what trains it, in the lab's form, and how many samples an epoch of it has."""

    train: Callable[..., dict[str, Any]]
    sample: str
    n_samples: int


def _seq2seq(progress: Progress, n_steps: int, machine: Machine) -> dict[str, Any]:
    import torch

    from gpututor.experiments.seq2seq import train

    torch.set_num_threads(1)  # as in the lab: sums come out the same everywhere, and one word has no work for two
    return train(progress, n_steps=n_steps, n_kept=min(n_steps, N_ACCOUNTED), machine=machine.name)


JOBS: Mapping[str, Job] = {"seq2seq": Job(_seq2seq, "sentence", TUTORIAL_STEPS)}
"""The extension point: name of the job, as the command line has it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A run and what follows from it, ready to be printed."""

    job: Job
    played: Played
    findings: tuple[Finding, ...]
    n_done: int
    n_asked: int
    torch: str
    varied: Sensitivity | None

    @property
    def bands(self) -> tuple[Band, Band]:
        """The room around the step's time and around its utilization."""
        played = self.played
        seen = played.timeline, played.ledger, played.machine.host.costs_error_share
        return step_band(*seen), util_band(*seen)

    @property
    def usd(self) -> float | None:
        """US dollars for an epoch, or None where the machine has no price."""
        return self.played.ledger.usd_per_epoch(self.job.n_samples, self.played.machine.usd_per_hour)


@click.command("job")
@click.argument("name")
@click.option(
    "--machine", "machine_name", help="A machine or a card, such as g4dn.xlarge or H100; p3.2xlarge if left out."
)
@click.option("--steps", default=200, show_default=True, type=click.IntRange(1, 100_000), help="Steps to train.")
@click.option("--sensitivity", "with_sensitivity", is_flag=True, help="Also print what moves the busy share.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the timeline; trace.json: as a trace.",
)
@click.option("--no-history", is_flag=True, help="Don't log this run (see gpututor history).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def job_command(
    name: str,
    machine_name: str | None,
    steps: int,
    with_sensitivity: bool,
    save: Path | None,
    no_history: bool,
    as_json: bool,
) -> int:
    """Train NAME (seq2seq) on a simulated machine; print its gauges, ledger, causes and cost.

    Ctrl-C ends the training; what ran until then is accounted.

    \b
    The JSON object has: job, machine, card, torch; n_steps_asked, n_steps_done,
    n_steps_accounted (the last ones); step_ns; busy_share, sm_fill_share, mfu
    (each null if not known); bands: {step_ns, gpu_util_share: each [low, high],
    source}, how far to trust them; ledger: {account: {ns, share}}; findings: [{cause,
    share, evidence: {name: {value, unit}}, change, lesson}]; money: {usd_per_hour,
    price_basis, n_samples, epoch_s, usd_per_epoch}; sensitivity: null unless asked
    for, else {n_steps, busy_share, step_ns, moved: [{lever, times, busy_share,
    step_ns}]}.
    """
    if name not in JOBS:
        raise NotKnown("job", name, JOBS)
    machine = machine_named(machine_name)
    if save is not None and not save.parent.is_dir():
        raise click.ClickException(f"there is no folder {save.parent} to save the timeline in")
    ran = run_job(JOBS[name], machine, steps, with_sensitivity=with_sensitivity)
    if as_json:
        click.echo(json.dumps(as_data(name, ran), indent=2))
    else:
        from gpututor.cli.job_tables import print_run

        print_run(ran)
    if save is not None:
        _save(ran, save)
        click.echo(f"The timeline is in {save}.", err=True)
    _, trouble = log(_entry(name, ran), False if no_history else None)
    if trouble:
        click.echo(trouble, err=True)
    return 0 if ran.n_done == steps else INTERRUPTED


def _entry(name: str, ran: Ran) -> Entry:
    """The run as the history keeps it."""
    ledger, machine = ran.played.ledger, ran.played.machine
    step_ns, usd_per_hour = ran.played.step_ns, machine.usd_per_hour
    return Entry(
        kind="job",
        name=name,
        origin="simulated",
        machine=machine.name,
        card=machine.card.name,
        configuration={"steps": ran.n_done},
        versions={"torch": ran.torch},
        n_steps=ledger.n_steps,
        step_ns=step_ns,
        busy_share=ledger.busy_share,
        busy_basis="the ledger of the simulated card",
        accounts_ns=accounts_a_step(ledger),
        usd_per_hour=usd_per_hour,
        usd_per_1000_steps=None if usd_per_hour is None or step_ns is None else usd_per_hour * step_ns / 3.6e9,
        reasons={"commit": "the job is gpututor's own"},
    )


def run_job(job: Job, machine: Machine, n_steps: int, *, with_sensitivity: bool) -> Ran:
    """Train, and account for every step.

    Raises:
        ExperimentError: stopped before the first step.
    """
    with tempfile.TemporaryDirectory(prefix="gpututor-") as folder, _progress(n_steps, job.sample) as tell:
        with _interrupted() as stop_asked:
            progress = Progress(tell, stop_asked, Path(folder))
            try:
                data = job.train(progress, n_steps, machine)
            except Stopped:
                raise ExperimentError("it was stopped before its first step, so there is nothing to account") from None
        path = Path(folder) / data["tape"]
        played = play_file(path, machine)
        varied = _varied(read_tape(path), machine) if with_sensitivity else None
    findings = find_causes(played.timeline, played.ledger)
    return Ran(job, played, findings, len(data["steps"]), n_steps, data["torch"], varied)


def _varied(tape: Tape, machine: Machine) -> Sensitivity:
    n_steps = tape.n_steps
    return sensitivity(tape.steps(max(0, n_steps - N_VARIED), n_steps), machine)


@contextmanager
def _progress(n_steps: int, sample: str) -> Iterator[Callable[[int, int, str, object], None]]:
    """A bar on stderr; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(f"{sample}s"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=n_steps, note="")
        yield lambda k, n, note, partial: bar.update(task, completed=k, total=n, note=note)


@contextmanager
def _interrupted() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed inside the block; a second one ends the program as usual."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _save(ran: Ran, path: Path) -> None:
    try:
        writing.save(ran.played.timeline, path)
    except OSError as error:
        raise click.ClickException(f"the timeline can't be written to {path} ({error.strerror or error})") from error


def as_data(name: str, ran: Ran) -> dict[str, Any]:
    """The run as plain data for JSON; names carry the units."""
    ledger, machine = ran.played.ledger, ran.played.machine
    return {
        "job": name,
        "machine": machine.name,
        "card": machine.card.name,
        "torch": ran.torch,
        "n_steps_asked": ran.n_asked,
        "n_steps_done": ran.n_done,
        "n_steps_accounted": ledger.n_steps,
        "step_ns": ran.played.step_ns,
        "busy_share": ledger.gpu_util_share,
        "sm_fill_share": ledger.sm_fill_share,
        "mfu": ledger.mfu,
        "bands": bands(*ran.bands),
        "ledger": {a.value: {"ns": ns, "share": ledger.share(a)} for a, ns in ledger.charged_ns.items()},
        "findings": [_finding(each) for each in ran.findings],
        "money": {
            "usd_per_hour": machine.usd_per_hour,
            "price_basis": machine.price_basis,
            "n_samples": ran.job.n_samples,
            "epoch_s": ledger.epoch_s(ran.job.n_samples),
            "usd_per_epoch": ran.usd,
        },
        "sensitivity": None if ran.varied is None else _sensitivity(ran.varied),
    }


def _sensitivity(varied: Sensitivity) -> dict[str, Any]:
    now = varied.as_it_is
    moved = [asdict(each) for each in varied.moved]
    return {"n_steps": varied.n_steps, "busy_share": now.busy_share, "step_ns": now.step_ns, "moved": moved}


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "cause": found.cause.value,
        "share": found.share,
        "evidence": {each.name: {"value": each.value, "unit": each.unit} for each in found.evidence},
        "change": found.change,
        "lesson": found.lesson,
    }
