"""Every threat of a graded class as a real attack, all in one batch with an honest learner, in sandboxes.

Nobody gains a point by it, the honest one loses none, grading goes on, and the report says what happened.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from gpututor.exercises.submission import Answer, Submission, to_text
from gpututor.grading import classroom, grade
from tests.grading.synthetic import sealed
from tests.grading.threats import FORMULA, MARKUP, RIGHT, SHOWN, THREATS, calling, reading

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not here")
IN_TIME, LATE = "2026-01-15T12:00:00+00:00", "2026-01-18T12:00:00+00:00"
HONEST = ("honest-1", "honest-2")
NOT_SCORED = {
    "other-id": "scored for neither",
    "edited-time": "its hash doesn't fit",
    "doubled": "twice",
    "renamed": "unknown",
}
IN_ALL = (*HONEST, *THREATS, *NOT_SCORED, "deleted", "claims-early")


def told(learner_id, answers, at=IN_TIME):
    case = {number: SHOWN if number == "1.2" else {} for number in answers}
    given = {number: Answer(text, case[number], at) for number, text in answers.items()}
    names = {"markup": MARKUP, "formula": FORMULA}
    return to_text(Submission(learner_id, names.get(learner_id, learner_id), given, at))


def write(folder, name, text):
    (folder / "submissions" / f"{name}.json").write_text(text, encoding="ascii")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class, graded by the command; killed half-way, and gone on with."""
    folder = tmp_path_factory.mktemp("threats")
    (folder / "submissions").mkdir()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    threats = THREATS | {
        "reads": reading(str(folder), str(folder / "class" / "seed.secret"), str(folder / "submissions")),
        "calls-out": calling(listener.getsockname()[1]),
    }
    for name in HONEST:
        write(folder, name, told(name, RIGHT))
    for name, threat in threats.items():
        write(folder, name, told(name, {threat.number: threat.answer}))
    hand_in_what_is_no_submission(folder)
    names = {"markup": MARKUP, "formula": FORMULA}
    rows = [f'{name},"{names.get(name, name)}",,,' for name in IN_ALL]
    (folder / "roster.csv").write_text("id,name,email,group,extension\n" + "\n".join(rows), encoding="utf-8")
    asked = {"lessons": "1, 3, 7, 9", "late": "10 % a day, 3 days"}
    classroom.new(folder / "class", folder / "roster.csv", "2026-01-16 23:59", "Europe/Berlin", **asked)
    running = subprocess.Popen(command(folder), stdout=subprocess.DEVNULL)
    kept = folder / "out" / grade.WORK
    while len(list(kept.glob("*.json"))) < len(IN_ALL) // 2:
        assert running.poll() is None, "it was over before it was killed"
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    n_kept = len(list(kept.glob("*.json")))
    subprocess.run(command(folder), stdout=subprocess.DEVNULL, check=True)
    n_judged = json.loads((folder / "out" / grade.RUN).read_text())["judged"]
    yield folder, json.loads((folder / "out" / grade.RESULTS).read_text()), (n_kept, n_judged), listener
    listener.close()


def hand_in_what_is_no_submission(folder):
    """Files that were changed, doubled or renamed after they were saved, and one of somebody else's id."""
    good = told("x", {"1.2": RIGHT["1.2"]})
    write(folder, "other-id", told(HONEST[1], {"1.2": "x = 1"}))
    write(folder, "edited-time", told("edited-time", {"1.2": RIGHT["1.2"]}, LATE).replace(LATE, IN_TIME))
    write(folder, "doubled", good.replace('"answers": {', '"answers": {}, "answers": {').replace('"x"', '"doubled"'))
    renamed = json.loads(good.replace('"x"', '"renamed"'))
    renamed["answers"]["99.9"] = renamed["answers"].pop("1.2")
    write(folder, "renamed", sealed({key: each for key, each in renamed.items() if key != "hash"}))
    write(folder, "deleted", told("deleted", {"3.2": RIGHT["3.2"]}))
    write(folder, "claims-early", told("claims-early", {"1.2": RIGHT["1.2"]}, LATE))


def command(folder):
    asked = [sys.executable, "-m", "gpututor", "grade", folder / "submissions", "--class", folder / "class"]
    return [*map(str, asked), "--out", str(folder / "out"), "-j", "2", "--isolation", "bubblewrap"]


def learner(graded, name):
    return next(one for one in graded[1]["learners"] if one["id"] == name)


def exercises(graded, name):
    return {each["number"]: each for each in learner(graded, name)["exercises"]}


@pytest.mark.parametrize("name", HONEST)
def test_the_honest_have_full_marks_beside_all_of_it(graded, name):
    each = exercises(graded, name)

    assert {number: each[number]["points"] for number in RIGHT} == dict.fromkeys(RIGHT, 10.0)
    assert all(each[number]["hidden"] == [3, 3] for number in RIGHT)


@pytest.mark.parametrize("name", THREATS)
def test_an_attack_earns_no_more_than_an_honest_try(graded, name):
    threat = THREATS[name]
    each = exercises(graded, name)[threat.number]

    assert each["points"] <= 10 * threat.earns + 0.01, each["text"]
    assert each["state"] in ("wrong", "partial")


def test_the_report_names_what_happened(graded):
    found = {}
    for each in graded[1]["summary"]["incidents"]:
        found.setdefault(each["id"], []).append(each["what"])

    assert found == {name: [threat.incident] for name, threat in THREATS.items() if threat.incident}


@pytest.mark.parametrize("name", NOT_SCORED)
def test_a_file_that_was_tampered_with_is_scored_for_nobody(graded, name):
    one = learner(graded, name)

    assert (one["state"], one["points"]) == ("not scored", 0)
    assert any(NOT_SCORED[name] in note for note in one["notes"])


def test_an_answer_that_was_taken_out_counts_as_not_answered(graded):
    each = exercises(graded, "deleted")

    assert (each["3.2"]["points"], each["1.2"]["state"]) == (10.0, "unanswered")


def test_what_came_late_loses_its_days(graded):
    one = learner(graded, "claims-early")

    assert (one["late_days"], one["points"]) == (2, 8.0)


def test_killed_half_way_it_judges_nothing_twice(graded):
    folder, _, (n_kept, n_judged), _ = graded

    assert n_kept + n_judged == len(list((folder / "out" / grade.WORK).glob("*.json")))


def test_nothing_of_others_was_found_and_nobody_was_called(graded):
    assert "0 found" in exercises(graded, "reads")["1.2"]["text"]
    assert "Connection" in exercises(graded, "calls-out")["1.2"]["text"]
    with pytest.raises(BlockingIOError):
        graded[3].accept()


def test_no_page_holds_what_a_learner_wrote_as_markup(graded):
    pages = [path.read_text("utf-8") for path in (graded[0] / "out").rglob("*.html")]

    assert len(pages) == len(IN_ALL) + 1
    assert any("&lt;script&gt;alert(1)" in page for page in pages)
    assert not any("<script" in page or "<img" in page for page in pages)


def test_no_table_holds_a_formula(graded):
    tables = [path.read_text("utf-8-sig") for path in (graded[0] / "out").glob("*.csv")]

    assert tables
    assert not any(f",{FORMULA}" in text or f'"{FORMULA}' in text or text.startswith("=") for text in tables)


def test_no_process_is_left(graded):
    import psutil

    folder = str(graded[0])
    left = [one for one in psutil.process_iter(["cmdline"]) if folder in " ".join(one.info["cmdline"] or [])]

    assert [one for one in left if one.pid != os.getpid()] == []
