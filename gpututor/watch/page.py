"""The watch as a page on this machine: one file of ours, which asks this process for new readings and nobody else.

It listens on 127.0.0.1 only, and answers only requests that name this machine, so that no other site's page can read
the gauges through a name that it points here.
"""

from __future__ import annotations

import errno
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gpututor.errors import PageNotServed
from gpututor.watch.files import as_data
from gpututor.watch.history import History
from gpututor.watch.meaning import clocks_sentence, utilization_sentence, verdict
from gpututor.watch.screen import busiest_line, cpu_line, figures, missing, no_gpu_line, processes_line, sentence
from gpututor.watch.source import Device, Reading

HOST = "127.0.0.1"
FIRST_PORT, N_PORTS_TRIED = 2780, 50
"""Our choice: beside the course's 2718, and free on most machines."""

FILE = Path(__file__).with_name("page.html")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


class Page:
    """A server in a thread, until it is closed. `note` gives it readings."""

    def __init__(self, port: int | None = None) -> None:
        self._lock = threading.Lock()
        self._history = History()
        self._server = _listening(port)
        self._server.page = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="gpututor-page", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://{HOST}:{self.port}"

    def note(self, reading: Reading) -> None:
        """Take one reading."""
        with self._lock:
            self._history.note(reading)

    def close(self) -> None:
        """Serve no more; the thread ends."""
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()

    def told(self, since_s: float) -> dict[str, object]:
        """What the page is told: readings after `since_s`, and the newest one in words."""
        with self._lock:
            readings = [reading for reading in self._history.readings if reading.time_s > since_s]
            newest = self._history.readings[-1] if self._history.readings else None
            words = None if newest is None else in_words(newest, self._history)
        return {"readings": [as_data(reading) for reading in readings], "words": words}


def in_words(reading: Reading, history: History) -> dict[str, object]:
    """The sentences of one reading, for a page that computes none of its own."""
    return {
        "no_gpu": no_gpu_line(reading) if reading.no_gpu else None,
        "devices": {device.key: _device_words(device, reading, history) for device in reading.devices},
        "cpu": cpu_line(reading.cpu),
        "busiest": busiest_line(reading.cpu.busiest),
    }


def _device_words(device: Device, reading: Reading, history: History) -> dict[str, object]:
    return {
        "utilization": utilization_sentence(device),
        "figures": sentence(figures(device)),
        "clocks": clocks_sentence(device) if device.sm_clock_hz is not None else "",
        "processes": processes_line(device.processes) if device.processes and not device.simulated else "",
        "missing": list(missing(device)),
        "verdict": verdict(history.smoothed(device), reading.cpu).value,
    }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    page: Page


def _listening(port: int | None) -> _Server:
    ports = range(port, port + 1) if port is not None else range(FIRST_PORT, FIRST_PORT + N_PORTS_TRIED)
    for each in ports:
        try:
            return _Server((HOST, each), _Answer)
        except PermissionError as error:
            raise PageNotServed(f"port {each} is not ours to open; choose one above 1023 with --port") from error
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise PageNotServed(f"no page can be served on {HOST}:{each} ({error.strerror})") from error
    taken = f"port {port} is" if port is not None else f"ports {ports[0]} to {ports[-1]} are"
    raise PageNotServed(f"{taken} taken; choose another with --port")


class _Answer(BaseHTTPRequestHandler):
    server: _Server
    server_version = "gpututor"
    sys_version = ""

    def do_GET(self) -> None:  # the name that http.server calls
        """The page, or readings since the time that is asked for."""
        asked = urlsplit(self.path)
        if self.headers.get("Host", "").rpartition(":")[0] not in (HOST, "localhost"):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This page answers only to this machine's own name.")
        elif asked.path == "/":
            self._send(HTTPStatus.OK, "text/html", FILE.read_bytes())
        elif asked.path == "/readings":
            since = parse_qs(asked.query).get("since", ["0"])[0]
            told = self.server.page.told(_number(since))
            self._send(HTTPStatus.OK, "application/json", json.dumps(told).encode())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"Only / and /readings are here.")

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:  # the tab was closed meanwhile
            return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its parent's name for it
        """Nothing: the terminal belongs to the watch."""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
