"""The class's report and a feedback page in a real browser: nothing that learners wrote runs, nothing sticks out."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from gpututor.exercises.registry import exercise
from gpututor.grading import class_page, feedback_page
from gpututor.grading.summary import summed_up
from tests.browser import browser

pytestmark = pytest.mark.browser
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>\" onload='alert(3)' " + "wide" * 60
ONE = exercise("3.2")


def learner():
    """One who has put markup into everything that is shown."""
    judged = {
        "number": ONE.number,
        "marks": 10,
        "points": 4.0,
        "judged_points": 4.0,
        "state": "partial",
        "text": ATTACK,
        "hint": 1,
        "hint_text": ONE.hints[0],
        "checks": [[ATTACK, True, 0.4], ["is fast", False, 0.6]],
        "hidden": [3, 1],
        "case": "own",
        "trouble": "",
        "override": {"points": None, "comment": ATTACK, "by": ATTACK, "at": ""},
    }
    about = dict.fromkeys(("id", "name", "email", "group", "file"), ATTACK)
    return about | {
        "state": "graded",
        "points": 4.0,
        "marks": 10,
        "due": "2026-01-16T22:59:59+00:00",
        "handed_in_at": "2026-01-18T12:00:00+00:00",
        "is_self_reported_time": True,
        "late_days": 2,
        "kept_share": 0.8,
        "notes": [ATTACK],
        "exercises": [judged],
        "feedback": "feedback/0.html",
    }


def pages():
    one = learner()
    about = dict.fromkeys(("title", "lessons", "deadline_local", "timezone", "late"), ATTACK)
    results = {
        "class": about,
        "summary": summed_up([ONE], [one]),
        "warnings": [ATTACK],
        "files": [{"file": ATTACK, "learner_id": ATTACK, "what": ATTACK}],
        "similar": [{"number": "3.2", "ids": [ATTACK, ATTACK], "share": 0.9, "n_shared": 9, "lines": [ATTACK, ATTACK]}],
        "learners": [one],
        "grader": ATTACK,
        "isolation": ATTACK,
    }
    return {"class": class_page.class_page(results), "feedback": feedback_page.feedback(ATTACK, [ONE], one)}


@pytest.fixture(scope="module")
def chrome(chromium):
    with browser(chromium) as started:
        yield started


def opened(chrome, tmp_path, name, width, scheme):
    """A page of the two, with everything that was tried on it."""
    path = tmp_path / f"{name}.html"
    path.write_text(pages()[name], encoding="utf-8")
    page = chrome.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tried = []
    page.on("dialog", lambda dialog: (tried.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: tried.append(asked.url) if not asked.url.endswith(path.name) else None)
    page.on("console", lambda said: tried.append(said.text))
    page.goto(path.as_uri())
    return page, tried


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("name", ["class", "feedback"])
def test_nothing_runs_nothing_is_asked_for_and_nothing_sticks_out(chrome, tmp_path, name, width, scheme):
    page, tried = opened(chrome, tmp_path, name, width, scheme)
    page.wait_for_timeout(100)

    assert tried == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img, script, [onload], [onerror]").count() == 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["class", "feedback"])
def test_anybody_can_read_them(chrome, tmp_path, name, scheme):
    text = pages()[name]
    allowed = text.replace("default-src 'none'", "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'")
    assert allowed != text  # axe itself is a script
    path = tmp_path / f"{name}.html"
    path.write_text(allowed, encoding="utf-8")
    page = chrome.new_page(viewport={"width": 390, "height": 900}, color_scheme=scheme)
    page.goto(path.as_uri())
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]

    assert [(each["id"], each["nodes"][0]["html"][:120]) for each in found] == []
    page.close()
