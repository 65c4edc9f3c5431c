"""What a finished run left for its page, and links that stay with their reader."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gpututor.page as gt
from gpututor.page.course import lesson
from gpututor.paths import data_dir
from gpututor.results import StoredResult

TAPE = data_dir() / "recordings" / "seq2seq.tape.gz"


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("one.tape.gz", "two.tape.gz"):
        shutil.copy(TAPE, tmp_path / name)
    return tmp_path


def left(folder: Path | None, data: object) -> StoredResult:
    return StoredResult(folder, "done", "x:y", {}, data, "", "", 1, 1)


def test_the_one_tape_of_a_run_is_found(folder):
    assert gt.kept_tapes(left(folder, {"tape": "one.tape.gz"}), "done").tapes == {"tape": folder / "one.tape.gz"}


def test_several_tapes_keep_their_names(folder):
    kept = gt.kept_tapes(left(folder, {"tapes": {"a": "one.tape.gz", "b": "two.tape.gz"}}), "stopped")

    assert kept.tapes == {"a": folder / "one.tape.gz", "b": folder / "two.tape.gz"}


@pytest.mark.parametrize("phase", ["ready", "queued", "running", "failed"])
def test_only_a_finished_run_has_tapes(folder, phase):
    assert gt.kept_tapes(left(folder, {"tape": "one.tape.gz"}), phase) == gt.Kept()


@pytest.mark.parametrize("result", [None, left(None, {"tape": "x"}), left(Path(), {"tape": None}), left(Path(), 3)])
def test_a_run_without_tapes_is_no_trouble(result):
    assert gt.kept_tapes(result, "done") == gt.Kept()


def damage_cut(path):
    path.write_bytes(path.read_bytes()[:100])


def damage_other(path):
    path.write_text("no tape at all")


@pytest.mark.parametrize("damage", [damage_cut, damage_other, Path.unlink], ids=["cut", "something else", "gone"])
def test_a_damaged_tape_is_one_sentence(folder, damage):
    damage(folder / "two.tape.gz")
    kept = gt.kept_tapes(left(folder, {"tapes": {"a": "one.tape.gz", "b": "two.tape.gz"}}), "done")

    assert kept.tapes == {}
    assert kept.trouble.startswith("What this run left can't be shown: ")
    assert 'role="alert"' in kept.instead("waiting").text


def test_without_trouble_the_page_says_what_it_waits_for():
    assert "opens after the run" in gt.Kept().instead("It opens after the run.").text


def test_no_trouble_is_no_line():
    assert gt.trouble_line(None) is None


def test_a_troubles_text_is_no_markup():
    assert "<b>" not in gt.trouble_line("<b>").text


# --- links -----------------------------------------------------------------------------------------------------


@pytest.fixture
def on_a_page(monkeypatch):
    def opened(**query: str) -> None:
        monkeypatch.setattr("gpututor.page.links.mo.running_in_notebook", lambda: True)
        monkeypatch.setattr("gpututor.page.links.mo.query_params", lambda: query)

    return opened


def test_a_link_names_the_lessons_file():
    assert gt.address(lesson(1)) == "?file=01_the_gauge.py"


def test_a_link_keeps_the_reader(on_a_page):
    on_a_page(file="02.py", learner="Zoë & co", other="x")

    assert gt.address(lesson(1)) == "?file=01_the_gauge.py&learner=Zo%C3%AB+%26+co"


def test_a_link_keeps_an_instructor_one(on_a_page):
    on_a_page(instructor="1")

    assert gt.address(lesson(1)) == "?file=01_the_gauge.py&instructor=1"


def test_a_link_takes_more():
    assert gt.address(lesson(1), instructor="1") == "?file=01_the_gauge.py&instructor=1"
