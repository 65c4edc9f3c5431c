"""Every lesson as a reader meets it: the gallery, guess, run, results, controls, a phone, the dark, a reload."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import TimeoutError  # noqa: A004

from gpututor.page.course import LESSONS, lesson
from tests.browser import Server, Visit, browser, visit
from tests.lessons.journeys import (
    BEFORE_THE_GUESS,
    JOURNEYS,
    RUN_BUTTON,
    Control,
    Journey,
    course,
    picture,
    shortened,
)
from tests.lessons.reading import PATHS, Notebook

pytestmark = pytest.mark.browser

LEARNER = "ann"


@pytest.fixture(scope="module")
def running(tmp_path_factory, chromium):
    scratch = tmp_path_factory.mktemp("course")
    with course(shortened(scratch), scratch) as server, browser(chromium) as one:
        yield server, one


# --- gallery and front page ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gallery(running):
    server, one = running
    page = visit(one, server.address())
    page.page.get_by_text("00 · Start here").wait_for()
    yield page
    page.close()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_gallery_has_a_card_with_title_and_question(gallery, path):
    shown = lesson(int(path.name[:2]))
    card = gallery.page.locator("a", has_text=f"{shown.number:02d} · {shown.title}")

    assert shown.question in card.inner_text()


def test_every_card_has_its_thumbnail(gallery):
    gallery.page.wait_for_function("[...document.images].every(image => image.complete)")
    pictures = gallery.page.locator("a img")

    assert pictures.count() == len(PATHS)
    assert all(pictures.evaluate_all("images => images.map(image => image.naturalWidth)"))


def test_the_gallery_is_quiet(gallery):
    assert (gallery.errors, gallery.elsewhere) == ([], [])


@pytest.fixture(scope="module", params=[(1200, "light"), (390, "dark")], ids=["wide and light", "phone in the dark"])
def front(running, request):
    server, one = running
    width, theme = request.param
    page = visit(one, server.address("00_start_here.py", learner="new", instructor="1"), width=width, theme=theme)
    page.wait_for("ledger_map", "MFU")
    page.wait_for("paper", "to print")
    yield page
    page.close()


def test_the_front_page_is_quiet_and_fits(front):
    assert (front.errors, front.elsewhere) == ([], [])
    assert front.overflow_px() == 0


def test_the_front_page_has_no_hurdles(front):
    assert hurdles(front) == []


def test_the_front_page_lists_every_lesson_and_marks_the_first_for_a_new_reader(front):
    rows = front.cell("index").locator("tbody tr:not(.gt-part)")

    assert rows.count() == 1 + len(LESSONS)
    assert front.cell("index").locator("tr.next").inner_text().startswith("01")
    assert front.cell("index").locator("a").count() == len(PATHS) - 1


def test_the_front_page_says_that_a_kept_run_is_simulated(front):
    assert "Simulated" in front.cell("ledger_map").inner_text()
    assert "comes with the course" in front.cell("ledger_map").inner_text()


def test_the_front_page_shows_an_instructor_the_notes(front):
    front.wait_for("instructors", "For instructors")

    assert front.height("instructors") > 0


def test_a_door_leads_into_a_lesson_of_the_same_reader(running):
    server, one = running
    page = visit(one, server.address("00_start_here.py", learner="zoë"))
    page.wait_for("doors", "Begin")
    page.cell("doors").locator("a").first.click()
    page.wait_for("run_panel", "Opens once you have guessed.")

    assert "learner=zo%C3%AB" in page.page.url
    page.close()


def test_the_door_to_the_ledger_leads_to_it(running):
    server, one = running
    page = visit(one, server.address("00_start_here.py"))
    page.wait_for("ledger_map", "MFU")
    page.page.get_by_text("Find your symptom").click()

    headline = page.page.locator("#where-your-time-goes")
    page.page.wait_for_timeout(500)
    assert headline.bounding_box()["y"] < 200
    page.close()


# --- a lesson, from the blank page to its end ------------------------------------------------------------------


@dataclass
class Walked:
    """A lesson's page after the run, and what it showed before."""

    journey: Journey
    server: Server
    page: Visit
    heights: dict[str, float]
    could_run: bool
    log_before: str

    @property
    def log(self) -> str:
        """What the server wrote since this page was opened."""
        return self.server.log.removeprefix(self.log_before)


