"""The button `Save my answers` of the front page."""

from __future__ import annotations

import pytest

from gpututor.exercises.keeping import keep_given
from gpututor.exercises.registry import exercise
from gpututor.exercises.submission import from_bytes
from gpututor.page import save_answers
from gpututor.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return Store("zoë")


def test_without_an_answer_there_is_no_button(store):
    assert save_answers(store) is None


def test_the_file_is_made_when_the_button_is_pressed(store, monkeypatch):
    keep_given(store, exercise("3.1"), "224", {"small": 16})
    handed_over = []
    monkeypatch.setattr("marimo.download", lambda made, **told: handed_over.append((made, told)) or "button")

    assert save_answers(store) == "button"
    keep_given(store, exercise("3.1"), "225", {"small": 16})
    made, told = handed_over[0]
    assert from_bytes(made(), "a.json").answers["3.1"].answer == "225"
    assert told["filename"].isascii()


def test_marimo_takes_it(store):
    keep_given(store, exercise("3.1"), "224", {})

    assert "Save my answers" in save_answers(store).text
