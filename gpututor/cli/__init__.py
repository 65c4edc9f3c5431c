"""The command `gpututor`: one module per group of commands, imported when one of them is called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from gpututor.errors import GpututorError, NotKnown

# The extension point: name of the command, its module and the function in it, one line of help.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "cards": ("gpututor.cli.hardware", "cards_command", "List the GPUs we know, or one with its sources."),
    "machines": ("gpututor.cli.hardware", "machines_command", "List rented and owned machines with their prices."),
    "run": ("gpututor.cli.run", "run_command", "Run your training script on a card that isn't there."),
    "explain": ("gpututor.cli.explain", "explain_command", "Why is it slow? Read a torch.profiler trace."),
    "watch": ("gpututor.cli.watch", "watch_command", "Watch GPU and CPU, and what their gauges mean."),
    "job": ("gpututor.cli.job", "job_command", "Train a job on a simulated machine; see where its time goes."),
    "history": ("gpututor.cli.history", "history_command", "Your runs: list, compare, plot, find what changed."),
    "bench": (
        "gpututor.cli.bench",
        "bench_command",
        "Measure how quick we are here, and how near to published speeds.",
    ),
    "calibrate": (
        "gpututor.cli.calibrate",
        "calibrate_command",
        "Measure this machine, to predict it better.",
    ),
    "record": (
        "gpututor.cli.record",
        "record_command",
        "Record the lessons' experiments on your own GPU.",
    ),
    "doctor": ("gpututor.cli.doctor", "doctor_command", "Is it running on the GPU, and is this machine healthy?"),
    "lessons": ("gpututor.cli.lessons", "lessons_command", "Open the course in a browser."),
    "check": ("gpututor.cli.check", "check_command", "Judge your answer to an exercise, without a browser."),
    "submit": ("gpututor.cli.submit", "submit_command", "Save your answers as one file to hand in."),
    "class": ("gpututor.cli.classes", "class_command", "Set up a class: roster, deadline, lessons."),
    "grade": ("gpututor.cli.grade", "grade_command", "Grade a class's submissions."),
    "workshop": (
        "gpututor.cli.workshop",
        "workshop_command",
        "Serve the course to a class, with a key for each learner.",
    ),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that `gpututor --version` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of this name.

        Raises:
            NotKnown: there is no such command; the message lists near matches.
        """
        if cmd_name not in COMMANDS:
            raise NotKnown("command", cmd_name, COMMANDS)
        module, function, _ = COMMANDS[cmd_name]
        command = getattr(import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from gpututor import __version__

        click.echo(f"gpututor {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Version.")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Find out why a GPU is only partly busy, what that costs, and what to change."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and end the process: 0 when done, 2 with one sentence on stderr when it can't be."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without µ shows ?, not a traceback
    try:
        status = group.main(arguments, prog_name="gpututor", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        sys.exit(130)
    except BrokenPipeError:  # `gpututor cards | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (click.ClickException, GpututorError) as error:
        sentence = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"gpututor: {sentence}", err=True)
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)
