"""A learner's progress file: nothing is lost, nothing is raised at a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpututor.results import KEPT, Results, StoredResult, write_at_once
from gpututor.store import Store, Try, file_key

ROOT = Path(__file__).parent.parent
NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=timezone.utc)


class Clock:
    """Says a time one minute later at each look."""

    def __init__(self):
        self.at = NOON

    def __call__(self):
        self.at += timedelta(minutes=1)
        return self.at


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def blocked(monkeypatch, tmp_path):
    """A home that nobody can write to, not even root: a file lies in its place."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "file"))


def damage(text="{"):
    path = Store("ann").path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_what_was_put_is_got_by_the_next_page():
    Store("ann").put("02", "machine", "V100")

    assert Store("ann").get("02", "machine") == "V100"


def test_what_was_never_put_is_the_default():
    assert Store("ann").get("02", "machine", "T4") == "T4"


def test_lessons_do_not_share_keys():
    Store("ann").put("02", "machine", "V100")

    assert Store("ann").get("03", "machine") is None


def test_learners_do_not_share_files():
    Store("ann").put("02", "machine", "V100")

    assert Store("bob").get("02", "machine") is None


def test_no_name_is_one_reader_per_machine():
    Store("").put("02", "machine", "V100")

    assert Store().get("02", "machine") == "V100"


def test_started_lessons_are_listed():
    store = Store("ann")
    store.put("03", "machine", "V100")
    store.guess("02", "busy", "25 %")

    assert store.lessons() == ("02", "03")


def test_looking_starts_no_lesson():
    store = Store("ann")
    store.get("02", "machine")

    assert Store("ann").lessons() == ()


@given(st.text())
def test_a_key_is_a_plain_file_name(name):
    key = file_key(name)

    assert key
    assert Path(key).name == key
    assert not key.startswith((".", "-"))


@given(st.text(), st.text())
def test_different_names_have_different_keys(one, other):
    assert (file_key(one) == file_key(other)) == (one == other)


@given(st.text())
def test_keys_differ_on_a_disk_that_ignores_case(name):
    assert file_key(name) == file_key(name).casefold()


def test_a_name_that_looks_like_a_key_is_not_taken_for_its_owner():
    assert file_key(file_key("Ann")) != file_key("Ann")


def test_a_name_that_climbs_stays_in_its_folder(home):
    Store("../../ann").put("02", "machine", "V100")

    assert [path.parent for path in home.rglob("*.json")] == [home / "progress"]


def test_threads_that_write_at_once_lose_nothing():
    stores = [Store("ann"), Store("ann")]
    threads = [threading.Thread(target=stores[k % 2].put, args=("02", f"key {k}", k)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [Store("ann").get("02", f"key {k}") for k in range(16)] == list(range(16))


def test_processes_that_write_at_once_lose_nothing():
    script = (
        "import sys; from gpututor.store import Store\nfor k in range(25): Store('ann').put(sys.argv[1], str(k), k)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, lesson], cwd=ROOT) for lesson in ("02", "03")]
    codes = [writer.wait() for writer in writers]

    assert codes == [0, 0]
    assert [Store("ann").get(lesson, str(k)) for lesson in ("02", "03") for k in range(25)] == 2 * list(range(25))


def test_a_write_that_fails_half_way_leaves_the_old_file(monkeypatch):
    store = Store("ann")
    store.put("02", "machine", "V100")
    monkeypatch.setattr(os, "fsync", raises_disk_full)
    store.put("02", "machine", "T4")

    assert json.loads(store.path.read_text())["lessons"]["02"]["values"] == {"machine": "V100"}


def raises_disk_full(fd):
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_sentence(monkeypatch):
    store = Store("ann")
    monkeypatch.setattr(os, "fsync", raises_disk_full)
    store.put("02", "machine", "T4")

    assert "can't be written (No space left on device); this page goes on" in store.trouble


def test_a_full_disk_leaves_no_litter(monkeypatch):
    store = Store("ann")
    monkeypatch.setattr(os, "fsync", raises_disk_full)
    store.put("02", "machine", "T4")

    assert [path.name for path in store.path.parent.iterdir() if path.suffix != ".lock"] == []


def test_a_page_goes_on_when_nothing_can_be_written(blocked):
    store = Store("ann")
    store.put("02", "machine", "V100")

    assert store.get("02", "machine") == "V100"


def test_a_home_that_cannot_be_written_is_told_at_once(blocked):
    assert "what you do now is lost when it is closed" in Store("ann").trouble


def test_no_trouble_is_none():
    store = Store("ann")
    store.put("02", "machine", "V100")

    assert store.trouble is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": "another"}',
        '{"format": "gpututor-progress", "version": 1}',
        '{"format": "gpututor-progress", "version": 1, "lessons": {"02": 3}}',
        '{"format": "gpututor-progress", "version": 1, "lessons": {"02": {"values": {}, "guesses": {"q": 1}}}}',
        "[" * 10_000,
    ],
)
def test_a_damaged_file_is_kept_under_another_name(text):
    path = damage(text)
    Store("ann")

    assert [aside.read_text() for aside in path.parent.glob("ann.damaged-*.json")] == [text]


def test_a_damaged_file_is_told():
    damage()

    assert "is damaged. It was kept as ann.damaged-" in Store("ann").trouble


def test_after_a_damaged_file_the_page_begins_anew():
    damage()
    Store("ann").put("02", "machine", "V100")

    assert Store("ann").get("02", "machine") == "V100"


def test_a_file_of_a_later_version_is_left_alone():
    text = '{"format": "gpututor-progress", "version": 2, "lessons": {}}'
    path = damage(text)
    Store("ann").put("02", "machine", "V100")

    assert path.read_text() == text


def test_a_file_of_a_later_version_is_told():
    damage('{"format": "gpututor-progress", "version": 2, "lessons": {}}')

    assert "it is of version 2, and this gpututor reads version 1" in Store("ann").trouble


def test_what_is_no_data_is_trouble():
    store = Store("ann")
    store.put("02", "machine", {1, 2})

    assert '"machine" of lesson 02 can\'t be kept' in store.trouble


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=4))
def test_any_data_comes_back_as_it_was(value):
    store = Store("any")
    store.put("02", "value", value)

    assert Store("any").get("02", "value") == value


