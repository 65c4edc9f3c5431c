"""A person can walk from the front page through every lesson by the next links alone, and back to the start."""

from __future__ import annotations

import ast
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import marimo as mo
import pytest

from gpututor.page.course import LESSONS, START
from gpututor.page.flow import Flow
from gpututor.page.kept import Kept
from tests.lessons.reading import PATHS, Notebook, calls
from tests.lessons.test_course import page

NOTEBOOKS = {path.name: Notebook(path) for path in PATHS}
FINISHED = Kept({"tape": Path("a run's tape")})


@pytest.fixture
def _as_a_reader(monkeypatch, tmp_path):
    """No page, no address, and nothing kept yet."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    monkeypatch.setattr(mo, "query_params", dict)


def led_to(html: str, kind: str) -> list[str]:
    """The files that links with this class lead to."""
    links = re.findall(rf'<a [^>]*class="[^"]*\b{kind}\b[^"]*"[^>]*>', html)
    return [parse_qs(unescape(re.search(r'href="\?([^"]*)"', link)[1]))["file"][0] for link in links]


def flow_of(notebook: Notebook) -> Flow:
    names: dict[str, Any] = {}
    exec(compile(ast.Module(notebook.setup.body, []), notebook.path.name, "exec"), names)
    return names["flow"]


def way_on(notebook: Notebook) -> str:
    """Where the one link at the end of a finished lesson leads."""
    endings = [call for cell in notebook.cells for call in calls(cell, "flow.ending")]
    assert len(endings) == 1, f"{notebook.path.name} needs one cell with flow.ending"
    (file,) = led_to(flow_of(notebook).ending(FINISHED, "").text, "gt-next")
    return file


@pytest.mark.usefixtures("_as_a_reader")
def test_from_the_front_page_the_next_links_lead_through_every_lesson_there_is():
    shown, _ = page(NOTEBOOKS[START.file])
    walked = [led_to(shown["doors"], "first")[0]]
    while (following := way_on(NOTEBOOKS[walked[-1]])) != START.file:
        assert following not in walked, f"{walked[-1]} leads back to {following}"
        walked.append(following)

    assert walked == [name for name in NOTEBOOKS if name != START.file]


def test_every_notebook_is_a_lesson_of_the_course():
    assert set(NOTEBOOKS) <= {each.file for each in (START, *LESSONS)}
