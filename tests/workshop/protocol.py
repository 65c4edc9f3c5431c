"""A reader without a browser: speaks marimo's protocol to a workshop's server, presses its buttons, reads its cells."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

WAIT_S = 120.0
_ELEMENT = re.compile(
    r"<marimo-ui-element[^>]*object-id=['\"]([^'\"]+)['\"][^>]*>\s*<(marimo-[a-z-]+)([^>]*)>", re.DOTALL
)
_TOKEN = re.compile(r'<marimo-server-token data-token="([^"]*)"')


class PageDied(Exception):
    """The server hung up, or a cell of the page raised; the message says which."""


@dataclass(slots=True)
class Answered:
    """What the server said to one request."""

    status: int
    headers: dict[str, str]
    body: str


def ask(url: str, path: str, key: str | None = None, **headers: str) -> Answered:
    """One GET, with the key in its cookie."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=WAIT_S)
    try:
        connection.request("GET", path, headers=headers | ({"Cookie": f"gpututor-key={key}"} if key else {}))
        got = connection.getresponse()
        return Answered(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode("utf-8", "replace"))
    finally:
        connection.close()


@dataclass
class OpenPage:
    """One lesson open in one reader's name. `cells` holds each cell's newest output as HTML, by the cell's name."""

    url: str
    key: str
    file: str
    query: dict[str, str] = field(default_factory=dict)
    session: str = field(default_factory=lambda: f"s_{secrets.token_hex(6)}")

    def __post_init__(self) -> None:
        self.cells: dict[str, str] = {}
        self.ever_shown: list[str] = []
        self.trouble: str | None = None
        self._names: dict[str, str] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._token = ""
        self._clicks: dict[str, int] = {}

    def open(self) -> OpenPage:
        """Fetch the page, connect, and begin to listen."""
        asked = urlencode({"file": self.file} | self.query)
        page = ask(self.url, f"/?{asked}", self.key)
        found = _TOKEN.search(page.body)
        if page.status != 200 or found is None:
            raise PageDied(f"{self.file} answered {page.status}")
        self._token = found[1]
        self._socket = connect(
            f"ws://{urlsplit(self.url).netloc}/ws?{asked}&session_id={self.session}",
            additional_headers={"Cookie": f"gpututor-key={self.key}"},
            max_size=None,
            open_timeout=WAIT_S,
            ping_timeout=None,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def _listen(self) -> None:
        try:
            for text in self._socket:
                self._hear(json.loads(text))
            self._end("the server closed the connection")
        except (WebSocketException, OSError) as error:
            self._end(f"the connection broke: {error}")

    def _end(self, why: str) -> None:
        with self._changed:
            self.trouble = self.trouble or (None if self._closing else why)
            self._changed.notify_all()

    def _hear(self, message: dict[str, Any]) -> None:
        told = message.get("data", {})
        with self._changed:
            if message["op"] == "kernel-ready":
                self._names = dict(zip(told["cell_ids"], told["names"], strict=True))
            elif message["op"] == "cell-op" and told.get("output") is not None:
                output, name = told["output"], self._names.get(told["cell_id"], told["cell_id"])
                if output["channel"] == "marimo-error":
                    problems = str(output["data"])
                    if "ancestor" not in problems:  # a stopped cell's followers say so, and that is no failure
                        self.trouble = self.trouble or f"cell {name}: {problems[:300]}"
                elif isinstance(output["data"], str):
                    self.cells[name] = output["data"]
                    self.ever_shown.append(output["data"])
            self._changed.notify_all()

    def wait_for(self, cell: str, is_so: str | Callable[[str], bool], within_s: float = WAIT_S) -> float:
        """Seconds until a cell shows a text, or something that a function likes.

        Raises:
            PageDied: the page failed, or it took too long.
        """
        likes = is_so if callable(is_so) else (lambda shown: is_so in shown)
        began_s = time.perf_counter()
        with self._changed:
            came = self._changed.wait_for(lambda: self.trouble or likes(self.cells.get(cell, "")), within_s)
        if self.trouble or not came:
            raise PageDied(
                self.trouble or f"{self.file}, cell {cell}: not in {within_s:g} s: {self.cells.get(cell)!r:.500}"
            )
        return time.perf_counter() - began_s

    def element(self, cell: str, kind: str, nth: int = 0) -> str:
        """The name of the nth control of a kind, such as "marimo-radio", in a cell."""
        found = [name for name, tag, _ in _ELEMENT.findall(self.cells.get(cell, "")) if tag == kind]
        if nth >= len(found):
            raise PageDied(f"{self.file}, cell {cell}: no {kind} number {nth} in {self.cells.get(cell)!r:.800}")
        return str(found[nth])

    def put(self, element: str, value: object) -> None:
        """Give a control a value, as a browser does."""
        body = json.dumps({"objectIds": [element], "values": [value]})
        status = self.post("/api/kernel/set_ui_element_value", body)
        if status != 200:
            raise PageDied(f"{self.file}: a control's value was answered with {status}")

    def press(self, element: str) -> None:
        """Press a button."""
        self._clicks[element] = self._clicks.get(element, 0) + 1
        self.put(element, self._clicks[element])

    def post(self, path: str, body: str, *, session: str | None = None, key: str | None = None) -> int:
        """The status of a POST in this page's name, or with somebody else's session or key."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=WAIT_S)
        headers = {"Content-Type": "application/json", "Marimo-Server-Token": self._token}
        headers |= {"Marimo-Session-Id": session or self.session, "Cookie": f"gpututor-key={key or self.key}"}
        try:
            connection.request("POST", path, body, headers)
            got = connection.getresponse()
            got.read()
            return got.status
        finally:
            connection.close()

    def close(self) -> None:
        """Close the tab."""
        self._closing = True
        self._socket.close()
