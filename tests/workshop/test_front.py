"""The door: who comes in, what they can ask for, and whose connection is whose. marimo is played by an echo."""

from __future__ import annotations

import asyncio
import json

import pytest

from gpututor import readers
from gpututor.page import endings
from gpututor.readers import Reader
from gpututor.store import Store
from gpututor.workshop.board import Board
from gpututor.workshop.front import Front
from gpututor.workshop.identity import ID
from gpututor.workshop.keys import Watched, issue
from gpututor.workshop.roster import Learner
from gpututor.workshop.visits import Visits

CLASS = (Learner("ann", "Ann <b>"), Learner("bob", "Bob"))


class Echo:
    """The application behind the door: answers 200 and notes what reached it."""

    def __init__(self):
        self.reached = []

    async def __call__(self, scope, receive, send):
        self.reached.append((scope["path"], scope.get("meta", {}).get(ID)))
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"echo"})
        else:
            await receive()
            await send({"type": "websocket.accept"})


class NoLab:
    """A lab in which nothing runs."""

    worker_pids = ()

    class line:  # noqa: N801
        seen = staticmethod(list)


class Door:
    """The front with a class's keys, and what it answers."""

    def __init__(self, state):
        self.keys = issue(CLASS, state)
        self.app, visits = Echo(), Visits()
        self.front = Front(self.app, keys=Watched(state), visits=visits, board=Board(visits, NoLab(), 1))

    def key(self, who):
        return next(holder.key for holder in self.keys if holder.id == who)

    def ask(self, path, who=None, *, kind="http", method="GET", query="", **headers):
        """Status, headers and body of an HTTP answer, or the first message to a connection."""
        sent = []
        told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        if who is not None:
            told.append((b"cookie", f"other=1; gpututor-key={self.key(who)}".encode()))
        scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": told, "method": method}

        async def receive():
            return {"type": "websocket.connect"}

        async def send(message):
            sent.append(message)

        asyncio.run(self.front(scope, receive, send))
        if kind == "websocket":
            return sent[0]["type"]
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]).decode()

    def connect(self, who, session, **headers):
        return self.ask("/ws", who, kind="websocket", query=f"session_id={session}&file=01_the_gauge.py", **headers)


@pytest.fixture
def door(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Door(tmp_path)


@pytest.mark.parametrize("path", ["/", "/assets/index.js", "/workshop", "/api/kernel/run", "/@file/1-x.csv"])
def test_without_a_key_nothing_opens(door, path):
    status, _, body = door.ask(path)

    assert (status, door.app.reached) == (401, [])
    assert "Open this course from your own address" in body


def test_a_connection_without_a_key_is_refused(door):
    assert door.ask("/ws", kind="websocket", query="session_id=s_1") == "websocket.close"
    assert door.app.reached == []


def test_a_wrong_key_opens_nothing(door):
    status, headers, body = door.ask("/", query="key=wrong")

    assert (status, "set-cookie" in headers) == (401, False)
    assert "lets nobody in any more" in body


def test_a_key_is_changed_for_a_cookie_that_no_script_and_no_other_site_can_use(door):
    status, headers, _ = door.ask("/", query=f"file=01_the_gauge.py&key={door.key('ann')}")
    parts = headers["set-cookie"].split("; ")

    assert status == 200
    assert parts[0] == f"gpututor-key={door.key('ann')}"
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)


def test_the_page_behind_a_key_leads_on_without_it(door):
    _, _, body = door.ask("/", query=f"file=01_the_gauge.py&key={door.key('ann')}")

    assert "url=/?file=01_the_gauge.py" in body
    assert door.key("ann") not in body


def test_over_https_the_cookie_stays_there(door):
    _, headers, _ = door.ask("/", query=f"key={door.key('ann')}", x_forwarded_proto="https")

    assert "; Secure" in headers["set-cookie"]


