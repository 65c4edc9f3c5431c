"""`gpututor submit`: the answers of a progress file as one file to hand in."""

from __future__ import annotations

from pathlib import Path

import click

from gpututor.errors import SubmissionRefused
from gpututor.exercises import submission
from gpututor.store import ANYBODY, Store


@click.command("submit")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
@click.option("--learner", default="", help="The id under which your instructor knows you.")
@click.option("--name", default="", help="Your name.")
def submit_command(out: Path, learner: str, name: str) -> None:
    """Save your answers to the course's exercises as one file.

    They are those kept for --learner on this machine, else those given without a name. Verdicts are not in the file.
    """
    if max(len(learner), len(name)) > submission.MAX_NAME:
        raise click.UsageError(f"an id and a name have {submission.MAX_NAME} characters at most")
    if not out.parent.is_dir():
        raise click.ClickException(f"there is no folder {out.parent} to save the answers in")
    store = Store(learner)
    if not store.path.exists():
        store = Store()
    if store.trouble:
        click.echo(store.trouble, err=True)
    _only_over_a_submission(out)
    collected = submission.collect(store, learner.strip(), name.strip())
    try:
        submission.save(collected, out)
    except OSError as error:
        raise click.ClickException(f"the answers can't be written to {out} ({error.strerror or error})") from error
    whose = "given without a name" if store.learner == ANYBODY else f"of {store.learner}"
    n = len(collected.answers)
    click.echo(f"{n} answer{'' if n == 1 else 's'} {whose} saved in {out}, for {collected.learner_id}.")
    if not learner:
        click.echo("To hand it in, save it again with --learner and the id your instructor has given you.", err=True)


def _only_over_a_submission(out: Path) -> None:
    """An older submission may be replaced, anything else not."""
    if not out.exists():
        return
    try:
        submission.read(out)
    except SubmissionRefused:
        raise click.ClickException(f"{out} is there already and is no submission; choose another name") from None
