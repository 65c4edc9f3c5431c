"""`gpututor certificate` and `gpututor cheatsheet`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from gpututor.cli.papers import certificate_command, cheatsheet_command
from gpututor.exercises.form import Judged
from gpututor.exercises.keeping import keep_judged
from gpututor.exercises.registry import exercise
from gpututor.page import cheat_sheet
from gpututor.page.front import NAME_OF
from gpututor.store import Store


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))


def call(command, *words):
    return CliRunner().invoke(command, [str(word) for word in words])


def solved(learner: str = "me") -> Store:
    store = Store(learner)
    keep_judged(store, exercise("3.1"), "224", {}, Judged("right", ""))
    return store


# --- certificate -----------------------------------------------------------------------------------------------


def test_a_certificate_is_written_and_its_claim_said(tmp_path):
    solved()
    done = call(certificate_command, "--out", tmp_path / "c.html", "--name", "Ada")

    assert done.exit_code == 0
    assert "1 of " in done.output
    assert ">Ada<" in (tmp_path / "c.html").read_text("utf-8")


def test_the_name_of_the_front_page_is_the_default(tmp_path):
    solved("ann").put(*NAME_OF, "Ann Archer")
    call(certificate_command, "--out", tmp_path / "c.html", "--learner", "ann")

    assert "Ann Archer" in (tmp_path / "c.html").read_text("utf-8")


def test_with_nothing_done_it_is_written_and_says_so(tmp_path):
    done = call(certificate_command, "--out", tmp_path / "c.html")

    assert done.exit_code == 0
    assert "certifies nothing" in done.output


def test_an_older_certificate_is_replaced(tmp_path):
    for name in ("Ada", "Bob"):
        assert call(certificate_command, "--out", tmp_path / "c.html", "--name", name).exit_code == 0

    assert ">Bob<" in (tmp_path / "c.html").read_text("utf-8")


@pytest.mark.parametrize("text", ["my notes", "<meta name='generator' content='gpututor cheat sheet'>", ""])
def test_what_is_no_certificate_is_not_replaced(tmp_path, text):
    (tmp_path / "c.html").write_text(text)
    done = call(certificate_command, "--out", tmp_path / "c.html")

    assert done.exit_code != 0
    assert "is no certificate" in done.output
    assert (tmp_path / "c.html").read_text() == text


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    done = call(certificate_command, "--out", tmp_path / "none" / "c.html")

    assert "there is no folder" in done.output


def test_a_name_of_a_thousand_letters_is_refused(tmp_path):
    assert call(certificate_command, "--out", tmp_path / "c.html", "--name", "a" * 1000).exit_code == 2


def test_grades_that_are_none_are_one_sentence(tmp_path):
    (tmp_path / "g.json").write_text("{}")
    done = call(certificate_command, "--out", tmp_path / "c.html", "--grades", tmp_path / "g.json")

    assert "holds no grades" in str(done.exception)
    assert not (tmp_path / "c.html").exists()


# --- cheat sheet -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "made"),
    [("a.html", cheat_sheet.as_html), ("a.md", cheat_sheet.as_markdown), ("a.json", cheat_sheet.as_json)],
)
def test_the_form_follows_the_files_name(tmp_path, name, made):
    assert call(cheatsheet_command, "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text("utf-8") == made()


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.json"])
def test_an_older_sheet_is_replaced_in_each_form(tmp_path, name):
    done = [call(cheatsheet_command, "--out", tmp_path / name).exit_code for _ in range(2)]

    assert done == [0, 0]


def test_without_a_file_it_is_printed():
    assert call(cheatsheet_command).output == cheat_sheet.as_markdown()
    assert json.loads(call(cheatsheet_command, "--format", "json").output)["causes"]


def test_a_name_without_a_known_end_needs_a_form(tmp_path):
    assert "say which with --format" in call(cheatsheet_command, "--out", tmp_path / "sheet").output
    assert call(cheatsheet_command, "--out", tmp_path / "sheet", "--format", "md").exit_code == 0


def test_somebody_elses_file_is_left_alone(tmp_path):
    (tmp_path / "a.md").write_text("# my own notes on gpututor\n")

    assert "is no cheat sheet" in call(cheatsheet_command, "--out", tmp_path / "a.md").output