def test_the_page_learns_from_the_key_who_reads(door):
    door.ask("/", "bob", query="file=01_the_gauge.py&learner=ann")

    assert door.app.reached == [("/", "bob")]


def test_no_address_is_told_to_other_sites(door):
    assert {door.ask("/", who)[1]["referrer-policy"] for who in (None, "ann")} == {"same-origin"}


@pytest.mark.parametrize(
    "path", ["/api/kernel/run", "/api/files/list_files", "/terminal/ws", "/api/home/running_notebooks"]
)
def test_what_no_page_needs_is_shut(door, path):
    assert door.ask(path, "ann", method="POST")[0] == 404
    assert door.app.reached == []


def test_a_button_is_pressed_in_ones_own_session_only(door):
    assert door.connect("ann", "s_1") == "websocket.accept"
    path = "/api/kernel/set_ui_element_value"

    assert door.ask(path, "ann", method="POST", marimo_session_id="s_1")[0] == 200
    assert door.ask(path, "bob", method="POST", marimo_session_id="s_1")[0] == 403


def test_nobody_connects_to_somebody_elses_session(door):
    door.connect("ann", "s_1")

    assert (door.connect("bob", "s_1"), door.connect("ann", "s_1")) == ("websocket.close", "websocket.accept")


def test_another_sites_page_can_neither_connect_nor_press(door):
    door.connect("ann", "s_1")
    there = {"host": "class.example.org", "origin": "https://elsewhere.example.org"}

    assert door.connect("ann", "s_2", **there) == "websocket.close"
    assert door.ask("/api/kernel/function_call", "ann", method="POST", marimo_session_id="s_1", **there)[0] == 403


def test_behind_a_proxy_the_pages_own_site_is_known(door):
    there = {"host": "127.0.0.1:2718", "x_forwarded_host": "class.example.org", "origin": "https://class.example.org"}

    assert door.connect("ann", "s_1", **there) == "websocket.accept"


def test_anybody_may_ask_whether_the_server_lives(door):
    assert door.ask("/health")[0] == 200


def test_the_board_is_the_instructors(door):
    assert [door.ask("/workshop", who)[0] for who in ("ann", "instructor")] == [403, 200]


def test_names_on_the_board_are_no_markup(door):
    assert "Ann &lt;b&gt;" in door.ask("/workshop", "instructor")[2]


def test_the_board_shows_what_a_learner_has_answered(door):
    store = Store("ann")
    store.put("01", "exercise 1.1 answer", {"answer": "3", "case": {"a": 1}, "at": store.time()})
    told = json.loads(door.ask("/workshop.json", "instructor")[2])

    assert told["rows"][0]["done"]["unchecked"] == ["1.1"]
    assert told["rows"][1]["done"]["unchecked"] == []


def test_the_board_says_which_lesson_is_open():
    visits = Visits()
    visits.open("s_1", "ann", "01_the_gauge.py")
    visits.open("s_2", "ann", "02_b.py")
    visits.close("s_2")

    assert visits.open_files("ann") == ("01_the_gauge.py",)


# --- what a page makes of it -----------------------------------------------------------------------------------


@pytest.fixture
def known(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    told = []
    monkeypatch.setattr(readers, "_tell", lambda: told[-1] if told else None)
    return told


def test_in_a_class_the_key_decides_whose_progress_it_is(known):
    known.append(Reader("ann"))

    assert Store("bob").learner == "ann"


def test_on_ones_own_machine_the_page_decides(known):
    assert (Store("bob").learner, Store().learner) == ("bob", "me")


@pytest.mark.parametrize(
    ("teaches", "asked", "shown"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_notes_are_for_the_instructors_key_only(known, monkeypatch, teaches, asked, shown):
    known.append(Reader("ann", teaches))
    monkeypatch.setattr(endings.mo, "query_params", lambda: {"instructor": "1"} if asked else {})

    assert endings.is_instructor() is shown
