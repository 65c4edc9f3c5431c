"""`gpututor certificate` and `gpututor cheatsheet`: the two pages to print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpututor.results import write_at_once
from gpututor.store import Store

if TYPE_CHECKING:
    from gpututor.page.certificate import Graded

FORMATS = ("html", "md", "json")
HEAD_BYTES = 4096  # in which each of our pages says what it is
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("cheatsheet")
@click.option("--out", type=_FILE, help="The file to write; without it, the sheet is printed.")
@click.option("--format", "wanted", type=click.Choice(FORMATS), help="By the file's name, or md, unless given.")
def cheatsheet_command(out: Path | None, wanted: str | None) -> None:
    """The causes we know on one page: symptom, gauge, cause, what to change, lesson.

    It is made from what findings say, so it says the same. HTML is a page to print, on A4 or Letter.
    """
    from gpututor.page import cheat_sheet

    kind = wanted or (out.suffix.lstrip(".").lower() if out else "md")
    if kind not in FORMATS:
        raise click.UsageError(f"{out} could be any of {', '.join(FORMATS)}; say which with --format")
    make = {"html": cheat_sheet.as_html, "md": cheat_sheet.as_markdown, "json": cheat_sheet.as_json}[kind]
    if out is None:
        click.echo(make(), nl=False)
        return
    save(out, make(), cheat_sheet.KIND)
    click.echo(f"The cheat sheet is in {out}." + (" Open it in a browser to print it." if kind == "html" else ""))


@click.command("certificate")
@click.option("--out", required=True, type=_FILE, help="The HTML file to write; open it in a browser to print it.")
@click.option("--name", help="Your name as it should stand there; by default as typed on the front page.")
@click.option("--learner", default="", help="Whose progress on this machine; without it, that of nobody's name.")
@click.option(
    "--grades", type=_FILE, help="results.json of gpututor grade: an instructor's points instead of your own."
)
def certificate_command(out: Path, name: str | None, learner: str, grades: Path | None) -> None:
    """What you answered, when, and the points, as a page to print on A4 or Letter.

    It says in plain words that it is self-graded, unless an instructor's grades are given, and how much of the course
    it is about. Nothing is sent anywhere.
    """
    from gpututor.exercises.submission import MAX_NAME
    from gpututor.page.certificate import KIND, certificate, in_a_sentence
    from gpututor.page.front import NAME_OF
    from gpututor.page.standing import standing_of

    if name is not None and len(name) > MAX_NAME:
        raise click.UsageError(f"a name has {MAX_NAME} characters at most")
    store = Store(learner)
    if store.trouble:
        click.echo(store.trouble, err=True)
    graded = _graded(grades, store)
    now = standing_of(store)
    kept = store.get(*NAME_OF)
    typed = name if name is not None else kept if isinstance(kept, str) else ""
    save(out, certificate(now, typed, store.learner, store.time(), graded), KIND)
    click.echo(f"The certificate is in {out}. {in_a_sentence(now, graded)}")


def _graded(grades: Path | None, store: Store) -> Graded | None:
    if grades is None:
        return None
    from gpututor.grading.given import graded

    return graded(grades, store.learner)


def save(out: Path, text: str, kind: str) -> None:
    """Write a page. An older one of its kind may be replaced, anything else not.

    Raises:
        click.ClickException: something else is there, or the file can't be written.
    """
    try:
        if out.exists():
            with out.open("rb") as file:
                head = file.read(HEAD_BYTES)
            if kind.encode() not in head or b"gpututor" not in head:
                raise click.ClickException(f"{out} is there already and is no {kind}; choose another name")
        if not out.parent.is_dir():
            raise click.ClickException(f"there is no folder {out.parent} to save the {kind} in")
        write_at_once(out, text)
    except OSError as error:
        raise click.ClickException(f"the {kind} can't be written to {out} ({error.strerror or error})") from error
