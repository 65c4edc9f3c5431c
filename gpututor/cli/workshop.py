"""`gpututor workshop`: one server for a class, the addresses to hand out, and the answers to collect."""

from __future__ import annotations

import csv
import io
import json
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from filelock import FileLock, Timeout

from gpututor.cli.lessons import (
    DEFAULT_PORT,
    CourseNotServed,
    end_on_signals,
    free_port,
    server_environment,
    stop,
    wait_until_served,
)
from gpututor.paths import home, lessons_dir
from gpututor.results import write_at_once

if TYPE_CHECKING:
    from gpututor.workshop.keys import Holder, Keys

ADDRESS_FILE = "address.txt"
FRONT_PAGE = "00_start_here.py"
ANYWHERE = ("0.0.0.0", "::")  # noqa: S104  compared, not bound
_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)

roster_option = click.option("--roster", type=_FILE, help="The class: a CSV file with the columns id and name.")
state_option = click.option(
    "--state", type=_FOLDER, help="Folder of keys and progress; one in your own data by default."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("workshop", invoke_without_command=True)
@roster_option
@state_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for a class.")
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(1, 65535), help="Port.")
@click.option("--runners", type=click.IntRange(1, 64), help="Experiments and checks at once; cores − 1 by default.")
@click.option("--limits-only", is_flag=True, help="Check learners' code in no sandbox, where bubblewrap doesn't work.")
@json_option
@click.pass_context
def workshop_command(
    ctx: click.Context,
    roster: Path | None,
    state: Path | None,
    host: str,
    port: int,
    runners: int | None,
    limits_only: bool,
    as_json: bool,
) -> None:
    """Serve the course to a class: a key and a progress of their own for each learner, one line for all runs.

    Hand out the addresses of `gpututor workshop keys`. Your own one opens the course with notes, and /workshop shows
    who is where. Ctrl-C ends it; progress stays.
    """
    if ctx.invoked_subcommand is None:
        from gpututor.workshop.limits import default_runners

        _serve(_Asked(_folder(state), host, port, runners or default_runners(), limits_only), roster, as_json)


@workshop_command.command("keys")
@roster_option
@state_option
@click.option("--address", help="Where the class reaches the server, such as https://gpu.example.org/.")
@click.option("--out", type=_FILE, help="Write a CSV file, which only you can read, instead of printing.")
@click.option("--new", "anew", metavar="ID", help="Give this learner a new key; the old one opens nothing any more.")
@json_option
def keys_command(
    roster: Path | None, state: Path | None, address: str | None, out: Path | None, anew: str | None, as_json: bool
) -> None:
    """Each learner's own address, to hand out; the first is yours.

    With --roster, who is new gets a key and who has gone loses theirs, while the server runs.
    """
    from gpututor.workshop.keys import issue, read
    from gpututor.workshop.roster import Learner
    from gpututor.workshop.roster import read as read_roster

    folder = _folder(state)
    if roster is not None:
        keys = issue(read_roster(roster), folder, anew=anew)
    elif anew is not None:
        keys = issue([Learner(one.id, one.name) for one in read(folder).learners], folder, anew=anew)
    else:
        keys = read(folder)
    rows = _addresses(keys, address or _kept_address(folder))
    text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n" if as_json else _csv(rows)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        write_at_once(out, text)  # a temporary file's rights: its owner's alone
    except OSError as error:
        raise click.ClickException(f"the addresses can't be written to {out} ({error.strerror or error})") from error
    click.echo(f"{len(rows)} addresses, yours first, in {out}.")


@workshop_command.command("collect")
@state_option
@click.option("--out", required=True, type=_FOLDER, help="The folder to write into, such as submissions/.")
@json_option
def collect_command(state: Path | None, out: Path, as_json: bool) -> None:
    """Save every learner's answers as a file each, as `gpututor grade` reads them. The server may go on meanwhile."""
    from gpututor.workshop.collecting import collect
    from gpututor.workshop.keys import read

    folder = _folder(state)
    try:
        found = collect(folder, read(folder).learners, out)
    except OSError as error:
        raise click.ClickException(f"{out} can't be written ({error.strerror or error})") from error
    if as_json:
        told = [{"id": each.id, "file": each.file and str(each.file), "n_answers": each.n_answers} for each in found]
        click.echo(json.dumps([one | {"why": each.why} for one, each in zip(told, found, strict=True)], indent=1))
        return
    for each in found:
        if each.file is None:
            click.echo(f"{each.id}: {each.why}", err=True)
    n_saved = sum(each.file is not None for each in found)
    n_answers = sum(each.n_answers for each in found)
    click.echo(f"{n_answers} answers of {n_saved} learners in {out}; {len(found) - n_saved} learners have none.")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the server is started with."""

    state: Path
    host: str
    port: int
    n_runners: int
    limits_only: bool

    @property
    def command(self) -> list[str]:
        """The command line of the server's process, run by this same Python."""
        command = [sys.executable, "-m", "gpututor.workshop.serve", "--state", str(self.state), "--host", self.host]
        command += ["--port", str(self.port), "--runners", str(self.n_runners), "--lessons", str(lessons_dir())]
        return [*command, *(["--limits-only"] if self.limits_only else [])]


