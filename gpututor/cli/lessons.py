"""`gpututor lessons`: serve the course on this machine and say where it is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import click

from gpututor.errors import GpututorError
from gpututor.lab.processes import import_path
from gpututor.paths import lessons_dir

DEFAULT_PORT = 2718  # marimo's own
N_PORTS_TRIED = 50
START_BUDGET_S = 60.0  # a cold disk and a slow laptop; the server usually answers after one second


class CourseNotServed(GpututorError, RuntimeError):
    """The server of the course did not start, or its port is taken."""


@click.command("lessons")
@click.option("--port", type=click.IntRange(1, 65535), help=f"Port; {DEFAULT_PORT} or the next free one by default.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for a class.")
@click.option("--no-browser", is_flag=True, help="Print the address and open nothing.")
@click.option("--check", is_flag=True, help="Start the course, see that it answers, and stop.")
def lessons_command(port: int | None, host: str, no_browser: bool, check: bool) -> None:
    """Open the course in a browser; Ctrl-C ends it."""
    folder = lessons_dir()
    port = free_port(host, port)
    address = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"  # noqa: S104  compared, not bound
    # in a session of its own, so that Ctrl-C reaches us alone and the server is asked to end quietly
    command = server_command(folder, host, port, headless=no_browser or check)
    end_on_signals()
    server = subprocess.Popen(command, start_new_session=True, env=server_environment())
    try:
        wait_until_served(address, server)
        n_lessons = len(list(folder.glob("[0-9][0-9]_*.py")))
        if check:
            click.echo(f"The course answers at {address}: {n_lessons} lessons from {folder}.")
            return
        click.echo(f"The course is open at {address} (Ctrl-C ends it).")
        sys.stdout.flush()
        status = server.wait()
        if status:
            raise CourseNotServed(f"the server of the course ended with status {status}; start it again")
    except KeyboardInterrupt:
        click.echo("The course is closed.")
    finally:
        stop(server)


def end_on_signals() -> None:
    """Let a closed terminal or a polite kill end the server too, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP", "SIGINT"):  # SIGINT too: a shell that starts us in the background ignores it
        if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
            signal.signal(getattr(signal, name), interrupt)


def server_command(folder: Path, host: str, port: int, *, headless: bool) -> list[str]:
    """The command line of the server, run by this same Python."""
    command = [sys.executable, "-m", "gpututor.serving", str(folder), "--host", host, "--port", str(port)]
    return [*command, *(["--headless"] if headless else [])]


def server_environment() -> dict[str, str]:
    """What the server's process starts with: this one's environment, and where it found gpututor."""
    path = import_path()
    return {**os.environ} if path is None else {**os.environ, "PYTHONPATH": path}


def free_port(host: str, wanted: int | None) -> int:
    """`wanted` if it is free; without a wish the first free port from 2718 on.

    Raises:
        CourseNotServed: the wanted port is taken, or fifty in a row are.
    """
    candidates = [wanted] if wanted else range(DEFAULT_PORT, DEFAULT_PORT + N_PORTS_TRIED)
    for port in candidates:
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except PermissionError as error:
            raise CourseNotServed(
                f"port {port} is not ours to open ({error.strerror}); choose one above 1023"
            ) from error
        except socket.gaierror as error:
            raise CourseNotServed(f"no address is called {host!r}; use 127.0.0.1 or one of this machine") from error
        except OSError:
            continue
        else:
            return port
    seen = f"port {wanted} on {host} is" if wanted else f"ports {candidates[0]} to {candidates[-1]} on {host} are"
    raise CourseNotServed(f"{seen} taken or not ours; choose another with --port")


def wait_until_served(address: str, server: subprocess.Popen[bytes]) -> None:
    """Return when the address answers.

    Raises:
        CourseNotServed: the server ended, or did not answer in a minute.
    """
    opener = build_opener(ProxyHandler({}))  # a proxy knows nothing of this machine
    deadline = time.monotonic() + START_BUDGET_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise CourseNotServed(f"the server of the course ended at once with status {server.returncode}; see above")
        try:
            with opener.open(address, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.1)
    raise CourseNotServed(
        f"the server of the course did not answer in {START_BUDGET_S:.0f} s; is the machine overloaded?"
    )


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, by force where it does not listen."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
