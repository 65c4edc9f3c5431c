"""What must hold for every lesson's source: its place, its prose, its controls, its exercise."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Mapping
from html import escape
from typing import Any

import marimo as mo
import pytest

from gpututor.exercises.form import Exercise
from gpututor.exercises.registry import EXERCISES
from gpututor.page.course import lesson
from tests.lessons.journeys import JOURNEYS
from tests.lessons.reading import PATHS, ROOT, Notebook, body, calls, n_words

NOTEBOOKS = [Notebook(path) for path in PATHS]
LESSONS = [notebook for notebook in NOTEBOOKS if notebook.number]  # the front page has no guess and no exercise

TYPED = re.compile(
    r"\d[\d.,]*[ \u00a0]?(?:%|[mµun]s\b|s\b|min\b|h\b|[kMGT]?i?B(?:/s)?\b|[kMGTP]?FLOP\b|W\b|[MG]Hz\b|times\b|×)|\$\d"
)
NO_RESULTS: Mapping[int, Mapping[str, str]] = {
    2: {
        "25 %": "the lesson's title",
        "100 %": "asks what the gauge means when it is at its stop",
    },
    3: {"100 %": "asks what the gauge means when it is at its stop"},
    19: {
        "25 %": "the lesson's title",
        "80 %": "the lesson's title",
    },
}
"""Typed figures that are no results, by lesson, each with the reason."""

every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda each: each.path.stem)
every_lesson = pytest.mark.parametrize("notebook", LESSONS, ids=lambda each: each.path.stem)


def module(notebook: Notebook):
    return importlib.import_module(f"gpututor.exercises.ex{notebook.number:02d}")


def exercises(notebook: Notebook) -> dict[str, Exercise]:
    """The lesson's exercises by their names in its module."""
    return {name: each for name, each in vars(module(notebook)).items() if isinstance(each, Exercise)}


def typed_figures(notebook: Notebook) -> set[str]:
    texts = list(notebook.sentences())
    if notebook.number:
        texts += [text for each in exercises(notebook).values() for text in (each.task, *each.hints)]
        texts += [text for pair in module(notebook).RECALL for text in pair]
    return {found.replace("\u00a0", " ") for prose in texts for found in TYPED.findall(prose)}


# --- place -----------------------------------------------------------------------------------------------------


@every_notebook
def test_the_file_is_the_one_the_course_lists(notebook):
    assert lesson(notebook.number).file == notebook.path.name


@every_notebook
def test_the_page_is_about_the_lesson_of_its_number(notebook):
    asked = [ast.unparse(call) for call in calls(notebook.setup, "gt.lesson")]

    assert f"gt.lesson({notebook.number})" in asked or notebook.number == 0


@every_notebook
def test_tab_and_gallery_name_number_and_title(notebook):
    place = f"{notebook.number:02d} · {lesson(notebook.number).title}"

    assert f'title = "{place}"' in notebook.source
    assert f'app_title="{place}"' in notebook.source


@every_notebook
def test_the_gallery_shows_the_question(notebook):
    assert f'description = "{lesson(notebook.number).question}"' in notebook.source


@every_notebook
def test_there_is_one_headline_and_no_second_one(notebook):
    headers = [call for cell in notebook.cells for call in calls(cell, "flow.header", "gt.front_header")]

    assert len(headers) == 1
    assert not any(re.search("^ *# ", prose, re.MULTILINE) for prose in notebook.markdown().values())


# --- cells -----------------------------------------------------------------------------------------------------


@every_notebook
def test_every_cell_has_a_name(notebook):
    assert [cell.name for cell in notebook.cells if cell.name.strip("_") == ""] == []


@every_notebook
def test_every_control_is_shown(notebook):
    assert set(notebook.controls()) - notebook.shown_names() == set()


@every_notebook
def test_a_cell_uses_what_it_asks_for(notebook):
    # marimo reads a cell's needs from its body: a parameter that isn't used there holds nothing back
    unused = {
        f"{cell.name}({argument.arg})"
        for cell in notebook.cells
        for argument in cell.args.args
        if not any(isinstance(n, ast.Name) and n.id == argument.arg for s in cell.body[:-1] for n in ast.walk(s))
    }

    assert unused == set()


@every_notebook
def test_nothing_is_drawn_that_is_not_the_cells_last_expression(notebook):
    lost = {
        f"{cell.name}: {ast.unparse(statement)[:40]}"
        for cell in notebook.cells
        for statement in body(cell)[:-1]
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if re.match(r"gt\.|mo\.(?!stop)", ast.unparse(statement.value.func))
    }

    assert lost == set()


