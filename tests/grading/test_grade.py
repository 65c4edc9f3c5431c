"""Twelve made-up learners graded on one process and on two, killed and gone on with: the same bytes."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import psutil
import pytest

from gpututor.cli import main
from gpututor.grading import classroom, grade, overrides, pool
from tests.grading import synthetic

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes by signals")
N = len(synthetic.KINDS)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Submissions, a class, and grades made on one process."""
    folder = tmp_path_factory.mktemp("grading")
    made = synthetic.make(folder, N, lessons=(1, 2))
    asked = {"lessons": "1-2", "late": "10 % a day, 3 days"}
    classroom.new(folder / "class", folder / "roster.csv", synthetic.DEADLINE, synthetic.TIMEZONE, **asked)
    results = graded(folder, "one", 1)
    return folder, made, results


def graded(folder, out, n_processes, **more):
    room = classroom.read(folder / "class")
    judges = pool.here(n_processes)
    return grade.grade(folder / "submissions", room, folder / out, judges, isolation="limits", **more)


def told_bytes(out: Path) -> dict[str, bytes]:
    """All files of the results; what a run took is none of them."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.relative_to(out).parts[0] not in (grade.WORK, grade.RUN)
    }


def command(folder, out, *more):
    told = [sys.executable, "-m", "gpututor", "grade", folder / "submissions", "--class", folder / "class"]
    return [*map(str, told), "--out", str(folder / out), "--isolation", "limits", *more]


def by_id(results):
    return {one["id"]: one for one in results["learners"]}


def test_everybody_has_the_points_that_were_counted(place):
    _, made, results = place
    learners = by_id(results)
    kept = {"late": 0.8}

    for one in made:
        assert learners[one.id]["points"] == pytest.approx((one.points or 0.0) * kept.get(one.kind, 1.0)), one.kind


def test_who_is_not_scored_is_named_with_the_reason(place):
    _, made, results = place
    files = {each["file"]: each["what"] for each in results["files"]}
    reasons = {"damaged": "is no JSON", "edited": "its hash doesn't fit", "other's id": "scored for neither"}

    assert len(files) == len(reasons)
    for one in made:
        if one.kind in reasons:
            assert reasons[one.kind] in files[f"{one.id}.json"]
            assert by_id(results)[one.id]["state"] == "not scored"


def test_the_report_names_what_misbehaved(place):
    _, made, results = place
    kinds = {one.id: one.kind for one in made}

    assert {kinds[each["id"]]: each["what"] for each in results["summary"]["incidents"]} == {
        "exits": "ended its own process",
        "endless": "ran without an end and was stopped",
    }


def test_two_processes_give_the_same_bytes(place):
    folder, _, _ = place
    graded(folder, "two", 2)

    assert told_bytes(folder / "two") == told_bytes(folder / "one")


def test_killed_and_gone_on_with_it_gives_the_same_bytes_and_judges_nothing_twice(place):
    folder, _, _ = place
    running = subprocess.Popen(command(folder, "killed", "-j", "2"), stdout=subprocess.DEVNULL)
    kept = folder / "killed" / grade.WORK
    while len(list(kept.glob("*.json"))) < 5:
        assert running.poll() is None, "it was over before it was killed"
        time.sleep(0.02)
    judges = psutil.Process(running.pid).children()
    running.send_signal(signal.SIGKILL)
    running.wait()
    psutil.wait_procs(judges, timeout=5)
    n_kept = len(list(kept.glob("*.json")))
    graded(folder, "killed", 1)
    run = json.loads((folder / "killed" / grade.RUN).read_text())

    assert not any(each.is_running() for each in judges)
    assert n_kept + run["judged"] == len(list(kept.glob("*.json")))
    assert run["judged"] > 0
    assert told_bytes(folder / "killed") == told_bytes(folder / "one")


def test_ctrl_c_ends_it_soon_and_says_how_to_go_on(place):
    folder, _, _ = place
    for k in range(
        6
    ):  # on a busy machine it may be through before we look, so then it is asked before the first verdict
        out = f"stopped {k}"
        running = subprocess.Popen(command(folder, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        work = folder / out / grade.WORK
        while running.poll() is None and not (list(work.glob("*.json")) if k < 3 else work.exists()):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
        if running.returncode:
            break

    assert running.returncode == 130
    assert said.decode().strip().endswith("run the same command again to go on.")
    assert "Traceback" not in said.decode()


def test_a_second_run_judges_nothing(place):
    folder, _, _ = place
    before = told_bytes(folder / "one")
    graded(folder, "one", 1)

    assert json.loads((folder / "one" / grade.RUN).read_text())["judged"] == 0
    assert told_bytes(folder / "one") == before


def test_a_damaged_verdict_is_judged_anew(place):
    folder, _, _ = place
    graded(folder, "two", 1)
    path = min((folder / "two" / grade.WORK).glob("*.json"))
    path.write_text(path.read_text()[:20])
    graded(folder, "two", 1)

    assert json.loads((folder / "two" / grade.RUN).read_text())["judged"] == 1
    assert told_bytes(folder / "two") == told_bytes(folder / "one")


def test_again_judges_one_learners_answers_anew(place):
    folder, _, _ = place
    graded(folder, "one", 1, again=["0000"])

    assert json.loads((folder / "one" / grade.RUN).read_text())["judged"] == 4


def test_points_by_hand_survive_regrading_and_are_shown_as_such(place):
    folder, _, _ = place
    room = classroom.read(folder / "class")
    overrides.keep(room, overrides.checked(room, "0001", "1.1", "7", "=nearly", "Dr. <b>"))
    results = graded(folder, "by hand", 1)
    (folder / "class" / "overrides.csv").unlink()
    one = by_id(results)["0001"]
    page = (folder / "by hand" / one["feedback"]).read_text("utf-8")

    assert (one["points"], one["exercises"][0]["judged_points"]) == (7.0, 0.0)
    assert "Points given by hand (0 were judged) by Dr. &lt;b&gt;: =nearly" in page
    assert results["summary"]["overrides"][0]["comment"] == "=nearly"


def test_hidden_cases_decide_and_are_told_by_number_alone(place, monkeypatch):
    folder, _, _ = place
    moved = {"n_numbers": 1_000, "number_bytes": 4, "n_read": 2, "n_written": 1, "took_ns": 120}
    drawn = []

    def draw(rng):  # half of them have twice the numbers, so that what is right for the shown case is wrong
        drawn.append(rng.choice([1_000, 2_000]))
        return {"moved": moved | {"n_numbers": drawn[-1], "card_bytes_per_s": 987_654_321_987}}

    fitted = tuple(replace(one, hidden=draw) if one.number == "1.1" else one for one in classroom.EXERCISES)
    monkeypatch.setattr(classroom, "EXERCISES", fitted)
    results = graded(folder, "hidden", 2)
    first = by_id(results)["0000"]["exercises"][0]
    n_held = drawn[:3].count(1_000)
    everything = b"".join(told_bytes(folder / "hidden").values())

    assert first["hidden"] == [3, n_held]
    assert first["points"] == pytest.approx(10 * n_held / 3, abs=0.01)
    assert f"{n_held} of 3 held".encode() in everything
    assert b"987654321987" not in everything


def test_two_at_once_in_one_folder_are_refused(place, capsys):
    folder, _, _ = place
    from filelock import FileLock

    with FileLock(folder / "one" / grade.WORK / ".lock"), pytest.raises(SystemExit) as ended:
        main(command(folder, "one")[3:])

    assert ended.value.code == 2
    assert "another process grades into" in capsys.readouterr().err


def test_the_command_prints_a_summary_and_json(place, capsys):
    folder, _, results = place
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main([*command(folder, "one")[3:], *more])
        assert ended.value.code == 0
    said = capsys.readouterr().out
    summary, _, rest = said.partition("{\n")

    assert "9 of 12 graded" in summary
    assert "0005, 1.2: the answer ended its own process" in summary
    assert json.loads("{\n" + rest) == json.loads(json.dumps(results))


class Looked(HTMLParser):
    """The names of all elements and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def pages(folder):
    return [folder / "one" / "class.html", *sorted((folder / "one" / "feedback").glob("*.html"))]


