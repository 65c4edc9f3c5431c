"""What a page does when things go wrong: Stop, a crash, damaged files, two tabs. Shown on lesson 2; the furniture is
the same in all."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from gpututor.results import RESULT
from tests.browser import Server, Visit, browser, visit
from tests.lessons.journeys import JOURNEYS, RUN_BUTTON, course, shortened

pytestmark = pytest.mark.browser

MYSTERY = next(journey for journey in JOURNEYS if journey.file.startswith("02"))
LONG = f"long_{MYSTERY.file}"  # as shipped: long enough to be stopped and crashed
WORKER = "gpututor.lab.worker"
UNDER_WAY = re.compile(r"sentence \d+ of")


@pytest.fixture(scope="module")
def running(tmp_path_factory, chromium):
    scratch = tmp_path_factory.mktemp("states")
    with course(shortened(scratch, long=MYSTERY.file), scratch) as server, browser(chromium) as one:
        yield server, one


@pytest.fixture
def open_page(running):
    server, one = running
    opened = []

    def page(file: str, learner: str) -> Visit:
        opened.append(visit(one, server.address(file, learner=learner)))
        return opened[-1]

    yield page
    for each in opened:
        each.close()


@pytest.fixture
def start(open_page) -> Callable[[str, str], Visit]:
    def started(file: str, learner: str) -> Visit:
        page = open_page(file, learner)
        MYSTERY.wait_until_open(page)
        MYSTERY.guess(page)
        MYSTERY.run(page)
        return page

    return started


@pytest.fixture(scope="module")
def finished_reader(running) -> str:
    """A reader who has run the lesson."""
    server, one = running
    page = visit(one, server.address(MYSTERY.file, learner="finished"))
    MYSTERY.wait_until_open(page)
    MYSTERY.guess(page)
    MYSTERY.run(page)
    MYSTERY.wait_until_finished(page)
    page.close()
    return "finished"


@pytest.fixture
def finished_as(finished_reader, running) -> Callable[[str], None]:
    """Gives another reader the same files."""

    def copy(learner: str) -> None:
        files = home(running[0])
        shutil.copytree(files / "results" / finished_reader, files / "results" / learner)
        shutil.copy(files / "progress" / f"{finished_reader}.json", files / "progress" / f"{learner}.json")

    return copy


def home(server: Server) -> Path:
    return server.log_path.parent / "home"


def files_of_the_run(server: Server, learner: str, name: str) -> Path:
    (path,) = (home(server) / "results" / learner / "02").glob(f"*/{name}")
    return path


def is_alive(page: Visit) -> bool:
    """Whether the page still answers: it can be run (again) in a moment, and no cell has failed."""
    page.settle()
    return page.page.get_by_role("button", name=RUN_BUTTON).first.is_enabled() and not page.errors


# --- stop ------------------------------------------------------------------------------------------------------


def test_a_stopped_run_shows_what_it_did(start):
    page = start(LONG, "stops")
    page.wait_for("run_panel", UNDER_WAY)
    page.page.get_by_role("button", name="Stop").click()
    MYSTERY.wait_until_finished(page)

    assert re.search(r"Stopped after \d+ of 200 sentences\.", page.cell("run_panel").inner_text())
    assert "What ran so far is kept." in page.cell("run_panel").inner_text()
    assert is_alive(page)


# --- a crash ---------------------------------------------------------------------------------------------------


def kill_worker(server: Server) -> None:
    """End the process that runs the experiment, as the system does when memory runs out."""
    for process in psutil.Process(server.pid).children(recursive=True):
        if WORKER in process.cmdline() and process.cpu_times().user > 0.5:
            os.kill(process.pid, signal.SIGKILL)


def test_a_crash_is_one_sentence_and_the_page_runs_again(start, running):
    page = start(LONG, "crashes")
    page.wait_for("run_panel", UNDER_WAY)
    kill_worker(running[0])
    page.wait_for("run_panel", "The experiment's process ended by itself")

    assert is_alive(page)
    page.page.get_by_role("button", name="Run again").click()
    page.wait_for("run_panel", UNDER_WAY)
    page.page.get_by_role("button", name="Stop").click()
    page.wait_for("result", "Busy")
    assert "Traceback" not in running[0].log


# --- damaged files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("file", "cell"), [(MYSTERY.file, "run_panel"), ("00_start_here.py", "damage")])
def test_a_damaged_progress_file_is_told_and_kept(open_page, running, file, cell):
    learner = f"damaged-in-{cell}"
    path = home(running[0]) / "progress" / f"{learner}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"format": "gpututor-progress", "vers')
    page = open_page(file, learner)
    page.wait_for(cell, "is damaged")

    (aside,) = path.parent.glob(f"{learner}.damaged-*.json")
    assert aside.read_bytes() == b'{"format": "gpututor-progress", "vers'
    assert aside.name in page.cell(cell).inner_text()
    assert page.errors == []


def test_a_damaged_tape_is_one_sentence_and_the_page_runs_again(finished_as, open_page, running):
    finished_as("tape")
    tape = files_of_the_run(running[0], "tape", "seq2seq.tape.gz")
    tape.write_bytes(tape.read_bytes()[:100])
    page = open_page(MYSTERY.file, "tape")
    page.wait_for("result", "What this run left can't be shown")

    assert page.height("guess_card") > 0
    assert is_alive(page)
    page.page.get_by_role("button", name="Run again").click()
    MYSTERY.wait_until_finished(page)
    assert "Traceback" not in running[0].log


def test_a_damaged_result_is_one_sentence_and_the_page_runs_again(finished_as, open_page, running):
    finished_as("result")
    files_of_the_run(running[0], "result", RESULT).write_text('{"version": 1, "data"')
    page = open_page(MYSTERY.file, "result")
    page.wait_for("run_panel", "The result of your last run can't be read")

    MYSTERY.run(page)
    MYSTERY.wait_until_finished(page)
    assert "can't be read" not in page.cell("run_panel").inner_text()


def test_a_tape_that_goes_while_the_page_is_open_is_one_sentence(finished_as, open_page, running):
    finished_as("gone")
    page = open_page(MYSTERY.file, "gone")
    MYSTERY.wait_until_finished(page)
    files_of_the_run(running[0], "gone", "seq2seq.tape.gz").unlink()
    page.cell("model").get_by_role("slider").press("ArrowLeft")
    page.wait_for("model", "could not be drawn")

    assert is_alive(page)
    assert "Traceback" not in running[0].log


# --- two tabs --------------------------------------------------------------------------------------------------


def test_two_tabs_of_one_reader_both_finish(open_page, running):
    pages = [open_page(MYSTERY.file, "twice") for _ in range(2)]
    for act in (MYSTERY.wait_until_open, MYSTERY.guess, MYSTERY.run, MYSTERY.wait_until_finished):
        for page in pages:
            act(page)

    assert [is_alive(page) for page in pages] == [True, True]
    assert "Traceback" not in running[0].log
