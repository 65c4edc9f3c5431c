"""The reader's own trace on a page: its findings, or one sentence, and nothing of it left behind."""

from __future__ import annotations

import json
import tempfile
from types import SimpleNamespace

import pytest

from gpututor.explain import on_page
from tests.explain.written import JobTrace


def file(contents, name="mine.json"):
    return SimpleNamespace(
        name=name, contents=contents if isinstance(contents, bytes) else json.dumps(contents).encode()
    )


def test_before_there_is_a_file_it_says_where_it_would_be_read():
    assert "on this machine" in on_page.trace_panel([]).text


def test_in_a_class_it_says_that_the_server_reads_it(monkeypatch):
    monkeypatch.setattr(on_page, "in_a_class", lambda: True)

    assert "on the class's server" in on_page.trace_panel([]).text


def test_a_trace_is_explained_with_its_name():
    told = on_page.trace_panel([file(JobTrace(6, optimizer_marks=True, host_works=True).events)]).text

    assert "mine.json" in told
    assert "The GPU waits for the host to launch its next kernel" in told


def test_links_lead_into_the_course():
    told = on_page.trace_panel([file(JobTrace(6, optimizer_marks=True, host_works=True).events)]).text

    assert "?file=10_too_many_tiny_kernels.py" in told


@pytest.mark.parametrize("contents", [b"", b"hello", [], b"\x1f\x8bno"])
def test_what_cannot_be_explained_gets_a_sentence(contents):
    told = on_page.trace_panel([file(contents)]).text

    assert 'role="alert"' in told
    assert "mine.json" in told


@pytest.mark.parametrize("name", ["../../x.json", "", "..", "a/b.json", "x" * 500])
def test_a_file_of_any_name_is_read(name):
    assert "Recorded" in on_page.trace_panel([file(JobTrace(6).events, name)]).text


def test_a_name_is_text():
    told = on_page.trace_panel([file(JobTrace(6).events, "<script>x</script>")]).text

    assert "<script>" not in told


def test_nothing_of_it_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    on_page.trace_panel([file(JobTrace(6).events)])
    on_page.trace_panel([file(b"no")])

    assert list(tmp_path.iterdir()) == []