def test_no_page_holds_a_script_or_asks_for_anything(place):
    folder, _, _ = place
    assert len(pages(folder)) == N + 1
    for path in pages(folder):
        text = path.read_text("utf-8")
        looked = Looked(text)
        assert not looked.tags & {"script", "img", "link", "iframe", "object", "form", "svg"}, path
        assert not {name for name in looked.attributes if name.startswith("on") or name == "src"}
        assert 'http-equiv="Content-Security-Policy" content="default-src &#x27;none&#x27;' in text or (
            "content=\"default-src 'none'; style-src 'unsafe-inline'" in text
        )
        assert not re.search(r"url\(|@import", text)


def test_what_learners_wrote_is_shown_as_they_wrote_it(place):
    folder, _, results = place
    one = next(one for one in results["learners"] if one["name"].startswith(synthetic.SCRIPT))

    assert "&lt;script&gt;" in (folder / "one" / one["feedback"]).read_text("utf-8")


def test_names_of_feedback_pages_cant_be_reckoned_from_an_id(place):
    folder, _, results = place
    names = {one["feedback"] for one in results["learners"]}
    other = classroom.Classroom(
        **{
            name: getattr(classroom.read(folder / "class"), name)
            for name in classroom.Classroom.__slots__
            if name != "seed"
        },
        seed=b"2" * 32,
    )

    assert len(names) == N
    assert all(re.fullmatch(r"feedback/[0-9a-f]{32}\.html", name) for name in names)
    assert f"feedback/{other.secret('feedback 0000')[:32]}.html" not in names


def test_pages_of_who_left_are_taken_away(place):
    folder, _, _ = place
    stale = folder / "one" / "feedback" / f"{'0' * 32}.html"
    stale.write_text("old")
    graded(folder, "one", 1)

    assert not stale.exists()


def test_the_seed_is_in_nothing_that_is_written(place):
    folder, _, _ = place
    seed = classroom.read(folder / "class").seed.hex().encode()

    assert not [path for path in (folder / "one").rglob("*") if path.is_file() and seed in path.read_bytes()]


def test_results_hold_no_time_of_now_and_no_name_of_a_machine(place):
    import platform

    _, _, results = place
    now = time.strftime("%Y-%m-%d", time.gmtime())

    assert now not in json.dumps(results)
    assert platform.node() not in set(re.findall(r"[\w.-]+", json.dumps(results["grader"])))


def test_every_table_has_a_line_for_everybody(place):
    folder, _, _ = place
    with (folder / "one" / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["id"] for row in rows] == [f"{k:04d}" for k in range(N)]
    assert rows[11]["points"] == "32"
    assert rows[11]["days late"] == "2"
