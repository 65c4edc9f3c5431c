"""A workshop as an instructor starts it: three readers at once, what they leave behind, and a quiet end."""

from __future__ import annotations

import csv
import http.server
import io
import json
import re
import signal
import threading

import psutil
import pytest
from click.testing import CliRunner

from gpututor.cli.workshop import workshop_command
from gpututor.exercises import submission
from gpututor.workshop.keys import address
from tests.browser import browser, visit
from tests.workshop.protocol import ask
from tests.workshop.serving import free_port, workshop
from tools.workshop_load import GUESSED, loaded, marker

N = 3


@pytest.fixture(scope="module")
def visited(tmp_path_factory):
    """A server that three readers have visited, and what they saw."""
    with workshop(tmp_path_factory.mktemp("workshop"), N) as server:
        yield server, loaded(server, (GUESSED,), lambda said: None)


def command(*words):
    done = CliRunner().invoke(workshop_command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_nobodys_page_dies(visited):
    server, report = visited

    assert report.died == (), server.log.read_text("utf-8")
    assert "Traceback" not in server.log.read_text("utf-8")


def test_nobody_sees_or_changes_what_is_anothers(visited):
    assert visited[1].cross_talk == ()


def test_everybody_gets_their_run_and_their_verdict(visited):
    times = visited[1].times_s

    assert [times[what][2] for what in ("run queued to result", "check queued to verdict")] == [N, N]


def test_there_are_never_more_workers_than_runners(visited):
    server, report = visited
    runners = int(re.search(r"(\d+) runner", server.log.read_text("utf-8"))[1])

    assert 1 <= report.memory.n_workers <= runners


def test_the_instructor_sees_what_was_done(visited):
    server, _ = visited
    told = json.loads(ask(server.url, "/workshop.json", server.keys.instructor.key).body)

    assert [row["done"]["right"] for row in told["rows"]] == [["1.2"]] * N


def test_no_key_is_written_anywhere_but_into_the_file_of_keys(visited):
    server, _ = visited
    files = [path for path in server.state.rglob("*") if path.is_file() and path.name != "keys.json"]
    told = b"".join(path.read_bytes() for path in (*files, server.log))

    assert [holder for holder in server.keys if holder.key.encode() in told] == []


def test_the_addresses_are_a_table_with_the_instructor_first(visited):
    server, _ = visited
    rows = list(csv.DictReader(io.StringIO(command("keys", "--state", str(server.state)))))

    assert [row["id"] for row in rows] == ["instructor", *(holder.id for holder in server.keys.learners)]
    assert all(row["address"].startswith(server.url) for row in rows)


def test_addresses_may_name_another_place(visited):
    server, _ = visited
    told = command("keys", "--state", str(server.state), "--address", "https://class.example.org/", "--json")

    assert {row["address"].partition("?")[0] for row in json.loads(told)} == {"https://class.example.org/"}


def test_collected_answers_are_submissions_of_those_who_gave_them(visited, tmp_path, monkeypatch):
    server, _ = visited
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))  # the command sets it for its own process
    command("collect", "--state", str(server.state), "--out", str(tmp_path / "in"))
    read = [submission.read(path) for path in sorted((tmp_path / "in").glob("*.json"))]

    assert [(each.learner_id, sorted(each.answers)) for each in read] == [
        (holder.id, ["1.1", "1.2"]) for holder in server.keys.learners
    ]
    assert all(
        marker(holder) in each.answers["1.2"].answer for holder, each in zip(server.keys.learners, read, strict=True)
    )


def test_what_is_no_submission_is_not_replaced(visited, tmp_path, monkeypatch):
    server, _ = visited
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    mine = tmp_path / f"{server.keys.learners[0].id}.json"
    mine.write_text("my notes")
    told = json.loads(command("collect", "--state", str(server.state), "--out", str(tmp_path), "--json"))

    assert mine.read_text() == "my notes"
    assert "is left alone" in told[0]["why"]


# --- in a browser ----------------------------------------------------------------------------------------------


@pytest.fixture
def mail(visited):
    """Somebody else's site with a link to the first learner's own address."""
    server, _ = visited
    link = address(server.url, server.keys.learners[0], file=GUESSED, learner=server.keys.learners[1].id)

    class Letter(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<a href="{link.replace("&", "&amp;")}">your course</a>'.encode())

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Letter) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://localhost:{site.server_port}/"  # another name than the server's, so another site
        site.shutdown()


@pytest.mark.browser
def test_a_link_in_a_mail_opens_the_learners_own_page_without_the_key_in_its_address(visited, mail, chromium):
    server, _ = visited
    with browser(chromium) as one:
        page = visit(one, mail)
        page.page.get_by_text("your course").click()
        editor = page.page.locator(".gt-exercise .cm-content")
        editor.wait_for()
        code = editor.inner_text()
        links = page.page.locator("a[href*='file=']").evaluate_all("links => links.map(a => a.href)")

        assert marker(server.keys.learners[0]) in code
        assert [holder for holder in server.keys for text in (page.page.url, *links) if holder.key in text] == []
        assert page.errors == []


@pytest.mark.browser
def test_the_next_lesson_needs_no_key_again(visited, chromium):
    server, _ = visited
    with browser(chromium) as one:
        page = visit(one, address(server.url, server.keys.learners[0], file="00_start_here.py"))
        page.wait_for("doors", "Continue")
        page.cell("doors").locator("a").first.click()

        assert page.wait_for("guess_card", "Your guess first")
        assert page.errors == []


@pytest.mark.browser
def test_the_gallery_opens_with_the_key(visited, chromium):
    server, _ = visited
    with browser(chromium) as one:
        page = visit(one, address(server.url, server.keys.learners[0]))
        page.page.get_by_text("00 · Start here").wait_for()

        assert page.errors == []


# --- the end ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_end_is_quiet_and_leaves_nothing_running(tmp_path, how):
    with workshop(tmp_path, 1) as server:
        family = psutil.Process(server.process.pid).children(recursive=True)
        server.process.send_signal(how)
        status = server.process.wait(timeout=15)
        told = server.log.read_text("utf-8")

    assert status == 0
    assert told.endswith("The workshop is closed; progress is kept.\n")
    assert [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE] == []


def test_one_folder_has_one_server(visited):
    server, _ = visited
    done = CliRunner().invoke(workshop_command, ["--state", str(server.state), "--port", str(free_port())])

    assert "another workshop serves from" in str(done.exception)