def test_marimo_finds_nothing_to_say():
    command = [sys.executable, "-m", "marimo", "check", "--strict", *map(str, PATHS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


# --- prose -----------------------------------------------------------------------------------------------------


@every_notebook
def test_no_prose_cell_is_longer_than_80_words(notebook):
    assert {name: n for name, prose in notebook.markdown().items() if (n := n_words(prose)) > 80} == {}


@every_lesson
def test_a_lesson_is_read_in_a_few_minutes(notebook):
    tasks = [each.task for each in exercises(notebook).values()]
    total = sum(map(n_words, [*notebook.sentences(), *tasks]))

    assert 400 <= total <= 900


@every_notebook
def test_no_result_is_typed(notebook):
    assert typed_figures(notebook) - set(NO_RESULTS.get(notebook.number, {})) == set()


@every_notebook
def test_every_exception_is_still_needed(notebook):
    assert set(NO_RESULTS.get(notebook.number, {})) <= typed_figures(notebook)


@pytest.mark.parametrize("typed", ["13 ms", "13.7 µs", "25 %", "25\u00a0%", "$3.06", "900 GB/s", "4 times", "2 s."])
def test_a_typed_figure_is_seen(typed):
    assert TYPED.search(f"It takes {typed} here")


@pytest.mark.parametrize("prose", ["lesson 2", "a V100", "step 3 of 5", "$h$ and $k$", "a 2 by 2 table", "{x} ms"])
def test_a_number_that_measures_nothing_is_not(prose):
    assert not TYPED.search(prose)


@every_notebook
def test_nobody_shouts(notebook):
    assert [prose for prose in notebook.sentences() if "!" in prose] == []


# --- guess and exercise ----------------------------------------------------------------------------------------


@every_lesson
def test_the_run_opens_only_after_the_guess(notebook):
    buttons = [call for cell in notebook.cells for call in calls(cell, "flow.run_buttons")]

    assert all(ast.unparse(call.args[1]) == "guess.value" for call in buttons)
    assert buttons


@every_lesson
def test_each_option_can_be_the_answer_and_only_one_is(notebook, monkeypatch, tmp_path):
    options = what_setup_defines(notebook, monkeypatch, tmp_path)["flow"].question.options
    outcomes = [1e-5 * 1.1**k for k in range(200)]  # from a hundred-thousandth to more than a thousand
    fitting = [[option for option, fits in options.items() if fits(outcome)] for outcome in outcomes]

    assert {len(one) for one in fitting} == {1}
    assert {option for one in fitting for option in one} == set(options)


def test_every_lesson_is_walked_through_in_the_browser():
    assert [journey.file for journey in JOURNEYS] == [notebook.path.name for notebook in LESSONS]


def what_setup_defines(notebook: Notebook, monkeypatch: pytest.MonkeyPatch, home) -> dict[str, Any]:
    """The names of a lesson's set-up cell, run without a page."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(home))
    monkeypatch.setattr(mo, "query_params", dict)
    names: dict[str, Any] = {}
    exec(compile(ast.Module(notebook.setup.body, []), notebook.path.name, "exec"), names)
    return names


@every_lesson
def test_the_registry_lists_the_lessons_exercises(notebook):
    listed = [each for each in EXERCISES if each.lesson == notebook.number]

    assert listed == list(exercises(notebook).values())
    assert [each.number for each in listed] == [f"{notebook.number}.{k}" for k in range(1, len(listed) + 1)]


@every_lesson
def test_a_lesson_has_one_to_three_exercises_and_one_is_about_the_readers_own_run(notebook):
    kinds = [each.kind for each in exercises(notebook).values()]

    assert 1 <= len(kinds) <= 3
    assert set(kinds) & {"number", "choice", "diagnosis"}


@every_lesson
def test_the_page_shows_each_exercise(notebook):
    shown = " ".join(ast.unparse(call) for cell in notebook.cells for call in calls(cell, "flow.exercise_card"))

    assert [name for name in exercises(notebook) if f"ex{notebook.number:02d}.{name}" not in shown] == []


@every_lesson
def test_two_questions_from_earlier_lessons_stand_there_while_it_runs(notebook, monkeypatch, tmp_path):
    shown = [ast.unparse(call) for cell in notebook.cells for call in calls(cell, "flow.recall")]
    flow = what_setup_defines(notebook, monkeypatch, tmp_path)["flow"]

    assert shown == ["flow.recall(get_phase())"]
    assert all(escape(question) in flow.recall("running").text for question, _ in module(notebook).RECALL)
    assert len(module(notebook).RECALL) == 2


@every_lesson
def test_three_wrong_answers_and_the_solution_are_tested(notebook):
    path = ROOT / "tests" / "exercises" / f"test_ex{notebook.number:02d}.py"
    answers = importlib.import_module(f"tests.exercises.{path.stem}").ANSWERS

    assert set(answers) == {each.number for each in exercises(notebook).values()}
    assert [number for number, each in answers.items() if len(each.wrong) < 3] == []
