"""Recording the lessons' experiments: what is kept, beside what it stands at the end, and every way it can go wrong.

A fake stands in for the lab: it leaves drawn timelines for what is measured, and tapes for what is simulated.
"""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path

import pytest
import torch

from gpututor import recordings, timeline_file
from gpututor.cli import main
from gpututor.errors import MeasurementDamaged
from gpututor.experiments import gauge, measured
from gpututor.lab.job import JobResult
from gpututor.lab.pool import why_not_allowed
from gpututor.paths import data_dir, lessons_dir
from gpututor.progress import Progress
from gpututor.recordings import EXPERIMENTS, LessonRecording, of_lessons, record
from gpututor.recordings.course import LessonNotRecorded
from gpututor.replay import play_file
from gpututor.timeline import Origin
from tests.draw import MS
from tests.fake_lab import LABEL, SHIPPED, V100, FakeLab, drawn, few_launches
from tests.measure.twin import machine_with_gpu

GAUGE, SEQ2SEQ, *SWEEPS = EXPERIMENTS


@pytest.fixture(scope="module")
def tapes(tmp_path_factory) -> Path:
    """The tapes of lesson 1, a launch or a few of each workload, under the workloads' names."""
    return few_launches(tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("named"))


@pytest.fixture
def lab(tapes) -> FakeLab:
    return FakeLab(tapes)


@pytest.fixture
def with_gpu(lab, monkeypatch, tmp_path) -> FakeLab:
    """A machine with a GPU, as far as the command can tell; the current folder is empty."""
    monkeypatch.setattr("gpututor.recordings.why_no_gpu", lambda: None)
    monkeypatch.setattr("gpututor.recordings.record", partial(record, run=lab))
    monkeypatch.chdir(tmp_path)
    return lab


