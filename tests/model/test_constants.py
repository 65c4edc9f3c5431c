"""The model's constants: read, refused, set otherwise for a while."""

from __future__ import annotations

import pytest

from gpututor.errors import DataFileError
from gpututor.model import constants
from gpututor.model.costs.walk import floor_s


def test_a_constant_is_another_inside_the_block_and_its_own_again_after_it():
    before = floor_s()
    with constants.other({"walk.floor_us": 5}):
        inside = floor_s()

    assert (inside, floor_s()) == (pytest.approx(5e-6), before)


def test_it_is_its_own_again_after_an_error():
    before = floor_s()
    with pytest.raises(ZeroDivisionError), constants.other({"walk.floor_us": 5}):
        raise ZeroDivisionError

    assert floor_s() == before


def test_who_remembers_is_told_on_the_way_in_and_out(monkeypatch):
    told = []
    monkeypatch.setattr(constants, "ON_CHANGE", [lambda: told.append(1)])
    with constants.other({"walk.floor_us": 5}):
        assert len(told) == 1

    assert len(told) == 2


def test_a_constant_that_is_not_there_is_refused_by_name():
    with pytest.raises(DataFileError, match=r"data/model\.toml, walk: there is no ceiling_us"):
        constants.other({"walk.ceiling_us": 5}).__enter__()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[other]\n", "walk: missing"),
        ("[walk]\nfloor_us = 1\n", "floor_us: has no source"),
        ('[walk]\nfloor_us = 1\nsources = { floor_us = "x", roof_us = "y" }\n', "is the source of nothing"),
        ('[walk]\nfloor_us = -1\nsources = { floor_us = "x" }\n', "is -1"),
        ('[walk]\nfloor_us = "1"\nsources = { floor_us = "x" }\n', "a number is needed"),
    ],
)
def test_a_damaged_table_is_refused_in_words(text, problem, tmp_path, monkeypatch):
    (tmp_path / "model.toml").write_text(text)
    monkeypatch.setattr(constants, "data_dir", lambda: tmp_path)
    constants.group.cache_clear()
    try:
        with pytest.raises(DataFileError, match=problem):
            constants.group("walk")
    finally:
        constants.group.cache_clear()
