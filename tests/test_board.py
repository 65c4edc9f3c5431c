"""TensorBoard on event files of ours: it really starts, its scalars are read over HTTP, and it ends when it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil
import pytest

from gpututor import board
from gpututor.board import Board, BoardNotOpened, command, why_not
from gpututor.event_file import EventFile

POINTS = {0: 2.5, 1: 1.25, 2: 0.75}
WAITS_S = 60.0

installed = pytest.mark.skipif(bool(why_not()), reason="tensorboard is not installed")


@pytest.fixture
def events(tmp_path):
    """A folder with one run, "nights", and its one curve."""
    file = EventFile(tmp_path / "nights", now_s=1000.0)
    for step, value in POINTS.items():
        file.put(1000.0 + step, step, {"step_ms": value})
    file.close()
    return tmp_path


def asked(address: str, what: str, **query: str):
    """TensorBoard's answer, once it has read the files."""
    ends_s = time.monotonic() + WAITS_S
    while True:
        with urlopen(f"{address}data/{what}?{urlencode(query)}", timeout=WAITS_S) as answer:
            told = json.load(answer)
        if told or time.monotonic() > ends_s:
            return told
        time.sleep(0.2)


@installed
def test_it_serves_the_runs_own_scalars_on_this_machine_and_ends(events):
    one = Board(events)
    try:
        address = one.address()
        tags = asked(address, "plugin/scalars/tags")
        points = asked(address, "plugin/scalars/scalars", run="nights", tag="step_ms")
    finally:
        one.end()

    assert address.startswith("http://127.0.0.1:")
    assert list(tags["nights"]) == ["step_ms"]
    assert {step: value for _, step, value in points} == POINTS
    assert not one.is_open


@installed
def test_it_ends_with_the_process_that_opened_it(events):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom gpututor.board import Board\n"
        "one = Board(Path(sys.argv[1]))\none.address()\nprint(one._process.pid, flush=True)\nos._exit(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(events)], capture_output=True, text=True, check=False)
    pid, ends_s = int(done.stdout), time.monotonic() + WAITS_S
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends_s
        time.sleep(0.1)


def test_where_it_is_missing_one_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(board, "find_spec", lambda _: None)

    assert 'pip install "gpututor[tensorboard]"' in why_not()
    with pytest.raises(BoardNotOpened, match="not installed"):
        Board(tmp_path)


def test_one_that_ends_at_once_is_told_with_its_last_words(monkeypatch, tmp_path):
    broken = tmp_path / "tensorboard"
    broken.mkdir()
    (broken / "__init__.py").write_text("")
    (broken / "main.py").write_text("raise SystemExit('no port is free')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(board, "find_spec", lambda _: object())

    with pytest.raises(BoardNotOpened, match="no port is free"):
        Board(tmp_path).address()


def test_the_command_for_a_terminal_names_the_folder_and_this_machine_only(tmp_path):
    assert command(tmp_path) == f'tensorboard --logdir "{tmp_path}" --host 127.0.0.1'
