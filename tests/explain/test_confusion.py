"""Planted causes are found in traces; the table in the docs is about all of them, here is every fourth."""

from __future__ import annotations

import re

import pytest

from tools import confusion

LOOPS = list(confusion.planted())


@pytest.mark.parametrize("one", LOOPS[::4], ids=lambda one: f"{one.name}, {one.machine}")
def test_what_was_planted_is_what_is_found(one, tmp_path):
    explained = confusion.verdict(one, tmp_path)

    assert confusion.right(one, explained), confusion.named(explained, 3)


def test_every_kind_of_loop_is_among_them():
    assert {one.name for one in LOOPS[::4]} == {one.name for one in LOOPS}


def test_the_published_table_is_about_all_loops_and_at_least_95_percent_are_right():
    page = confusion.PAGE.read_text(encoding="utf-8")
    n_right, n_all = map(int, re.search(r"(\d+) of (\d+) are right", page).groups())
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|", page, re.MULTILINE))

    assert n_all == len(LOOPS)
    assert n_right >= 0.95 * n_all
    assert {name: int(n) for name, n in rows.items()} == {
        name: sum(one.name == name for one in LOOPS) for name in {one.name for one in LOOPS}
    }