READY = {int(journey.file[:2]) for journey in JOURNEYS}
"""Numbers of the lessons that are there."""


@pytest.fixture(scope="module", params=JOURNEYS, ids=lambda journey: journey.file.removesuffix(".py"))
def walked(running, request) -> Iterator[Walked]:
    server, one = running
    journey: Journey = request.param
    log_before = server.log
    page = visit(one, server.address(journey.file, learner=LEARNER))
    journey.wait_until_open(page)
    page.page.wait_for_timeout(500)  # a cell that shows too much gets the time to do so
    heights = {cell: page.height(cell) for cell in Notebook(PATHS[0].parent / journey.file).showing_cells}
    could_run = page.page.get_by_role("button", name=RUN_BUTTON).first.is_enabled()
    journey.guess(page)
    journey.run(page)
    journey.wait_until_finished(page)
    yield Walked(journey, server, page, heights, could_run, log_before)
    page.close()


def test_before_the_guess_only_head_guess_and_run_show(walked):
    assert {cell for cell, px in walked.heights.items() if px > 0} <= set(BEFORE_THE_GUESS)
    assert walked.heights["head"] > 0
    assert walked.heights["guess_card"] > 0


def test_before_the_guess_nothing_can_be_run(walked):
    assert not walked.could_run


def test_after_the_run_every_later_cell_shows(walked):
    assert [cell for cell in walked.journey.later if walked.page.height(cell) == 0] == []


def test_after_the_run_the_guess_is_locked(walked):
    card = walked.page.cell("guess_card")

    assert card.get_by_role("radio").count() == 0
    assert re.search(rf"You said\s*{walked.journey.option}\s*It was", card.inner_text())


def test_what_came_of_the_run_stands_in_one_line(walked):
    line = walked.page.cell("run_panel").locator(".gt-progress")

    assert "done" in line.inner_text()
    assert line.evaluate("line => line.getBoundingClientRect().height") < 1.5 * line.evaluate(
        "line => parseFloat(getComputedStyle(line).lineHeight)"
    )


def test_moving_a_control_changes_its_chart(walked):
    unmoved = [control.name for control in walked.journey.controls if not changes(walked.page, control)]

    assert unmoved == []


def changes(page: Visit, control: Control) -> bool:
    page.settle()  # what the control before has changed is on its way down the page, and draws this one anew
    before = picture(page, control.drawn_in)
    control.move(page)
    for _ in range(50):
        if picture(page, control.drawn_in) != before:
            return True
        page.page.wait_for_timeout(100)
    return False


def test_no_link_of_a_lesson_loses_its_reader(walked):
    links = walked.page.page.locator("a[href*='file=']").evaluate_all("links => links.map(a => a.getAttribute('href'))")

    assert links
    assert [link for link in links if f"learner={LEARNER}" not in link] == []


def test_a_lesson_is_quiet(walked):
    assert (walked.page.errors, walked.page.elsewhere) == ([], [])
    assert "Traceback" not in walked.log
    assert walked.page.page.get_by_text("internal error").count() == 0


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1200, "dark")], ids=["phone", "dark"])
def test_a_finished_lesson_opens_again_with_guess_and_result(walked, running, width, theme):
    _, one = running
    page = visit(one, walked.server.address(walked.journey.file, learner=LEARNER), width=width, theme=theme)
    walked.journey.wait_until_finished(page)

    assert f"You said\n{walked.journey.option}" in re.sub(r"\n+", "\n", page.cell("guess_card").inner_text())
    assert page.overflow_px() == 0
    assert is_dark(page) == (theme == "dark")
    assert (page.errors, page.elsewhere) == ([], [])
    assert hurdles(page) == []
    page.close()


