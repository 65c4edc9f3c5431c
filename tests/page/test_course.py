"""The list of lessons, their thumbnails and the look."""

import re
from pathlib import Path

import pytest

import gpututor.page as gt
from gpututor.ledger import IDLE, Account
from gpututor.page import thumbs
from gpututor.page.course import lesson

ROOT = Path(gt.__file__).parents[2]
LOOK = (ROOT / "lessons" / "look.css").read_text(encoding="utf-8")
EVERY_LESSON = [gt.START, *gt.LESSONS]


def test_lessons_are_numbered_in_order():
    assert [each.number for each in gt.LESSONS] == list(range(1, 20))


def test_a_lesson_is_found_by_its_number():
    assert all(lesson(each.number) is each for each in EVERY_LESSON)


def test_every_question_is_a_question():
    assert all(each.question.endswith("?") for each in gt.LESSONS)


def test_every_account_that_can_be_put_right_has_a_lesson():
    taught = {topic for each in gt.LESSONS for topic in each.topics}

    assert set(IDLE) - taught == {Account.UNKNOWN_IDLE}


@pytest.mark.parametrize("each", EVERY_LESSON, ids=lambda each: each.stem)
def test_a_sketch_is_three_rows_of_known_marks(each):
    assert all(len(row) == thumbs.N_TICKS and set(row) <= {*thumbs.ACCOUNT, "."} for row in each.sketch)


def test_no_two_lessons_have_the_same_thumbnail():
    assert len({thumbs.svg(each) for each in EVERY_LESSON}) == len(EVERY_LESSON)


def test_the_thumbnail_lies_where_the_gallery_looks(tmp_path):
    assert thumbs.target(tmp_path, lesson(1)) == tmp_path / "__marimo__/assets/01_the_gauge/opengraph.png"


def test_the_way_on_is_no_dead_link(monkeypatch):
    monkeypatch.setattr("gpututor.page.course.is_ready", lambda each: False)

    shown = gt.next_lesson(2).text

    assert "Coming · lesson 3" in shown
    assert 'href="?file=00_start_here.py"' in shown


def test_the_way_on_leads_past_lessons_that_are_still_to_come(monkeypatch):
    monkeypatch.setattr("gpututor.page.course.is_ready", lambda each: each.number in (2, 5))
    shown = gt.next_lesson(2).text

    assert "Next · lesson 5 · 2 before it still to come" in shown
    assert 'href="?file=05_wider_or_deeper.py"' in shown


def test_the_way_on_leads_to_the_next_lesson(monkeypatch):
    monkeypatch.setattr("gpututor.page.course.is_ready", lambda each: True)

    assert 'href="?file=03_one_sample_at_a_time.py"' in gt.next_lesson(2).text


def test_the_last_lesson_leads_back_to_the_start():
    assert "00_start_here.py" in gt.next_lesson(19).text


@pytest.mark.parametrize("selector", ["body", ".contents.light", ".contents.dark"])
def test_the_look_declares_its_colours_for_page_and_both_themes(selector):
    first_rule = LOOK[LOOK.index("body,") : LOOK.index("{")]

    assert selector in first_rule


def test_the_look_fetches_nothing():
    assert not re.search(r"url\(|@import|https?:", LOOK)


def test_the_look_has_rules_for_phones():
    assert "@media (max-width: 640px)" in LOOK


def test_every_class_of_the_look_is_used():
    source = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("page", "charts")
        for path in (ROOT / "gpututor" / folder).glob("*.py")
    )
    made_from_data = {"gt-gauge", "gt-drop", "gt-right", "gt-wrong", "gt-measured", "gt-recorded", "gt-outside"}
    classes = set(re.findall(r"\.(gt-[a-z-]+)", LOOK)) - made_from_data

    assert {name for name in classes if name not in source} == set()
