"""`gpututor run`: somebody's own training script on a simulated card, or watched on the real one."""

from __future__ import annotations

import json as json_module
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpututor.cards import Machine, machine_for
from gpututor.errors import GpututorError
from gpututor.lookup import machine_named
from gpututor.run.request import DEFAULT_SKIP, Request

if TYPE_CHECKING:
    from gpututor.run.outcome import Outcome

HERE = "here"


class CannotRun(GpututorError, ValueError):
    """The wishes of a command line contradict each other, or this machine can't fulfil them."""


class ScriptCommand(click.Command):
    """A command whose options end with the script, or with `-m MODULE`, as Python's own do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take everything behind `-m MODULE` as the module's."""
        takes_value = {name for p in self.params for name in p.opts if isinstance(p, click.Option) and not p.is_flag}
        k = 0
        while k < len(args) and args[k].startswith("-") and args[k] != "--":
            k += 2 if args[k] in takes_value else 1
            if args[k - 2 : k - 1] == ["-m"]:
                args = [*args[:k], "--", *args[k:]]
                break
        return super().parse_args(ctx, args)


@click.command(
    "run",
    cls=ScriptCommand,
    context_settings={"allow_interspersed_args": False},
    epilog="Options of gpututor stand before the script; what follows it is the script's own.",
)
@click.option("--gpu", help='A card ("A100-SXM4-80GB"), or "here" to measure the GPU of this machine.')
@click.option("--machine", help='A machine ("p4d.24xlarge") instead of the usual one; "here" is your own.')
@click.option("-m", "module", metavar="MODULE", help="Run a module as `python -m` does.")
@click.option("--steps", type=click.IntRange(1), help="Stop after so many steps in the ledger.")
@click.option("--skip", type=click.IntRange(0), default=DEFAULT_SKIP, show_default=True, help="Steps before them.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="Stop the script so many seconds after its begin."
)
@click.option(
    "--no-numerics", is_flag=True, help="Compute nothing, only account: for models too large for this machine."
)
@click.option(
    "--clock",
    type=click.Choice(["virtual", "paced"]),
    default="virtual",
    show_default=True,
    help="Host time by our table of hosts, the same everywhere, or this machine's own.",
)
@click.option("--compare", is_flag=True, help="Predict and measure, side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; the script's output goes to stderr.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save timeline (and tape beside it); “trace.json.gz” is Kineto's form, for Perfetto and others.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as one HTML file.")
@click.option("--no-history", is_flag=True, help="Don't log this run (see gpututor history).")
@click.argument("script", nargs=-1, type=click.UNPROCESSED)
def run_command(
    gpu: str | None,
    machine: str | None,
    module: str | None,
    steps: int | None,
    skip: int,
    seconds: float | None,
    no_numerics: bool,
    clock: str,
    compare: bool,
    as_json: bool,
    save: Path | None,
    html: Path | None,
    no_history: bool,
    script: tuple[str, ...],
) -> int:
    """Run a training script written for CUDA, without an edit, on a card that isn't there.

    SCRIPT and its arguments are those of `python SCRIPT …`. At its end, or after --steps or --seconds, you see
    where the card's time went, why, and what it costs. The exit status is the script's own, 0 if it was stopped.
    """
    from gpututor.run import target

    if not script and module is None:
        raise CannotRun("no script was named; for example: gpututor run --gpu A100 train.py --epochs 1")
    if module is None:
        target.check(script[0])
    here = gpu is not None and gpu.casefold() == HERE
    if here or compare:
        from gpututor.run.here import no_gpu_here

        why_not = no_gpu_here()
        if why_not:
            raise CannotRun(why_not)
    request = Request(
        target=module or script[0],
        arguments=script if module else script[1:],
        is_module=module is not None,
        machine="" if here else chosen_machine(gpu, machine).name,
        here=here,
        numerics=not no_numerics,
        n_steps=steps,
        skip=skip,
        seconds=seconds,
        clock=clock,
    )
    for path in filter(None, (save, html)):
        if not path.absolute().parent.is_dir():
            raise CannotRun(f"{path} can't be written: there is no folder {path.absolute().parent}; make it first")
    outcomes = _run_and_tell(request, compare=compare, as_json=as_json, save=save, html=html)
    _log(outcomes, None if not no_history else False)
    return outcomes[0].ended.status


def chosen_machine(gpu: str | None, machine: str | None) -> Machine:
    """The machine of these two wishes.

    Raises:
        CannotRun: the machine has another card than the one asked for.
        CardNotKnown, MachineNotKnown: no such name; near ones are given.
    """
    if machine is None:
        return machine_named(gpu)
    if gpu is not None and machine.casefold() == HERE:
        return machine_named(f"{gpu} {HERE}")
    chosen = machine_named(machine)
    if gpu is not None and machine_for(gpu).card.name != chosen.card.name:
        raise CannotRun(f"{chosen.name} has the card {chosen.card.name}, not {gpu}; leave --gpu out, or --machine")
    return chosen


def _log(outcomes: list[Outcome], wanted: bool | None) -> None:
    from gpututor.history import log
    from gpututor.run.keeping import entry_of

    for outcome in outcomes:
        _, trouble = log(entry_of(outcome), wanted)
        if trouble:
            click.echo(trouble, err=True)


def _run_and_tell(
    request: Request, *, compare: bool, as_json: bool, save: Path | None, html: Path | None
) -> list[Outcome]:
    from gpututor.run import report, report_json
    from gpututor.run.outcome import verdicts
    from gpututor.run.whole import run_whole

    requests = [request, replace(request, here=True, machine="")] if compare else [request]
    with tempfile.TemporaryDirectory(prefix="gpututor-run-") as folder:
        outcomes = [run_whole(each, Path(folder) / str(k), json=as_json) for k, each in enumerate(requests)]
    documents = [report_json.document(outcome) for outcome in outcomes]
    if compare:
        documents[1]["verdicts"] = report_json.verdict_fields(verdicts(outcomes[0], outcomes[1]))
    if as_json:
        click.echo(json_module.dumps(documents[0] if len(documents) == 1 else documents, indent=2))
    else:
        console = report.console()
        for outcome in outcomes:
            report.show(outcome, console)
        if compare:
            report.show_comparison(outcomes[0], outcomes[1], console)
    if save is not None:
        for line in report.save(outcomes[0], save):
            click.echo(line, err=as_json)
    if html is not None:
        from gpututor.run import report_html

        html.write_text(report_html.page(outcomes), encoding="utf-8")
        click.echo(f"The report is in {html}.", err=as_json)
    sys.stdout.flush()
    return outcomes
