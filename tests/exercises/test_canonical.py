"""Our own cases: the same as a page makes of a run, on the machine that a learner's case names."""

from __future__ import annotations

import importlib
import json

import pytest

from gpututor.exercises import canonical, ex04, ex09
from gpututor.exercises.registry import exercise
from gpututor.experiments.stopwatch import stopwatch
from gpututor.grading.judging import judge_item
from gpututor.lookup import machine_named
from gpututor.model import tape_file
from gpututor.paths import data_dir
from gpututor.replay import play_file
from tools import canonical_runs

NUMBERS = ("1.1", "3.1", "4.1", "5.1", "9.1")
each_number = pytest.mark.parametrize("number", NUMBERS)


def case_on(number, machine="g4dn.xlarge"):
    return json.loads(json.dumps(canonical.case_on(number, machine)))


def right(number, case):
    answers = importlib.import_module(f"tests.exercises.test_ex{int(number[0]):02d}").ANSWERS[number]
    return str(answers.right_for(case))


def judged(number, case, answer):
    told = judge_item({"number": number, "answer": answer, "case": case, "hidden": []})
    return told["share"], told["case"]


@each_number
def test_an_honest_case_is_found_to_be_ours(number):
    case = case_on(number)

    assert judged(number, case, right(number, case)) == (1.0, "ours")


@each_number
def test_an_edited_case_is_judged_by_ours(number):
    case, other = case_on(number), case_on(number, "desktop-RTX-4090")
    edited = other | {"machine": case["machine"]}
    easy = right(number, other)

    assert judged(number, edited, right(number, case)) == (1.0, "differs")
    assert judged(number, edited, easy)[0] == (1.0 if easy == right(number, case) else 0.0)


@each_number
@pytest.mark.parametrize("machine", [None, 7, "nowhere", {"a": 1}, "../x"])
def test_a_case_that_names_no_machine_of_ours_stays_the_learners(number, machine):
    assert exercise(number).case_from({"machine": machine}) is None


def test_the_page_makes_the_same_of_a_run_with_the_same_tapes():
    folder, on = data_dir() / "cases", machine_named("g5.xlarge")
    steps = {key: play_file(folder / f"{key}.tape.gz", on).step_ns for key in canonical.KEYS["4.1"]}
    tapes = {key: tape_file.load(folder / f"{key}.tape.gz") for key in canonical.KEYS["9.1"]}

    assert canonical.case_on("4.1", "g5.xlarge") == {**ex04.longer_case(steps), "machine": on.name}
    watched = ex09.case_most({key: stopwatch(tape, on) for key, tape in tapes.items()})
    assert canonical.case_on("9.1", "g5.xlarge") == {**watched, "machine": on.name}


@pytest.mark.parametrize("number", ["1.1", "9.1"])
def test_a_run_made_anew_has_the_same_entries(number, tmp_path):
    canonical_runs.make(number, tmp_path)
    for key in canonical.KEYS[number]:
        ours, again = (tape_file.load(folder / f"{key}.tape.gz") for folder in (data_dir() / "cases", tmp_path))
        assert again.entries == ours.entries


def test_the_peaks_of_memory_are_those_of_a_run_made_anew(tmp_path):
    canonical_runs.make_memory(tmp_path)

    assert json.loads((tmp_path / "memory.json").read_text()) == json.loads(
        (data_dir() / "cases" / "memory.json").read_text()
    )


def test_all_of_it_is_small():
    assert sum(path.stat().st_size for path in (data_dir() / "cases").iterdir()) < 2**20