def test_an_answer_is_judged_on_the_page_and_kept(walked):
    card = walked.page.page.locator(".gt-exercise").first
    typed = card.locator("input[type=text]")
    if typed.count():
        typed.fill("0.001")
        typed.press("Enter")
    else:
        card.get_by_role("radio").first.click()
    walked.page.page.wait_for_timeout(500)  # the answer is on its way to the kernel, as fast as a hand is not
    card.get_by_role("button", name="Check").click()
    told = walked.page.page.locator(".gt-exercise .gt-verdict").first
    told.filter(has_not_text="Not answered yet.").wait_for(timeout=30_000)

    number = int(walked.journey.file[:2])
    progress = walked.server.log_path.parent / "home" / "progress" / f"{LEARNER}.json"
    kept = json.loads(progress.read_text("utf-8"))["lessons"][f"{number:02d}"]["values"][f"exercise {number}.1"]
    assert kept["text"] in told.inner_text()


def test_the_way_on_leads_to_the_next_lesson(walked, running):
    _, one = running
    way_on = walked.page.page.locator("a.gt-next")
    file = re.search(r"file=([\w.]+)", way_on.get_attribute("href"))[1]
    following = min((number for number in READY if number > int(walked.journey.file[:2])), default=0)

    assert file.startswith(f"{following:02d}_")
    if following == 2:  # the click itself is the same in all
        page = visit(one, walked.server.address(walked.journey.file, learner=LEARNER))
        page.page.locator("a.gt-next").click(timeout=60_000)
        page.wait_for("run_panel", "Opens once you have guessed.")
        assert f"learner={LEARNER}" in page.page.url
        page.close()


def test_a_run_can_be_stopped_half_way_and_the_page_lives_on(walked):
    page = walked.page
    page.page.get_by_role("button", name="Run again").first.click()
    with suppress(TimeoutError):  # lesson 1's run is over before a hand is there
        page.page.get_by_role("button", name="Stop").first.click(timeout=4_000)
    page.page.get_by_role("button", name="Run again").first.wait_for(timeout=60_000)

    assert re.search(r"Stopped|done", page.cell("run_panel").inner_text())
    assert page.errors == []
    assert "Traceback" not in walked.log


MARIMOS = re.compile(
    r"radix|cm-content|cm-scroller|opacity-80|marimo-cell|published|sm:pt-8|output block|^<span>Back<"
    r'|tabindex="-1" type="file"'
)
"""Parts of the page that marimo draws: its menu button, its editor, its link back, the frames of its cells, and the
hidden input of the place where files are dropped."""


def hurdles(page: Visit) -> list[str]:
    """What axe finds against WCAG 2 A and AA, marimo's own parts left out."""
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    found = Axe().run(page.page, options=rules).response["violations"]
    return [
        f"{each['id']}: {node['html'][:120]}"
        for each in found
        for node in each["nodes"]
        if not MARIMOS.search(node["html"])
    ]


IS_LIGHT = """element => {
    const pixel = document.createElement("canvas").getContext("2d");
    pixel.fillStyle = getComputedStyle(element)[element.tagName == "text" ? "fill" : "color"];
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pixel.getImageData(0, 0, 1, 1).data;
    return red + green + blue > 3 * 127;
}"""


def is_dark(page: Visit) -> bool:
    """Whether the ink is light, for the page and for the labels of its charts alike."""
    inks = [
        page.page.locator("h1").first.evaluate(IS_LIGHT),
        *(label.evaluate(IS_LIGHT) for label in page.page.locator(".vega-embed svg .role-axis-label text").all()[:1]),
    ]
    assert len(set(inks)) == 1, "page and chart disagree about the theme"
    return bool(inks[0])
