from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time

import pytest

from gpututor.errors import PageNotServed
from gpututor.watch.page import FILE, Page
from tests.browser import browser, visit
from tests.watch.made import BUSY_CPU, cpu_of, gpu, reading, simulated


@pytest.fixture
def page():
    served = Page()
    yield served
    served.close()


def asked(page, path, host=None):
    """Status, headers and body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=5)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{page.port}")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, body


def test_readings_after_a_time_are_told_and_earlier_ones_are_not(page):
    for k in range(4):
        page.note(reading(gpu(k / 10), time_s=100.0 + k))
    status, _, body = asked(page, "/readings?since=101")

    assert status == 200
    assert [r["time_s"] for r in json.loads(body)["readings"]] == [102.0, 103.0]


def test_the_page_gets_its_sentences_from_here(page):
    page.note(reading(gpu(0.1), cpu=BUSY_CPU))
    words = json.loads(asked(page, "/readings")[2])["words"]

    assert "that means the loader" in words["devices"]["gpu0"]["verdict"]


def test_before_the_first_reading_there_are_no_words(page):
    assert json.loads(asked(page, "/readings?since=nonsense")[2]) == {"readings": [], "words": None}


def test_nothing_else_is_served(page):
    assert asked(page, "/../pyproject.toml")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:2780", ""])
def test_a_request_under_another_name_is_refused(page, host):
    assert asked(page, "/readings", host or "x")[0] == 403


def test_only_this_machine_can_connect(page):
    assert page._server.server_address[0] == "127.0.0.1"


def test_the_browser_is_told_to_ask_nobody_else(page):
    _, headers, body = asked(page, "/")

    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not re.findall(r"https?://|//cdn|@import|src=", body)


def test_a_taken_port_is_named():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(PageNotServed, match=f"port {port} is taken"):
            Page(port)


def test_without_a_wish_the_next_free_port_is_taken(page):
    second = Page()

    assert second.port != page.port
    second.close()


def test_nothing_is_left_when_the_page_is_closed():
    page = Page()
    page.close()

    assert "gpututor-page" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", page.port), timeout=2)


def test_the_page_is_one_file_of_ours():
    assert FILE.stat().st_size < 30_000


@pytest.mark.browser
def test_the_page_shows_every_gauge_and_what_becomes_of_it(page, chromium):
    now_s = time.time()
    for k in range(60):
        page.note(reading(gpu(k / 60), simulated(0.9), time_s=now_s - 60 + k, cpu=cpu_of(1.0, 0.9, 0.8)))
    with browser(chromium) as running:
        for width, theme in ((390, "dark"), (1200, "light")):
            seen = visit(running, page.address, width=width, theme=theme)
            seen.page.get_by_text("A kernel ran 98").wait_for(timeout=10_000)

            assert seen.page.locator("[data-key]").count() == 2
            assert seen.page.locator("svg path[d^=M]").count() == 3  # two GPUs and the CPU
            assert (seen.overflow_px(), seen.errors, seen.elsewhere) == (0, [], [])
        page.note(reading(gpu(0.5), time_s=now_s))  # the simulated run is over
        seen.page.locator('[data-key="sim0"]').wait_for(state="detached", timeout=10_000)
        page.close()
        seen.page.get_by_text("The watch has ended").wait_for(timeout=20_000)