def test_a_guess_is_kept_with_its_time():
    Store("ann", now=lambda: NOON).guess("02", "busy", "25 %")

    assert Store("ann").first_guess("02", "busy") == Try("25 %", "2026-01-02T12:00:00+00:00")


def test_without_a_guess_there_is_no_first_one():
    assert Store("ann").first_guess("02", "busy") is None


def test_before_the_reveal_the_last_guess_counts():
    store = Store("ann")
    store.guess("02", "busy", "25 %")
    store.guess("02", "busy", "90 %")

    assert [one.answer for one in store.tries("02", "busy")] == ["90 %"]


def test_after_the_reveal_the_first_guess_stays():
    store = Store("ann")
    store.guess("02", "busy", "90 %")
    store.reveal("02", "busy")
    store.guess("02", "busy", "25 %")

    assert store.first_guess("02", "busy").answer == "90 %"


def test_after_the_reveal_another_guess_is_a_second_try():
    store = Store("ann", now=Clock())
    store.guess("02", "busy", "90 %")
    store.reveal("02", "busy")
    store.guess("02", "busy", "25 %")

    assert [one.at[11:16] for one in store.tries("02", "busy")] == ["12:01", "12:03"]


def test_the_same_guess_again_is_no_second_try():
    store = Store("ann")
    store.guess("02", "busy", "90 %")
    store.reveal("02", "busy")
    store.guess("02", "busy", "90 %")

    assert len(store.tries("02", "busy")) == 1


def test_a_reveal_is_remembered_by_the_next_page():
    Store("ann").reveal("02", "busy")

    assert Store("ann").revealed("02", "busy")


def test_a_question_is_not_revealed_at_first():
    assert not Store("ann").revealed("02", "busy")


def finish(results, experiment="a.b:c", data=1):
    results.keep(StoredResult(results.new_folder(), "done", experiment, {"n": 1}, data, "", NOON.isoformat(), 1, 1))


def test_the_newest_result_is_found_by_the_next_page():
    results = Store("ann", now=Clock()).results("02")
    for data in (1, 2, 3):
        finish(results, data=data)

    assert Store("ann").results("02").latest().data == 3


def test_without_a_result_there_is_none():
    assert Store("ann").results("02").latest() is None


def test_a_run_that_did_not_finish_is_no_result():
    results = Store("ann").results("02")
    results.new_folder()

    assert results.latest() is None


def test_a_damaged_result_is_passed_over(tmp_path):
    results = Results(tmp_path, Clock())
    finish(results, data="whole")
    write_at_once(results.new_folder() / "result.json", "{")

    assert results.latest().data == "whole"


def test_that_the_newest_result_is_damaged_is_known(tmp_path):
    results = Results(tmp_path, Clock())
    finish(results)
    write_at_once(results.new_folder() / "result.json", "{")

    assert results.newest_is_damaged


def test_a_damaged_result_before_a_whole_one_is_forgotten(tmp_path):
    results = Results(tmp_path, Clock())
    write_at_once(results.new_folder() / "result.json", "{")
    finish(results)
    results.new_folder()  # of a run that has not ended

    assert not results.newest_is_damaged


def test_each_experiment_has_its_own_newest_result(tmp_path):
    results = Results(tmp_path, Clock())
    finish(results, "a.b:one", 1)
    finish(results, "a.b:other", 2)

    assert results.latest("a.b:one").data == 1


def test_old_results_go(tmp_path):
    results = Results(tmp_path, Clock())
    for data in range(KEPT + 2):
        finish(results, data=data)

    assert len(list(tmp_path.iterdir())) == KEPT


def test_results_of_one_experiment_do_not_push_out_anothers(tmp_path):
    results = Results(tmp_path, Clock())
    finish(results, "a.b:one", "kept")
    for data in range(KEPT + 2):
        finish(results, "a.b:other", data)

    assert results.latest("a.b:one").data == "kept"


def test_a_run_under_way_is_not_swept_away(tmp_path):
    results = Results(tmp_path, Clock())
    under_way = results.new_folder()
    finish(results)

    assert under_way.is_dir()


def test_a_run_that_never_finished_is_swept_away_after_a_day(tmp_path):
    left = Results(tmp_path, lambda: NOON).new_folder()
    finish(Results(tmp_path, lambda: NOON + timedelta(days=2)))

    assert not left.exists()


def test_files_beside_a_result_stay_with_it(tmp_path):
    results = Results(tmp_path, Clock())
    folder = results.new_folder()
    (folder / "losses.txt").write_text("1 2 3")
    results.keep(StoredResult(folder, "done", "a.b:c", {}, None, "", NOON.isoformat(), 1, 1))

    assert (results.latest().folder / "losses.txt").read_text() == "1 2 3"
