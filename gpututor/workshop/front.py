"""What stands before marimo: it lets in who has a key, tells the page who that is, and keeps readers apart.

A key comes once, in the address, and from then on in a cookie that no script can read and no other site makes the
browser send. Only what a page of the course needs can be asked for, and each reader's connection is theirs alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from gpututor.readers import Reader
from gpututor.workshop import pages
from gpututor.workshop.board import Board
from gpututor.workshop.identity import ID, TEACHES
from gpututor.workshop.keys import Watched
from gpututor.workshop.visits import Visits

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "gpututor-key"
BOARD, BOARD_JSON = "/workshop", "/workshop.json"
HEALTH = "/health"
# What the pages and the gallery of marimo 0.25 ask for while a notebook is run as an app; the rest stays shut.
OPEN = frozenset(
    {"/", "/ws", "/favicon.ico", "/manifest.json", "/robots.txt", "/api/home/workspace_files", "/api/version"}
    | {f"/api/kernel/{name}" for name in ("set_ui_element_value", "set_model_value", "function_call")}
)
OPEN_BELOW = ("/assets/", "/@file/", "/public/", "/og/", "/files-", "/custom.css")
HEADERS = (
    (b"referrer-policy", b"same-origin"),  # no address of this course is told to another site
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
)
POLICY_VIOLATION = 1008


class Front:
    """The ASGI application around `app`."""

    def __init__(self, app: App, *, keys: Watched, visits: Visits, board: Board) -> None:
        self._app, self._keys, self._visits, self._board = app, keys, visits, board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or connection."""
        if scope["type"] == "http":
            await self._http(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, query = scope["path"], parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if path == HEALTH:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "GET" and any(name == "key" for name, _ in query):
            await self._enter(scope, query, send)
            return
        headers = _headers(scope)
        reader = self._reader(headers)
        if reader is None:
            await answer(send, 401, pages.sentence(pages.NO_KEY))
        elif path in (BOARD, BOARD_JSON):
            await self._show_board(path, reader, send)
        elif not _is_open(path):
            await answer(send, 404, pages.sentence(pages.ELSEWHERE))
        elif not self._may(scope["method"], headers, reader):
            await answer(send, 403, pages.sentence(pages.NO_KEY))
        else:
            self._visits.seen(reader.id)
            await self._app(_told(scope, reader), receive, send)

    def _may(self, method: str, headers: Mapping[str, str], reader: Reader) -> bool:
        """Whether a request comes from our own page, and is about no connection of somebody else's."""
        if method not in ("GET", "HEAD") and not _same_site(headers):
            return False
        session = headers.get("marimo-session-id")
        return not session or self._visits.is_of(session, reader.id)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        reader = self._reader(headers)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        session = query.get("session_id", "")
        fits = scope["path"] == "/ws" and _same_site(headers) and session
        if reader is None or not fits or not self._visits.open(session, reader.id, query.get("file", "")):
            await receive()  # the wish to connect
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        try:
            await self._app(_told(scope, reader), receive, send)
        finally:
            self._visits.close(session)

    async def _enter(self, scope: Scope, query: list[tuple[str, str]], send: Send) -> None:
        key = next(value for name, value in query if name == "key")
        if self._keys.now().who(key) is None:
            await answer(send, 401, pages.sentence(pages.KEY_UNKNOWN))
            return
        rest = urlencode([(name, value) for name, value in query if name != "key"])
        base = scope.get("root_path", "").rstrip("/")
        headers = _headers(scope)
        https = scope.get("scheme") == "https" or headers.get("x-forwarded-proto") == "https"
        cookie = f"{COOKIE}={key}; Path={base or '/'}; HttpOnly; SameSite=Strict; Max-Age={7 * 86_400}"
        await answer(
            send,
            200,
            pages.welcome(f"{base}/" + (f"?{rest}" if rest else "")),
            more=((b"set-cookie", (cookie + ("; Secure" if https else "")).encode("latin-1")),),
        )

    async def _show_board(self, path: str, reader: Reader, send: Send) -> None:
        if not reader.teaches:
            await answer(send, 403, pages.sentence(pages.NOT_YOURS))
            return
        told = await asyncio.to_thread(self._board.now, self._keys.now())
        if path == BOARD_JSON:
            await answer(send, 200, json.dumps(told.as_json(), indent=1).encode(), kind=b"application/json")
        else:
            await answer(send, 200, told.as_page())

    def _reader(self, headers: Mapping[str, str]) -> Reader | None:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return None
        return None if cookie is None else self._keys.now().who(cookie.value)


def _told(scope: Scope, reader: Reader) -> Scope:
    """The request with its reader written where marimo hands it to the page."""
    return {**scope, "meta": {ID: reader.id, TEACHES: reader.teaches}}


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _same_site(headers: Mapping[str, str]) -> bool:
    """Whether the page that asks is ours: a browser says where it is from, a program may leave that out."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc in (headers.get("host"), headers.get("x-forwarded-host"))


def _is_open(path: str) -> bool:
    return path in OPEN or (path.startswith(OPEN_BELOW) and ".." not in path.split("/"))


async def answer(
    send: Send,
    status: int,
    body: bytes,
    *,
    kind: bytes = b"text/html; charset=utf-8",
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send one whole answer, which nobody may keep."""
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return wrapped