def _serve(asked: _Asked, roster: Path | None, as_json: bool) -> None:
    from gpututor.workshop.apart import chosen
    from gpututor.workshop.keys import issue, read
    from gpututor.workshop.limits import limits
    from gpututor.workshop.roster import read as read_roster

    _, warning = chosen(limits_only=asked.limits_only)
    state = asked.state
    keys = read(state) if roster is None else issue(read_roster(roster), state)
    free_port(asked.host, asked.port)
    address = f"http://{_reached(asked.host)}:{asked.port}/"
    write_at_once(state / ADDRESS_FILE, address + "\n")
    end_on_signals()
    told = limits(asked.n_runners)
    said = {"address": address, "n_learners": len(keys.learners), "state": str(state), "limits": told.as_json()}
    try:
        with FileLock(state / "server.lock").acquire(timeout=0):
            _attend(asked, said | {"warning": warning} if as_json else _words(said, told.sentences, warning))
    except Timeout as error:
        raise CourseNotServed(f"another workshop serves from {state}; stop it, or name another --state") from error


def _words(said: dict[str, Any], sentences: tuple[str, ...], warning: str | None) -> str:
    n_learners, n_readers = said["n_learners"], said["limits"]["n_readers"]
    lines = [
        f"The workshop is open at {said['address']} for {n_learners} learners (Ctrl-C ends it).",
        "Each needs an address of their own, and so do you: gpututor workshop keys"
        + ("" if said["state"] == str(_folder(None)) else f" --state {said['state']}"),
        f"You see who is where at {said['address']}workshop",
        *sentences,
    ]
    if n_learners > n_readers:
        lines.append(f"Warning: {n_learners} learners are more than this machine has memory for ({n_readers}).")
    return "\n".join([*lines, *([f"Warning: {warning}"] if warning else [])])


def _attend(asked: _Asked, said: dict[str, Any] | str) -> None:
    """Start the server, say that it is open, and stay until it ends."""
    # in a session of its own, so that Ctrl-C reaches us alone and the server is asked to end quietly
    server = subprocess.Popen(asked.command, start_new_session=True, env=server_environment())
    try:
        wait_until_served(f"http://{_here(asked.host)}:{asked.port}/health", server)
        click.echo(said if isinstance(said, str) else json.dumps(said, indent=1))
        sys.stdout.flush()
        status = server.wait()
        if status:
            raise CourseNotServed(f"the workshop's server ended with status {status}; start it again")
    except KeyboardInterrupt:
        click.echo("The workshop is closed; progress is kept.", err=isinstance(said, dict))
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):  # a second one doesn't leave the server behind
            signal.signal(name, signal.SIG_IGN)
        stop(server)


def _folder(state: Path | None) -> Path:
    return (state or home() / "workshop").resolve()


def _kept_address(state: Path) -> str:
    """Where the server was last reached, or would be by default."""
    try:
        return (state / ADDRESS_FILE).read_text("utf-8").strip()
    except OSError:
        return f"http://127.0.0.1:{DEFAULT_PORT}/"


def _here(host: str) -> str:
    """What this machine itself calls a host that it listens on."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound
    return f"[{host}]" if ":" in host else host


def _reached(host: str) -> str:
    """What others call a host that listens everywhere: this machine's address on its network."""
    if host not in ANYWHERE:
        return _here(host)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation's own network: nothing is sent, a route is looked up
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def _addresses(keys: Keys, base: str) -> list[dict[str, str]]:
    from gpututor.workshop.keys import address

    def row(holder: Holder, **more: str) -> dict[str, str]:
        return {"id": holder.id, "name": holder.name, "address": address(base, holder, file=FRONT_PAGE, **more)}

    return [row(keys.instructor, instructor="1"), *(row(holder) for holder in keys.learners)]


def _csv(rows: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["id", "name", "address"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _no_formula(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _no_formula(value: str) -> str:
    """A cell that no spreadsheet takes for a formula.

    >>> _no_formula("=1+1"), _no_formula("Ann")
    ("'=1+1", 'Ann')
    """
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
