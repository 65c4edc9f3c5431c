"""The file of runs: what goes in comes out, two processes at once, damage, later versions."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from gpututor.errors import HistoryError, RunNotKnown
from gpututor.history import History, log, wanted
from gpututor.history.book import APPLICATION_ID, COLUMNS
from tests.history.runs import run

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def history(tmp_path) -> History:
    return History(tmp_path / "history.sqlite", now=lambda: NOW)


def test_a_run_comes_back_as_it_was_with_number_and_time(history):
    number = history.log(run())

    assert history.run(number) == replace(run(), number=1, at="2026-01-02T03:04:05+00:00")


def test_a_figure_that_is_not_known_stays_none(history):
    history.log(run(None, busy_share=None, usd_per_hour=None, usd_per_1000_steps=None, commit=None, card=None))

    (found,) = history.runs()
    assert (found.step_ns, found.busy_share, found.usd_per_hour, found.commit, found.card) == (None,) * 5
    assert found.reasons == {"step_ns": "nothing was launched"}


def test_the_last_runs_come_in_the_order_of_their_numbers(history):
    for _ in range(4):
        history.log(run())

    assert [entry.number for entry in history.runs(last=2)] == [3, 4]


def test_without_a_file_there_are_no_runs_and_none_is_made(history):
    assert history.runs() == ()
    assert not history.path.exists()


def test_negative_numbers_count_from_the_end(history):
    history.log(run(10))
    history.log(run(12))

    assert history.run(-1).step_ns == 12_000_000


@pytest.mark.parametrize("number", [7, 0, -3])
def test_a_number_that_no_run_has_is_refused_with_the_known_ones(history, number):
    history.log(run())
    history.log(run())

    with pytest.raises(RunNotKnown, match="1"):
        history.run(number)


def test_the_number_of_a_deleted_run_is_never_given_again(history):
    for _ in range(2):
        history.log(run())

    assert history.delete([2]) == 1
    assert history.log(run()) == 3


def test_the_file_is_ours_by_its_marks_and_written_ahead(history):
    history.log(run())

    with sqlite3.connect(history.path) as file:
        marks = [
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version", "journal_mode")
        ]
    file.close()
    assert marks == [APPLICATION_ID, 1, "wal"]


@pytest.mark.parametrize("damage", [b"not a database, but text\n" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_aside_and_said_to(history, damage):
    history.path.write_bytes(damage)

    assert history.log(run()) == 1

    (aside,) = history.path.parent.glob("history.damaged-*.sqlite")
    assert aside.read_bytes() == damage
    assert "It was kept as history.damaged-20260102T030405.000000Z.sqlite" in history.trouble


def test_a_file_with_damaged_rows_is_kept_aside(history):
    for _ in range(3):
        history.log(run(configuration={"long": "x" * 20_000}))
    data = bytearray(history.path.read_bytes())
    page = 4096
    data[page:] = b"\xff" * (len(data) - page)  # the first page, with our marks and the table's columns, is whole
    history.path.write_bytes(data)

    assert history.runs() == ()
    assert "It was kept as" in history.trouble


def test_a_file_that_is_locked_for_long_is_left_alone(history, monkeypatch):
    monkeypatch.setattr("gpututor.history.book.BUSY_TIMEOUT_S", 0.05)
    history.log(run())
    with closing(sqlite3.connect(history.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match="locked"):
            history.log(run())

    assert len(history.runs()) == 1


def test_a_row_that_cannot_be_read_is_left_out_and_said_to(history):
    for _ in range(2):
        history.log(run())
    with closing(sqlite3.connect(history.path)) as file, file:
        file.execute("UPDATE runs SET accounts_ns = 'no JSON' WHERE number = 1")

    assert [entry.number for entry in history.runs()] == [2]
    assert history.trouble.startswith("1 of the runs")


def test_another_programs_database_is_kept_aside(history):
    with sqlite3.connect(history.path) as file:
        file.execute("CREATE TABLE songs (name)")
    file.close()

    history.log(run())

    assert "tables that aren't ours" in history.trouble


def test_a_later_version_is_left_alone(history):
    history.log(run())
    with sqlite3.connect(history.path) as file:
        file.execute("PRAGMA user_version=2")
    file.close()

    with pytest.raises(HistoryError, match="version 2, and this gpututor reads 1"):
        history.runs()
    assert not list(history.path.parent.glob("history.damaged*"))


def test_two_processes_at_once_lose_no_run(history):
    code = (
        "import sys; from pathlib import Path\n"
        "from gpututor.history import History; from tests.history.runs import run\n"
        "book = History(Path(sys.argv[1]))\n"
        "for k in range(25): book.log(run(configuration={'process': sys.argv[2]}))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(history.path), name], cwd=ROOT) for name in "ab"]

    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    found = history.runs()
    assert [entry.number for entry in found] == list(range(1, 51))
    assert sum(entry.configuration["process"] == "a" for entry in found) == 25


def test_a_folder_that_cannot_be_written_is_one_sentence_and_no_error(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("GPUTUTOR_HOME", str(in_the_way))

    number, trouble = log(run(), True)

    assert number is None
    assert trouble.startswith("This run is not in the history")


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [
        ("", None, True),
        ("0", None, False),
        ("off", None, False),
        ("1", None, True),
        ("0", True, True),
        ("1", False, False),
    ],
)
def test_the_callers_word_goes_before_the_environments(monkeypatch, said, asked, expected):
    monkeypatch.setenv("GPUTUTOR_HISTORY", said)

    assert wanted(asked) is expected


def test_every_column_has_its_field():
    fields = set(run().__slots__) - {"commit"} | {"git_commit"}

    assert set(COLUMNS) == fields
