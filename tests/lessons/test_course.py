"""Every lesson as a reader without a GPU runs it: its experiment as shipped, the page computed from it, its exercises.

No browser here: marimo itself runs the notebook, with the result of its experiment lying where a reader's would.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import marimo as mo
import pytest

from gpututor.exercises.keeping import kept_case
from gpututor.exercises.registry import EXERCISES, exercise
from gpututor.grading.judging import judge_item
from gpututor.lab.worker import find, seed_generators
from gpututor.progress import Progress
from gpututor.results import StoredResult, now_utc
from gpututor.store import Store
from tests.exercises.answers import Answers
from tests.lessons.reading import PATHS, Notebook, calls

LESSONS = [notebook for notebook in map(Notebook, PATHS) if notebook.number]
MOST_S = 60.0  # the experiment as shipped, on a quiet machine with two cores and no GPU
BESIDE_OTHERS = 2.5  # times as long where other tests run on the same two cores
OTHER_MACHINES = ("T4", "H100-SXM")
FAILED = re.compile(r"could not be drawn|can't be shown|Traceback")


@dataclass
class Lesson:
    """A lesson whose experiment was run once as shipped, and its page."""

    notebook: Notebook
    took_s: float
    shown: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Any] = field(default_factory=dict)

    def with_chosen(self, **defs: Any) -> Lesson:
        """The page with some names set from outside, such as a control's."""
        return Lesson(self.notebook, self.took_s, *page(self.notebook, **defs))


def page(notebook: Notebook, **defs: Any) -> tuple[dict[str, str], Mapping[str, Any]]:
    """What each cell shows, as HTML text, and the names that the cells define."""
    name = f"lesson_{notebook.number}"
    spec = importlib.util.spec_from_file_location(name, notebook.path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outputs, names = module.app.run(defs=defs or None)
    cells = [cell.name for cell in notebook.cells][-len(outputs) :]
    shown = {cell: mo.as_html(out).text for cell, out in zip(cells, outputs, strict=False) if out is not None}
    return shown, names


def started(notebook: Notebook) -> tuple[str, dict[str, Any]]:
    """The experiment that the lesson's button starts, and its parameters as the page passes them."""
    (call,) = [call for cell in notebook.cells for call in calls(cell, "flow.run_buttons")]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(notebook.setup.body, []), notebook.path.name, "exec"), names)
    experiment, params = names["flow"].experiment.run, call.args[2:]
    if not params:
        return experiment, {}
    control = SimpleNamespace(value=None)
    named = {node.id for node in ast.walk(params[0]) if isinstance(node, ast.Name)} - set(names)
    controls = {each: first_value(notebook, each) or control for each in named}
    told = eval(compile(ast.Expression(params[0]), notebook.path.name, "eval"), names, controls)
    return experiment, told


def first_value(notebook: Notebook, name: str) -> Any:
    """A control as it stands when the page opens."""
    return page(notebook)[1].get(name)


@pytest.fixture(scope="module", params=LESSONS, ids=lambda notebook: notebook.path.stem)
def lesson(request, tmp_path_factory):
    notebook = request.param
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("GPUTUTOR_HOME", str(home))
        patch.setenv("GPUTUTOR_LOCK_DIR", str(home / "lock"))
        patch.setattr(mo, "query_params", lambda: {"instructor": "1"})
        experiment, params = started(notebook)
        results = Store().results(f"{notebook.number:02d}")
        folder = results.new_folder()
        patch.chdir(folder)
        began_s = time.monotonic()
        seed_generators(0)
        data = find(experiment)(Progress(results_dir=folder), **params)
        took_s = time.monotonic() - began_s
        at = now_utc().isoformat(timespec="seconds")
        results.keep(StoredResult(folder, "done", experiment, params, data, "", at, 1, 1))
        yield Lesson(notebook, took_s, *page(notebook))


def cases(lesson: Lesson) -> dict[str, Any]:
    """Each exercise's case as the page drew it from the run, by number."""
    found = {}
    for cell in lesson.notebook.cells:
        for call in calls(cell, "flow.exercise_card"):
            one = eval(ast.unparse(call.args[0]), dict(lesson.names))
            found[one.number] = eval(ast.unparse(call.args[3]), dict(lesson.names))
    return found


