"""Every server of the course has its threads parse one at a time, before marimo begins."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from gpututor import serving
from gpututor.cli.lessons import server_command, server_environment
from gpututor.workshop import serve as workshop

RACE = """
import ast, gc, threading, time
from gpututor.parsing import parse_in_turn
parse_in_turn()
source, failed = "x = " + "(1 + " * 40 + "1" + ")" * 40, []

def parse():
    try:
        for _ in range(5):
            ast.parse(source)
    except SystemError as error:
        failed.append(error)

gc.set_threshold(20)
gc.callbacks.append(lambda *_: time.sleep(0))  # another thread's turn in the midst of making a tree
threads = [threading.Thread(target=parse) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(failed))
"""


@pytest.fixture
def began(monkeypatch):
    """What happened, in order, when a server began; nothing is served."""
    happened = []
    monkeypatch.setattr(serving, "parse_in_turn", lambda: happened.append("in turn"))
    monkeypatch.setattr("runpy.run_module", lambda name, **_: happened.append((name, *sys.argv)))
    monkeypatch.setattr(sys, "argv", sys.argv)
    return happened


def test_the_course_is_served_in_turn(began, monkeypatch, tmp_path):
    command = server_command(tmp_path, "127.0.0.1", 2718, headless=True)
    monkeypatch.setattr(sys, "argv", ["serving", *command[3:]])
    serving.main()

    assert command[1:3] == ["-m", "gpututor.serving"]
    assert began[0] == "in turn"
    assert began[1][:2] == ("marimo", "marimo")
    assert {"run", str(tmp_path), "2718", "--headless", "--no-token"} <= set(began[1])


def test_a_workshop_is_served_in_turn(began, monkeypatch, tmp_path):
    monkeypatch.setattr(workshop, "prepare", lambda *_, **__: began.append("front"))
    asked = [
        "--state",
        str(tmp_path),
        "--lessons",
        str(tmp_path),
        "--host",
        "127.0.0.1",
        "--port",
        "1",
        "--runners",
        "1",
    ]
    monkeypatch.setattr(sys, "argv", ["serve", *asked])
    workshop.main()

    assert began[:2] == ["front", "in turn"]
    assert began[2][0] == "marimo"


def test_only_one_place_starts_marimos_server():
    package = Path(serving.__file__).parent
    starts = [
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value == "marimo" and "--no-token" in path.read_text("utf-8")
    ]

    assert set(starts) == {"serving.py"}


def test_threads_that_parse_at_once_all_get_their_tree():
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, text=True, check=True, env=server_environment()
    )

    assert done.stdout == "0\n"


def test_a_module_that_makes_trees_asks_us():
    code = (
        "from gpututor import parsing; parsing.parse_in_turn(); import ast; print(ast.compile is parsing.compile_alone)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=server_environment()
    )

    assert done.stdout == "True\n"