@pytest.fixture
def run(capsys):
    """Run `gpututor record`; gives exit status, stdout and stderr."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["record", *arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), plain(out), err

    return _run


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def kept(lab: FakeLab, tmp_path: Path, *experiments) -> tuple[LessonRecording, ...]:
    return record(experiments or (SEQ2SEQ,), tmp_path, run=lab).recordings


def rows(lab: FakeLab, tmp_path: Path, experiment) -> dict[tuple[str, str], recordings.Row]:
    (outcome,) = record([experiment], tmp_path, run=lab).outcomes
    return {(row.experiment, row.what): row for row in outcome.rows}


# --- what can be recorded --------------------------------------------------------------------------------------------


def test_every_experiment_that_a_lesson_measures_is_recorded_and_no_other():
    measured_in = {
        (int(path.name[:2]), name)
        for path in lessons_dir().glob("[0-9][0-9]_*.py")
        for name in re.findall(r'measure="(gpututor[\w.]+:\w+)"', path.read_text("utf-8"))
    }

    assert {(each.lesson, each.measured) for each in EXPERIMENTS} == measured_in


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_the_lab_runs_both_sides_of_an_experiment(experiment):
    for name in (experiment.measured, experiment.simulated):
        assert why_not_allowed(name, ("gpututor.experiments",)) is None


def test_the_recorded_sentences_are_those_of_the_courses_tape():
    made = re.search(r"seq2seq\.tape\.gz`.*n_steps=(\d+), n_kept=(\d+)", (data_dir() / "SOURCES.md").read_text("utf-8"))

    assert SEQ2SEQ.params == {"n_steps": int(made[1]), "n_kept": int(made[2])} == SEQ2SEQ.simulated_params


def test_lessons_can_be_chosen():
    assert of_lessons() == EXPERIMENTS
    assert of_lessons([2]) == (SEQ2SEQ,)


def test_a_lesson_that_measures_nothing_is_refused():
    with pytest.raises(LessonNotRecorded, match=r"no lesson with an experiment to record is called \"11\""):
        of_lessons([2, 11])


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_files_are_named_after_the_job_and_the_card(lab, tmp_path):
    kept(lab, tmp_path)

    names = {"seq2seq.v100-sxm2-16gb.timeline.json.gz", "seq2seq.v100-sxm2-16gb.recording.json"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_each_workload_of_lesson_1_has_its_timeline(lab, tmp_path):
    (recording,) = kept(lab, tmp_path, GAUGE)

    assert set(recording.timelines) == {each.name for each in gauge.WORKLOADS}
    assert all(path.is_file() for path in recording.files)


def test_a_recording_says_recorded_on_which_card_and_which_day(lab, tmp_path):
    (recording,) = kept(lab, tmp_path)
    label = timeline_file.load(recording.timelines[""]).label

    assert (label.origin, label.card) == (Origin.RECORDED, V100)
    assert ("recorded", recording.at[:10]) in label.versions


def test_a_recording_holds_the_spans_that_were_measured(lab, tmp_path):
    (recording,) = kept(lab, tmp_path)

    assert timeline_file.load(recording.timelines[""]).spans == drawn().spans


def test_the_description_names_card_driver_torch_and_host(lab, tmp_path):
    kept(lab, tmp_path)
    told = json.loads((tmp_path / "seq2seq.v100-sxm2-16gb.recording.json").read_text("utf-8"))

    assert (told["card"], told["host"], told["torch"]) == (V100, "some processor", "2.13.0+cu128")
    assert (told["driver"], told["lesson"], told["reasons"]) == ("580.65.06", 2, {})


def test_a_driver_that_did_not_answer_is_none_with_a_reason(lab, tmp_path):
    lab.label = replace(LABEL, versions=())
    (recording,) = kept(lab, tmp_path)

    assert recording.driver is None
    assert "did not say" in recording.reasons["driver"]


def test_what_was_written_can_be_read(lab, tmp_path):
    assert recordings.read(tmp_path / "nowhere") == ()
    assert kept(lab, tmp_path, *EXPERIMENTS) == recordings.read(tmp_path)


def test_others_may_read_the_description_if_they_may_read_the_timeline(lab, tmp_path):
    kept(lab, tmp_path)

    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


def test_recordings_of_two_cards_share_a_folder(lab, tmp_path):
    kept(lab, tmp_path)
    lab.about["card"] = "H200-SXM"
    kept(lab, tmp_path)

    assert [each.card for each in recordings.read(tmp_path)] == ["H200-SXM", V100]


def test_a_timeline_that_is_too_large_keeps_its_last_steps_and_says_so(lab, tmp_path, monkeypatch):
    monkeypatch.setattr("gpututor.recordings.kept.MOST_BYTES", 1)
    (recording,) = kept(lab, tmp_path)
    timeline = timeline_file.load(recording.timelines[""])

    assert timeline.steps == drawn().steps[-1:]
    assert timeline.duration_ns == 8 * MS
    assert recording.told["notes"] == ["a note", "of 4 recorded steps the last 1 are kept, for a small file"]


def test_a_lesson_can_draw_a_recording_and_it_says_so(lab, tmp_path):
    import marimo as mo

    import gpututor.page as gt

    (recording,) = kept(lab, tmp_path)
    text = unescape(re.sub(r"<[^>]*>", " ", mo.as_html(gt.measured_steps(recording.result, SHIPPED)).text))

    assert re.search(rf"Recorded\s+{V100} · some processor", text)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_text("{"), "can't be read as a recording"),
        (lambda path: path.write_text('{"format": "other", "version": 1}'), "is no recording of version 1"),
        (lambda path: path.write_text('{"format": "gpututor-recording", "version": 1}'), "can't be read"),
        (lambda path: path.with_name("seq2seq.v100-sxm2-16gb.timeline.json.gz").unlink(), "is not beside it"),
    ],
)
def test_a_damaged_recording_is_one_sentence(lab, tmp_path, damage, words):
    (recording,) = kept(lab, tmp_path)
    damage(recording.description)

    with pytest.raises(MeasurementDamaged, match=words):
        recordings.read(tmp_path)


# --- beside what was expected ----------------------------------------------------------------------------------------


def test_a_steps_figures_are_those_of_the_drawing(lab, tmp_path):
    found = rows(lab, tmp_path, SEQ2SEQ)

    assert {what: row.seen for (_, what), row in found.items()} == {
        "a step": 8 * MS,
        "a step, not recorded": 7 * MS,
        "busy": 0.5,
    }


def test_a_workloads_figures_are_those_of_the_drawing(lab, tmp_path):
    found = rows(lab, tmp_path, GAUGE)

    assert {row.seen for (_, what), row in found.items() if what == "one kernel"} == {4 * MS}
    assert {name for name, _ in found} == {each.name for each in gauge.WORKLOADS}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_every_figure_has_a_band_with_its_source(lab, tmp_path, experiment):
    for row in rows(lab, tmp_path, experiment).values():
        assert row.band.low <= row.band.expected <= row.band.high
        assert row.band.source


def test_the_expected_kernel_is_that_of_the_simulated_run_on_the_same_card(lab, tapes, tmp_path):
    from gpututor.cards import machine_for

    row = rows(lab, tmp_path, GAUGE)[(gauge.FP16, "one kernel")]

    assert row.band.expected == play_file(tapes / f"{gauge.FP16}.gz", machine_for(V100)).kernel_ns


def test_a_figure_far_from_its_band_is_outside(lab, tmp_path):
    found = rows(lab, tmp_path, GAUGE)

    assert found[(gauge.ADD, "busy")].difference.verdict == "outside"  # half busy where a kernel always runs


def test_for_a_card_that_no_table_has_the_reason_is_given(lab, tmp_path):
    lab.label = replace(LABEL, card="Voodoo2")
    lab.about["card"] = "Voodoo2"

    for row in rows(lab, tmp_path, SEQ2SEQ).values():
        assert row.band is None
        assert "Voodoo2 is not in our table of cards" in row.reason


def test_where_the_simulated_run_fails_the_measured_one_stays(lab, tmp_path):
    lab.ends["seq2seq:train"] = lambda _: JobResult("failed", sentence="It ran out of memory.")
    found = rows(lab, tmp_path, SEQ2SEQ)

    assert found[("seq2seq", "a step")].cells[:2] == ("8.00\N{NO-BREAK SPACE}ms", "not known")
    assert found[("seq2seq", "a step")].reason == "It ran out of memory"


def test_all_is_measured_before_anything_is_simulated(lab, tmp_path):
    kept(lab, tmp_path, *EXPERIMENTS)

    assert [kind for kind, _ in lab.asked] == ["real"] * len(EXPERIMENTS) + ["simulated"] * len(EXPERIMENTS)


def test_what_the_measuring_itself_hands_back_can_be_kept(lab, tmp_path, monkeypatch):
    def trained(folder):
        with machine_with_gpu() as bench:
            told = measured.seq2seq(Progress(results_dir=folder), n_steps=4, n_kept=2, bench=bench)
        return JobResult("done", told)

    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path / "lock"))
    lab.ends["measured:seq2seq"] = trained
    found = rows(lab, tmp_path / "kept", SEQ2SEQ)
    (recording,) = recordings.read(tmp_path / "kept")

    assert found[("seq2seq", "a step")].band is not None
    assert len(timeline_file.load(recording.timelines[""]).steps) == 2


# --- the command -----------------------------------------------------------------------------------------------------


def test_everything_is_recorded_into_a_folder_named_after_the_card(with_gpu, run, tmp_path):
    status, out, _ = run()

    assert status == 0
    assert len(recordings.read(tmp_path / "recordings-v100-sxm2-16gb")) == len(EXPERIMENTS)
    n_files = 7 + 2 * len(SWEEPS)  # four workloads, one translator, two descriptions; two files a sweep
    assert f"{n_files} files, " in out
    assert out.splitlines()[-2].endswith("in recordings-v100-sxm2-16gb")


def test_the_end_says_where_lessons_look_for_recordings(with_gpu, run, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    folder = str(tmp_path / "recordings")

    assert run("--lesson", "2")[1].splitlines()[-1].startswith(f"Lessons show the recordings in {folder};")
    assert run("--lesson", "2", "--to", folder)[1].splitlines()[-1].endswith(f"in {folder}")


def test_the_table_at_the_end_has_a_line_for_each_figure(with_gpu, run):
    _, out, _ = run()

    assert re.search(
        rf"1 +{re.escape(gauge.FP16)} +one kernel +4\.00 ms +\S+ ms +\S+ ms to \S+ ms +(within|outside)", out
    )
    assert re.search(r"2 +seq2seq +a step +8\.00 ms +\S+ ms +\S+ ms to \S+ ms +(within|outside)", out)


def test_the_report_begins_with_the_machine(with_gpu, run):
    _, out, _ = run()

    assert out.startswith(f"Measured {V100} · some processor · driver 580.65.06 · torch 2.13.0+cu128 · 20")


def test_lesson_and_folder_can_be_named(with_gpu, run, tmp_path):
    run("--lesson", "2", "--to", "here/below")

    assert [each.lesson for each in recordings.read(tmp_path / "here" / "below")] == [2]
    assert {name for _, name in with_gpu.asked} == {"measured:seq2seq", "seq2seq:train"}


def test_json_holds_recordings_and_every_figure_with_its_band(with_gpu, run):
    status, out, _ = run("--json")
    told = json.loads(out)

    assert (status, told["stopped"], told["missing"]) == (0, False, [])
    assert [each["name"] for each in told["recordings"]] == [each.name for each in EXPERIMENTS]
    assert len(told["compared"]) == 2 * len(gauge.WORKLOADS) + 3 + 2 * len(SWEEPS)
    assert all(row["low"] <= row["expected"] <= row["high"] for row in told["compared"])


def test_each_experiment_is_announced_once_on_stderr(with_gpu, run):
    _, _, err = run()
    titles = [each.title for each in EXPERIMENTS]

    assert err.splitlines()[1:] == [f"{title}{kind} …" for kind in ("", ", simulated") for title in titles]


def test_an_experiment_that_fails_is_told_and_the_next_one_goes_on(with_gpu, run, tmp_path):
    with_gpu.ends["measured:gauge"] = lambda _: JobResult("failed", sentence="The card fell out.")
    status, out, _ = run("--to", "kept")

    assert status == 1
    assert "Lesson 1, gauge: The card fell out." in out
    names = {each.name for each in recordings.read(tmp_path / "kept")}
    assert names == {each.name for each in EXPERIMENTS if each is not GAUGE}


def test_where_nothing_could_be_recorded_that_is_said(with_gpu, run):
    for each in EXPERIMENTS:
        name = each.measured.rpartition(".")[2]
        with_gpu.ends[name] = lambda _: JobResult("failed", sentence="The card fell out.")
    status, out, _ = run()

    assert status == 1
    assert out.rstrip().endswith("Nothing was recorded.")


def test_ctrl_c_keeps_what_is_finished(with_gpu, run, tmp_path):
    def interrupted(_):
        signal.raise_signal(signal.SIGINT)
        return JobResult("stopped", sentence="You stopped it.")

    with_gpu.ends["measured:seq2seq"] = interrupted
    status, out, _ = run("--to", "kept")

    assert status == 130
    assert [each.name for each in recordings.read(tmp_path / "kept")] == ["gauge"]
    assert "Lesson 2, seq2seq: You stopped it." in out
    assert "one kernel" in out


def test_ctrl_c_keeps_the_workloads_that_a_stopped_experiment_finished(with_gpu, run, tmp_path):
    def interrupted(folder):
        signal.raise_signal(signal.SIGINT)
        return JobResult("stopped", with_gpu.gauged(folder, (gauge.SOFTMAX,)), "You stopped it.")

    with_gpu.ends["measured:gauge"] = interrupted
    status, out, _ = run("--to", "kept")
    (recording,) = recordings.read(tmp_path / "kept")

    assert status == 130
    assert (recording.state, set(recording.timelines)) == ("stopped", {gauge.SOFTMAX})
    assert "Lesson 2, seq2seq: You stopped before it began." in out


def test_ctrl_c_while_expectations_are_made_keeps_every_recording(with_gpu, run, tmp_path):
    def interrupted(_):
        signal.raise_signal(signal.SIGINT)
        return JobResult("stopped", sentence="You stopped it.")

    with_gpu.ends["gauge:run"] = interrupted
    status, out, _ = run("--to", "kept")

    assert status == 130
    assert len(recordings.read(tmp_path / "kept")) == len(EXPERIMENTS)
    assert "Nothing is expected: you stopped before it was simulated." in out


def test_a_second_ctrl_c_ends_at_once(with_gpu, run):
    def interrupted_twice(_):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with_gpu.ends["measured:gauge"] = interrupted_twice

    assert run()[0] == 130
    assert [name for _, name in with_gpu.asked] == ["measured:gauge"]


def test_ctrl_c_is_what_it_was_afterwards(with_gpu, run):
    before = signal.getsignal(signal.SIGINT)
    run("--lesson", "2")

    assert signal.getsignal(signal.SIGINT) is before


def test_a_folder_that_can_not_be_made_is_refused_before_anything_is_measured(with_gpu, run, tmp_path):
    (tmp_path / "file").touch()
    status, out, err = run("--to", "file/below")

    assert (status, out, with_gpu.asked) == (2, "", [])
    assert "file/below can't be made a folder" in err


def test_an_unknown_lesson_is_refused(run):
    status, _, err = run("--lesson", "77")

    assert status == 2
    assert 'no lesson with an experiment to record is called "77"' in err


# --- without a GPU ---------------------------------------------------------------------------------------------------


def test_without_a_gpu_it_is_one_sentence_and_status_1(run, monkeypatch):
    monkeypatch.setattr("gpututor.recordings.why_no_gpu", lambda: "no driver answers")
    status, out, err = run("--json")

    assert (status, out) == (1, "")
    assert err.splitlines()[-1] == (
        "gpututor: there is no GPU to record on: no driver answers; "
        "run `gpututor doctor`, which says what to do about it"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_on_this_machine_the_reason_names_what_is_missing():
    assert re.search(r"torch .* finds no GPU either|was built without CUDA|finds none", recordings.why_no_gpu())


def test_a_driver_with_a_gpu_that_torch_can_not_use_is_torchs_fault(monkeypatch):
    from gpututor.measure.nvml import Gpus

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("gpututor.measure.nvml.find_gpus", lambda: Gpus(("Tesla T4",)))

    assert recordings.why_no_gpu().startswith("the driver shows Tesla T4, but there is no GPU to measure on: ")


def test_the_list_needs_no_gpu(run, monkeypatch):
    monkeypatch.setattr("gpututor.recordings.why_no_gpu", lambda: pytest.fail("the list looked for a GPU"))
    status, out, _ = run("--list")

    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("Lesson")] == [
        f"Lesson {each.lesson}  {each.name}: {each.what}" for each in EXPERIMENTS
    ]


def test_the_list_shows_what_a_folder_holds(lab, run, tmp_path):
    kept(lab, tmp_path)
    _, out, _ = run("--list", "--to", str(tmp_path))

    assert f"    {V100} · some processor · driver 580.65.06" in out


def test_the_list_finds_what_was_recorded_here(with_gpu, run):
    run("--lesson", "2")
    _, out, _ = run("--list")

    assert "in recordings-v100-sxm2-16gb" in out


def test_the_list_as_json_has_experiments_and_recordings(lab, run, tmp_path):
    kept(lab, tmp_path)
    told = json.loads(run("--list", "--json", "--to", str(tmp_path))[1])

    assert [each["lesson"] for each in told["experiments"]] == [each.lesson for each in EXPERIMENTS]
    assert V100 in {each["card"] for each in told["recordings"] if each["folder"] == str(tmp_path)}