def whose(number: str, case: Any) -> str:
    """Whether a grader takes the page's case for our own run's, or how it differs."""
    return judge_item({"number": number, "answer": "", "case": json.loads(json.dumps(case)), "hidden": []})["case"]


def answers(number: str) -> Answers:
    return importlib.import_module(f"tests.exercises.test_ex{int(number.partition('.')[0]):02d}").ANSWERS[number]


def test_the_experiment_as_shipped_is_done_within_a_minute(lesson):
    beside_others = "PYTEST_XDIST_WORKER" in os.environ

    assert lesson.took_s < MOST_S * (BESIDE_OTHERS if beside_others else 1)


def test_every_cell_that_shows_something_shows_it(lesson):
    hidden = {"recall", "damage"}

    assert set(lesson.notebook.showing_cells) - set(lesson.shown) - hidden == set()


def test_no_figure_gave_up(lesson):
    assert {cell: html for cell, html in lesson.shown.items() if FAILED.search(html)} == {}


def test_the_parts_of_a_lesson_are_there(lesson):
    whole = " ".join(lesson.shown.values())

    for part in ("gt-place", "gt-guess", "gt-run", "gt-exercise", "gt-hints", "gt-take", "gt-next", "gt-notes"):
        assert part in whole, part


def test_exercises_are_blank(lesson):
    whole = " ".join(lesson.shown.values())

    assert whole.count("Not answered yet.") == len(cases(lesson))


def test_every_exercise_of_the_lesson_is_on_the_page(lesson):
    assert set(cases(lesson)) == {each.number for each in EXERCISES if each.lesson == lesson.notebook.number}


def test_the_page_keeps_each_case_for_the_command(lesson):
    needed = {number: case for number, case in cases(lesson).items() if exercise(number).needs_run}

    assert {number: kept_case(Store(), exercise(number)) for number in needed} == needed


def test_a_grader_finds_the_pages_case_to_be_our_own_runs(lesson):
    made_by_us = {number: case for number, case in cases(lesson).items() if exercise(number).case_from}

    assert {number: whose(number, case) for number, case in made_by_us.items()} == dict.fromkeys(made_by_us, "ours")


def test_our_solutions_earn_full_marks_on_this_run(lesson):
    for number, case in cases(lesson).items():
        judged = exercise(number).check(answers(number).right_for(case), case)

        assert (judged.state, judged.earned_share) == ("right", 1.0), f"{number}: {judged.text}"


def test_a_run_that_was_stopped_half_way_still_makes_a_page(lesson):
    results = Store().results(f"{lesson.notebook.number:02d}")
    whole = results.latest()
    if "points" not in whole.data:
        pytest.skip("this run is one job, not a sweep; test_states.py stops it")
    for n_points in {1, len(whole.data["points"]) // 2, len(whole.data["points"]) - 1}:
        points = whole.data["points"][:n_points]
        tapes = {
            point["key"]: whole.data["tapes"][point["key"]] for point in points if point["key"] in whole.data["tapes"]
        }
        part = {**whole.data, "points": points, "tapes": tapes}
        shutil.copytree(whole.folder, folder := results.new_folder(), dirs_exist_ok=True)
        results.keep(replace(whole, folder=folder, state="stopped", data=part))
        shown, _ = page(lesson.notebook)

        assert re.search("gt-take|gt-ghost", " ".join(shown.values()))  # with too little for a picture it says so
        assert {cell: html for cell, html in shown.items() if FAILED.search(html)} == {}
        shutil.rmtree(folder)


@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_with_another_card_chosen_the_page_holds(lesson, machine):
    control = next((name for name in ("on", "chosen_card") if name in lesson.names), None)
    if control is None:
        pytest.skip("its card is chosen before the run, because the host's time is real")
    other = lesson.with_chosen(**{control: SimpleNamespace(value=machine)})

    assert {cell: html for cell, html in other.shown.items() if FAILED.search(html)} == {}
    assert len(other.shown) >= len(lesson.shown) - 2
    assert machine.partition("-")[0] in " ".join(other.shown.values())
    for number, case in cases(other).items():
        assert whose(number, case) in ("ours", "own", "none"), number
