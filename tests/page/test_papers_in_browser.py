"""The pages to print, in a browser: how many sheets they take, a phone, and the buttons of the front page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpututor.page import cheat_sheet
from gpututor.page.certificate import certificate
from gpututor.page.course import LESSONS
from gpututor.page.standing import OfCourse
from tests.browser import browser, served, visit
from tests.page.learners import NOW, everything_done

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def running(chromium):
    with browser(chromium) as one:
        yield one


def written(text: str, folder: Path) -> str:
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def n_sheets(page, paper: str) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", page.page.pdf(format=paper)))


@pytest.fixture(scope="module")
def all_done() -> OfCourse:
    """Every lesson that is listed, run and answered in full."""
    return everything_done(LESSONS)


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_cheat_sheet_is_one_sheet(running, tmp_path, paper):
    page = visit(running, written(cheat_sheet.as_html(), tmp_path))

    assert n_sheets(page, paper) == 1
    page.close()


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_certificate_of_a_whole_course_is_two_sheets_at_most(running, tmp_path, paper, all_done):
    page = visit(running, written(certificate(all_done, "Ada Lovelace", "ada", NOW), tmp_path))

    assert n_sheets(page, paper) <= 2
    page.close()


@pytest.mark.parametrize("width", [1200, 390])
def test_a_page_to_print_fits_the_screen_and_asks_nobody(running, tmp_path, width, all_done):
    for text in (cheat_sheet.as_html(), certificate(all_done, "W" * 200, "ada", NOW)):
        page = visit(running, written(text, tmp_path), width=width)

        assert page.overflow_px() == 0
        assert (page.errors, page.elsewhere) == ([], [])
        page.close()


@pytest.fixture(scope="module")
def front(tmp_path_factory, running):
    scratch = tmp_path_factory.mktemp("front")
    with served(ROOT / "lessons", scratch, {"PYTHONPATH": str(ROOT), "GPUTUTOR_HOME": str(scratch)}) as server:
        page = visit(running, server.address("00_start_here.py", learner="ada"))
        page.wait_for("paper", "to print")
        yield page
        page.close()


def downloaded(front, label: str) -> str:
    with front.page.expect_download() as waited:
        front.page.get_by_text(label).click()
    return Path(waited.value.path()).read_text(encoding="utf-8")


def test_the_cheat_sheet_is_handed_over(front):
    assert downloaded(front, "Cheat sheet, to print") == cheat_sheet.as_html()


def test_the_certificate_bears_the_name_typed_just_before(front):
    front.cell("paper").locator("input").fill("Zoë <i>Ångström</i>")
    text = downloaded(front, "Certificate, to print")

    assert "Zoë &lt;i&gt;Ångström&lt;/i&gt;" in text
    assert "This page certifies nothing." in text
    assert front.errors == []
