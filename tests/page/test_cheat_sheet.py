"""The cheat sheet says what the causes say, in each of its three forms."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from gpututor.causes import KNOWN, Cause, Thresholds
from gpututor.charts import WORDS
from gpututor.ledger import Account
from gpututor.page import cheat_sheet
from gpututor.page.course import lesson

HTML = cheat_sheet.as_html()
SEEN = unescape(re.sub(r"<[^>]+>", "", HTML))
DOCS = Path(__file__).resolve().parents[2] / "docs" / "cheatsheet.md"

each_cause = pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.name.lower())


def plain(text: str) -> str:
    return text.replace("`", "")


@each_cause
def test_each_cause_has_its_symptom_gauge_fix_and_lesson_on_the_page(cause):
    known = KNOWN[cause]
    row = next(row for row in HTML.split("<tr>") if cause.value in unescape(row))
    seen = unescape(re.sub(r"<[^>]+>", "", row))

    assert all(plain(text) in seen for text in (known.symptom[1:], known.gauge[1:], known.change))
    assert f"<b>{known.lesson}</b>" in row


def test_every_account_that_can_be_put_right_is_on_the_page():
    left_out = {Account.BUSY_UNSPLIT, Account.USEFUL}

    assert [a for a in Account if WORDS[a].lower() not in SEEN.lower() and a not in left_out] == []


def test_a_threshold_on_the_page_is_the_one_from_which_a_finding_is_made():
    assert f"Memory-bound ≥ {100 * Thresholds().memory_share:g} %" in SEEN.replace("\u00a0", " ")


def test_a_cause_that_changes_changes_the_page(monkeypatch):
    new = replace(KNOWN[Cause.PAUSES], symptom="the <b>clock</b> runs, the `loss` doesn't")
    monkeypatch.setitem(KNOWN, Cause.PAUSES, new)

    assert "The &lt;b&gt;clock&lt;/b&gt; runs, the <code>loss</code> doesn&#x27;t" in cheat_sheet.as_html()


def test_the_page_runs_nothing_and_fetches_nothing():
    assert "default-src 'none'" in HTML
    assert not re.search(r"<script|http:|https:|url\(|@import", HTML)


def test_the_table_in_markdown_has_a_line_a_cause_with_five_cells():
    rows = [line for line in cheat_sheet.as_markdown().splitlines() if line.startswith("|")][2:]

    assert len(rows) == len(Cause)
    assert {len(re.split(r"(?<!\\)\|", row)) - 2 for row in rows} == {5}


def test_a_bar_in_a_text_stays_in_its_cell(monkeypatch):
    monkeypatch.setitem(KNOWN, Cause.PAUSES, replace(KNOWN[Cause.PAUSES], gauge="a | b"))

    assert r"a \| b".replace("a", "A", 1) in cheat_sheet.as_markdown()


def test_the_data_name_lessons_that_there_are():
    told = json.loads(cheat_sheet.as_json())["causes"]

    assert [one["cause"] for one in told] == [cause.name.lower() for cause in Cause]
    assert all(one["lesson"] == one["lessons"][0] == lesson(one["lesson"]).number for one in told)


def test_the_copy_in_the_documentation_is_current():
    assert DOCS.read_text(encoding="utf-8") == cheat_sheet.as_markdown(), (
        "write it anew: gpututor cheatsheet --out docs/cheatsheet.md"
    )
