"""Runs of other machines on a lesson's page: which are found, what is said of each, and damage."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import marimo as mo
import pytest

import gpututor.page as gt
from gpututor.cards import machine_for
from gpututor.experiments import gauge
from gpututor.measure.nvml import Gpus
from gpututor.page.kept import Kept
from gpututor.page.own import _recorded
from gpututor.page.recorded import OTHER_SETTINGS
from gpututor.paths import data_dir
from gpututor.recordings import EXPERIMENTS, record
from gpututor.replay import play_file
from gpututor.store import Store
from gpututor.text import duration
from tests.fake_lab import LABEL, SHIPPED, V100, FakeLab, few_launches

GAUGE, SEQ2SEQ = EXPERIMENTS[:2]


@pytest.fixture(scope="module")
def tapes(tmp_path_factory) -> Path:
    return few_launches(tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("named"))


@pytest.fixture
def lab(tapes) -> FakeLab:
    return FakeLab(tapes)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder in which a reader's own recordings lie; nothing ships."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    return tmp_path / "recordings"


def plain(part: object) -> str:
    text = unescape(re.sub(r"<[^>]*>", " ", mo.as_html(part).text))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def on(lab: FakeLab, card: str) -> FakeLab:
    lab.label = replace(LABEL, card=card)
    lab.about.update(card=card, gpu=f"NVIDIA {card}")
    return lab


# --- where there is none -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", [1, 2, 7])
def test_without_a_recording_there_is_nothing(folder, lesson):
    assert gt.recorded(lesson) is None


def test_every_recording_that_ships_can_be_shown(folder):
    shipped = list((data_dir() / "recordings").glob("*.recording.json"))

    for lesson in {each.lesson for each in EXPERIMENTS}:
        found = gt.recorded(lesson)
        assert (found is not None) == any(path.name.startswith(each.name) for each in EXPERIMENTS for path in shipped)
        assert found is None or "can't be" not in plain(found)


# --- what is said of one -------------------------------------------------------------------------------------------


def test_a_recording_says_measured_with_card_host_driver_torch_and_date(lab, folder):
    (recording,) = record([SEQ2SEQ], folder, run=lab).recordings

    assert (
        f"Measured {V100} · some processor · driver 580.65.06 · torch 2.13.0+cu128 · {recording.at[:10]}"
        f", beside Simulated {V100} · p3.2xlarge"
    ) in plain(gt.recorded(2))


def test_a_driver_that_is_not_known_is_said_to_be(lab, folder):
    lab.label = replace(LABEL, versions=())
    record([SEQ2SEQ], folder, run=lab)

    assert "driver not known · torch" in plain(gt.recorded(2))


def test_a_step_stands_beside_that_of_the_same_sentences_on_the_same_card(lab, folder):
    record([SEQ2SEQ], folder, run=lab)
    expected = play_file(SHIPPED, machine_for(V100))

    text = plain(gt.recorded(2))
    step = duration(expected.step_ns).replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(rf"A step the model .*? 8\.00 ms {re.escape(step)}, from", text)
    assert "A step without the profiler" in text


def test_gauges_stand_measured_and_below_it_simulated(lab, folder):
    record([SEQ2SEQ], folder, run=lab)

    assert re.search(r"MFU Measured Busy 50 % .*? Simulated Busy \d+ %", plain(gt.recorded(2)))


def test_each_workload_of_lesson_1_stands_beside_the_readers_own_simulated_run(lab, folder, tapes):
    record([GAUGE], folder, run=lab)

    text = plain(gt.recorded(1, {path.stem: path for path in tapes.iterdir()}))
    for workload in gauge.WORKLOADS:
        assert f"{workload.name}, measured" in text
        assert f"{workload.name}, simulated" in text
        assert f"{workload.name}: one kernel" in text


def test_workloads_that_the_reader_did_not_simulate_are_measured_alone(lab, folder):
    record([GAUGE], folder, run=lab)

    text = plain(gt.recorded(1, {}))
    assert f"{gauge.ADD}, measured" in text
    assert "simulated" not in text.replace("no simulated run", "").casefold()


def test_settings_of_another_lesson_have_no_expectation_and_say_why(lab, folder):
    other = replace(SEQ2SEQ, params={"n_steps": 4, "n_kept": 2})
    record([other], folder, run=lab)

    text = plain(gt.recorded(2))
    assert f"Nothing is expected: {OTHER_SETTINGS}." in text
    assert "within the band" not in text


def test_a_card_that_no_table_has_is_shown_without_expectation(lab, folder):
    record([SEQ2SEQ], folder, run=on(lab, "Voodoo2"))

    text = plain(gt.recorded(2))
    assert "Measured on Voodoo2" in text
    assert "Nothing is expected: Voodoo2 is not in our table of cards" in text


def test_the_host_of_a_recording_is_not_called_the_readers(lab, folder):
    record([SEQ2SEQ], folder, run=lab)

    assert "The recorded one (some processor) is in no table of ours" in plain(gt.recorded(2))


def test_the_recorders_notes_stand_below(lab, folder):
    record([SEQ2SEQ], folder, run=lab)

    assert plain(gt.recorded(2)).endswith("A note.")


def test_of_several_recordings_the_first_is_open_and_the_others_are_one_line_each(lab, folder):
    record([SEQ2SEQ], folder, run=lab)
    (recording,) = record([SEQ2SEQ], folder, run=on(lab, "T4")).recordings

    found = gt.recorded(2).text
    assert found.count("<details") == 1
    assert f"<summary>The same on {V100}, {recording.at[:10]}</summary>" in found


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "left", "words"),
    [
        ("seq2seq.t4.recording.json", "{", "can't be read as a recording"),
        ("seq2seq.t4.recording.json", '{"format": "other", "version": 1}', "is no recording of version 1"),
        ("seq2seq.t4.timeline.json.gz", None, "is not beside it"),
        ("seq2seq.t4.timeline.json.gz", "no gzip", "seq2seq.t4.timeline.json.gz"),
    ],
)
def test_a_damaged_recording_is_one_sentence_and_the_others_are_shown(lab, folder, file, left, words):
    record([SEQ2SEQ], folder, run=lab)
    record([SEQ2SEQ], folder, run=on(lab, "T4"))
    path = folder / file
    path.unlink() if left is None else path.write_text(left)

    found = gt.recorded(2)
    assert len(re.findall('role="alert"', found.text)) == 1
    assert re.search(rf"A recording can't be shown: .*{re.escape(words)}", plain(found))
    assert f"Measured on {V100}" in plain(found)


def test_a_description_with_other_fields_than_ours_does_not_end_the_page(lab, folder):
    record([SEQ2SEQ], folder, run=lab)
    (path,) = folder.glob("*.recording.json")
    path.write_text(path.read_text("utf-8").replace('"notes": [', '"notes": 7, "more": ['), encoding="utf-8")

    assert "This part of the page could not be drawn" in plain(gt.recorded(2))


# --- where the lesson shows it -------------------------------------------------------------------------------------


def test_without_a_gpu_the_line_says_what_is_simulated_and_the_recording_follows(lab, folder, monkeypatch):
    monkeypatch.setattr("gpututor.page.measured.find_gpus", lambda: Gpus((), "no driver answers"))
    record([SEQ2SEQ], folder, run=lab)
    own = gt.OwnGpu(Store(), "02", SEQ2SEQ.measured)

    text = plain(own.section([], gt.Shown("ready"), lambda run: 1 / 0, recorded=gt.recorded(2)))
    assert text.startswith("All of the above is simulated: no GPU was found here, as no driver answers. Measured on")


def test_with_a_gpu_the_recording_follows_the_readers_own(lab, folder, monkeypatch):
    monkeypatch.setattr("gpututor.page.measured.find_gpus", lambda: Gpus(("NVIDIA H200",), None))
    record([SEQ2SEQ], folder, run=lab)
    own = gt.OwnGpu(Store(), "02", SEQ2SEQ.measured)

    text = plain(own.section([], gt.Shown("ready"), lambda run: 1 / 0, recorded=gt.recorded(2)))
    assert re.search(rf"NVIDIA H200.*Measured on {V100}", text)


# --- a sweep's recordings, in the section that measures ------------------------------------------------------------


def test_what_another_card_recorded_of_a_sweep_stands_in_the_section_that_measures(folder, lab):
    sweep = next(each for each in EXPERIMENTS if each.lesson == 3)
    record([sweep], folder, run=lab)
    (told,) = _recorded(3, Kept())
    shown = plain(told)

    assert "Measured elsewhere" in shown
    assert "Tesla V100-SXM2-16GB" in shown
    assert "driver 580.65.06" in shown
    assert "one way" in shown
    assert "8.00 ms" in shown


def test_of_a_lesson_that_nobody_recorded_there_is_none(folder):
    assert _recorded(4, Kept()) == []


def test_a_damaged_recording_of_a_sweep_is_one_sentence(folder, lab):
    sweep = next(each for each in EXPERIMENTS if each.lesson == 3)
    record([sweep], folder, run=lab)
    (description,) = folder.glob("*.recording.json")
    description.write_text("{", encoding="utf-8")
    (told,) = _recorded(3, Kept())

    assert "A recording can't be shown" in plain(told)
