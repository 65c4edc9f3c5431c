"""A real browser for tests of pages: start a server, open a lesson, wait for a computed value, look at what it did."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode, urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERVER_STARTS_WITHIN_S = 60.0
CELL_SHOWS_WITHIN_S = 30.0
HARMLESS = re.compile(r"favicon|ResizeObserver loop", re.IGNORECASE)
"""Console lines that say nothing about a lesson."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Server:
    """A running course: where it listens and what it wrote."""

    url: str
    log_path: Path
    pid: int

    def address(self, file: str | None = None, **query: str) -> str:
        """The address of a notebook of the served folder, or of the only one; None means the gallery."""
        asked = ({"file": file} if file else {}) | query
        return self.url + (f"/?{urlencode(asked)}" if asked else "/")

    @property
    def log(self) -> str:
        """What the server wrote so far."""
        return self.log_path.read_text(errors="replace")


@contextmanager
def served(target: Path, scratch: Path, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """`marimo run` on a notebook or a folder, on a free port; its log goes to `scratch`. Ended on the way out."""
    port = _free_port()
    log_path = scratch / "server.log"
    command = [sys.executable, "-m", "marimo", "run", str(target), "--headless", "--no-token"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, cwd=scratch
        )
        try:
            server = Server(f"http://127.0.0.1:{port}", log_path, process.pid)
            _wait_until_up(server, process)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=10)


def _wait_until_up(server: Server, process: subprocess.Popen[bytes]) -> None:
    """Return once the server answers; fail with its log when it ends or stays silent."""
    deadline = time.monotonic() + SERVER_STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"the server did not answer within {SERVER_STARTS_WITHIN_S:g} s; it wrote:\n{server.log[-2000:]}")


@contextmanager
def browser(chromium: str) -> Iterator[Browser]:
    """A headless browser, from its path; the fixture `chromium` finds it, or skips or fails the test."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


@dataclass(slots=True)
class Visit:
    """One open page, and what happened in it since it was opened."""

    page: Page
    own_host: str
    errors: list[str] = field(default_factory=list)  # console errors and uncaught exceptions
    elsewhere: list[str] = field(default_factory=list)  # requests to other hosts

    def cell(self, name: str) -> Locator:
        """The output of the cell of this name."""
        return self.page.locator(f'[data-cell-name="{name}"]')

    def wait_for(self, cell: str, text: str | re.Pattern[str], within_s: float = CELL_SHOWS_WITHIN_S) -> Locator:
        """Wait until a cell shows this text; a computed one, since constant Markdown is there before the kernel."""
        found = self.cell(cell).filter(has_text=text)
        found.first.wait_for(state="visible", timeout=within_s * 1000)
        return found.first

    def wait_for_chart(self, cell: str, within_s: float = CELL_SHOWS_WITHIN_S) -> Locator:
        """Wait until a cell shows a drawn chart."""
        chart = self.cell(cell).locator(".vega-embed svg, .vega-embed canvas")
        chart.first.wait_for(state="visible", timeout=within_s * 1000)
        return chart.first

    def height(self, cell: str) -> float:
        """Height of a cell's output in pixels; 0 where it shows nothing."""
        boxes = [each.bounding_box() for each in self.cell(cell).all()]
        return max((box["height"] for box in boxes if box), default=0.0)

    def overflow_px(self) -> float:
        """How many pixels of the page stick out to the right; 0 when nothing scrolls sideways."""
        return float(
            self.page.evaluate(
                "Math.max(0, ...[document.documentElement, document.querySelector('#App')]"
                ".filter(e => e).map(e => e.scrollWidth - e.clientWidth))"
            )
        )

    def settle(self, quiet_s: float = 0.4, within_s: float = CELL_SHOWS_WITHIN_S) -> None:
        """Wait until nothing on the page has changed for a while, as a reader does before the next click."""
        seen, since_s, deadline = None, time.monotonic(), time.monotonic() + within_s
        while time.monotonic() < min(deadline, since_s + quiet_s):
            now = self.page.evaluate("document.querySelector('#App')?.innerHTML")
            if now != seen:
                seen, since_s = now, time.monotonic()
            self.page.wait_for_timeout(50)

    def close(self) -> None:
        """Close the page and forget its context."""
        self.page.context.close()

    def tall_screenshot(self, path: Path) -> Path:
        """A picture of the whole page. marimo scrolls inside its own box, so the window is made as tall as that."""
        before = self.page.viewport_size or {"width": 1200, "height": 800}
        tall = self.page.evaluate(
            "Math.max(document.body.scrollHeight, document.querySelector('#App')?.scrollHeight ?? 0)"
        )
        self.page.set_viewport_size({"width": before["width"], "height": min(int(tall), 12_000)})
        self.page.wait_for_timeout(400)  # charts draw themselves again at the new size
        self.page.screenshot(path=path)
        self.page.set_viewport_size(before)
        return path


def visit(
    browser: Browser,
    address: str,
    *,
    width: int = 1200,
    height: int = 800,
    theme: Literal["light", "dark"] = "light",
) -> Visit:
    """Open an address in a fresh browser context and write down errors and requests to other hosts."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    seen = Visit(context.new_page(), urlsplit(address).netloc)

    def asked(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != seen.own_host:
            seen.elsewhere.append(url)

    seen.page.on("request", lambda request: asked(request.url))
    seen.page.on("websocket", lambda socket: asked(socket.url))
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on(
        "console",
        lambda line: seen.errors.append(line.text) if line.type == "error" and not HARMLESS.search(line.text) else None,
    )
    seen.page.goto(address)
    return seen
