"""The part of a lesson that measures: a quiet line without a GPU; with one, measured beside expected, each labelled."""

from __future__ import annotations

import json
import re
import runpy
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import marimo as mo
import pytest

import gpututor.page as gt
from gpututor import own_machine, timeline_file
from gpututor.cards import hosts, machine, scaled
from gpututor.expect.accuracy import BUSY as BUSY_RUNS
from gpututor.expect.accuracy import error_of, together
from gpututor.experiments import measured, seq2seq
from gpututor.experiments.gauge import Workload
from gpututor.ledger import BUSY, Account, charge
from gpututor.measure.nvml import Gpus
from gpututor.own_gpu import beside, host_like, standing_in, step_band, without_profiler
from gpututor.own_machine import Calibration, OwnHost
from gpututor.progress import Progress
from gpututor.replay import play, read_tape
from gpututor.results import RESULT, VERSION, StoredResult
from gpututor.store import Store
from gpututor.timeline import Label, Origin
from tests.draw import US, draw
from tests.measure.twin import machine_with_gpu

ROOT = Path(gt.__file__).parents[2]
V100 = Label(Origin.MEASURED, "V100-SXM2-16GB", "some processor")
N_STEPS, N_KEPT = 6, 4


@dataclass(frozen=True)
class Runs:
    """The same training, measured on the twin and simulated."""

    measured: StoredResult
    simulated: StoredResult

    @property
    def tape(self) -> Path:
        return self.simulated.folder / self.simulated.data["tape"]


def stored(folder: Path, experiment: str, data: dict) -> StoredResult:
    at = "2026-01-01T00:00:00+00:00"
    result = StoredResult(folder, "done", experiment, {}, data, "", at, N_STEPS, N_STEPS)
    told = {name: getattr(result, name) for name in result.__slots__ if name != "folder"}
    (folder / RESULT).write_text(json.dumps(told | {"version": VERSION}))
    return result


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """The folder of a reader who simulated and measured lesson 2."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def runs(home) -> Runs:
    results = home / "results" / "me"
    folders = results / "02-measured" / "a", results / "02" / "a"
    for folder in folders:
        folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch, machine_with_gpu() as bench:
        patch.setenv("GPUTUTOR_LOCK_DIR", str(home))
        patch.setattr("gpututor.measure.cuda.cpu_name", lambda: "some processor")
        told = measured.seq2seq(Progress(results_dir=folders[0]), n_steps=N_STEPS, n_kept=N_KEPT, bench=bench)
    tape = seq2seq.train(Progress(results_dir=folders[1]), n_steps=N_STEPS, n_kept=N_KEPT)
    return Runs(stored(folders[0], "measured", told), stored(folders[1], "simulated", tape))


@pytest.fixture(scope="module")
def shown(runs) -> str:
    """What the page shows of both."""
    return plain(gt.measured_steps(runs.measured, runs.tape))


def plain(part: object) -> str:
    """The text of a part, without markup."""
    text = unescape(re.sub(r"<[^>]*>", " ", mo.as_html(part).text))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def found(*names: str):
    return lambda: Gpus(names, None if names else "the NVIDIA driver does not answer (not found)")


# --- where there is no GPU -----------------------------------------------------------------------------------------


@pytest.fixture
def without_gpu(monkeypatch) -> gt.OwnGpu:
    monkeypatch.setattr("gpututor.page.measured.find_gpus", found())
    return gt.OwnGpu(Store(), "02", "gpututor.experiments.measured:seq2seq")


def test_without_a_gpu_one_line_says_so_and_why(without_gpu):
    assert plain(without_gpu.section([], gt.Shown("ready"), lambda run: 1 / 0)) == (
        "All of this is simulated: no GPU was found here, as the NVIDIA driver does not answer (not found)."
    )


def test_without_a_gpu_there_is_no_button_and_no_run(without_gpu):
    assert without_gpu.buttons("ready", {}) == []
    assert without_gpu.get_phase() == "ready"


# --- beside one another --------------------------------------------------------------------------------------------


def test_both_labels_are_shown_each_with_its_card(shown):
    assert re.search("Measured V100-SXM2-16GB", shown)
    assert re.search(r"Simulated V100-SXM2-16GB · p3\.2xlarge", shown)


def test_the_difference_is_told_with_its_account_and_what_may_explain_it(shown):
    assert "Measured beside expected" in shown
    assert re.search(r"seen, .* expected, .* (more|less)\. Perhaps ", shown)


def test_the_host_is_said_to_be_the_large_unknown(shown):
    assert "what a host needs for a launch is the large unknown here" in shown


def test_the_recorders_notes_are_shown(shown):
    assert "Right after the steps the driver's own gauge stood at 25" in shown


def test_the_wall_time_expected_is_that_of_the_same_sentences(runs):
    timeline = timeline_file.load(runs.measured.folder / runs.measured.data["timeline"])
    both = beside(timeline, read_tape(runs.tape))

    assert both.expected.n_steps == both.measured.n_steps == N_KEPT
    assert both.expected == play(read_tape(runs.tape), machine("p3.2xlarge")).ledger


def test_a_card_that_is_not_listed_has_no_expectation_and_a_way_to_get_one(runs):
    timeline = timeline_file.load(runs.measured.folder / runs.measured.data["timeline"])
    unknown = replace(timeline, label=replace(timeline.label, card="NVIDIA X9000"))

    both = beside(unknown, read_tape(runs.tape))

    assert both.comparison is None
    assert both.words.startswith("NVIDIA X9000 is not in our table of cards")


def test_a_step_on_any_host_of_our_tables_lies_within_the_band(runs):
    tape, rented = read_tape(runs.tape), machine("p3.2xlarge")
    steps_ns = [play(tape, replace(rented, host=host)).step_ns for host in hosts().values()]

    band = step_band(tape, rented)

    assert band.low < min(steps_ns) < max(steps_ns) < band.high
    assert band.expected == play(tape, rented).step_ns


@pytest.fixture
def calibrated(monkeypatch, tmp_path):
    """A reader whose host was measured: 0.4 times the table's amounts, off by a fifth."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    monkeypatch.setattr(own_machine, "cpu_name", lambda: "some processor")
    host = OwnHost("some processor", 8, 0.4, 0.2, "counted")
    own_machine.path().write_text(own_machine.as_toml(Calibration("2026-03-01T12:00:00+00:00", host)), "utf-8")


def test_a_calibrated_host_takes_the_place_of_all_others(calibrated):
    stand_in = standing_in(V100)

    assert (stand_in.machine.host.name, stand_in.machine.card.name) == ("here", "V100-SXM2-16GB")
    assert "as `gpututor calibrate` measured it on 2026-03-01" in stand_in.words


def test_the_calibration_of_another_processor_says_nothing_of_this_run(calibrated):
    assert standing_in(replace(V100, host="another processor")).machine.host.name != "here"


def test_a_damaged_calibration_leaves_the_hosts_of_our_tables(calibrated):
    own_machine.path().write_text("{")

    assert standing_in(V100).machine.name == "p3.2xlarge"


def test_a_calibrated_host_narrows_the_band(calibrated, runs):
    tape = read_tape(runs.tape)
    own, others = step_band(tape, standing_in(V100).machine), step_band(tape, machine("p3.2xlarge"))

    assert own.high / own.low < others.high / others.low


def test_the_calibrated_band_is_the_hosts_error_and_the_models_own_together(calibrated, runs):
    tape, here = read_tape(runs.tape), standing_in(V100).machine
    slow = replace(here, host=replace(here.host, costs=scaled(here.host.costs, 1.2)))
    by_host = play(tape, slow).step_ns / play(tape, here).step_ns - 1

    band = step_band(tape, here)

    assert band.high / band.expected == pytest.approx(1 + together(by_host, error_of(BUSY_RUNS)[0]))


def test_busy_time_that_a_profiler_does_not_break_down_is_compared_as_a_whole(runs):
    timeline = timeline_file.load(runs.measured.folder / runs.measured.data["timeline"])
    both = beside(timeline, read_tape(runs.tape))

    busy = {each.account for each in both.comparison.accounts} & set(BUSY)
    (whole,) = [each for each in both.comparison.accounts if each.account in BUSY]
    assert busy == {Account.BUSY_UNSPLIT}
    assert whole.expected_ns == both.expected.busy_ns / N_KEPT


def test_the_accounts_still_sum_to_the_difference_in_wall_time(runs):
    timeline = timeline_file.load(runs.measured.folder / runs.measured.data["timeline"])
    both = beside(timeline, read_tape(runs.tape))

    total_ns = sum(each.difference_ns for each in both.comparison.accounts)
    assert total_ns == pytest.approx(both.measured.step_ns - both.expected.step_ns)


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        ("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz", "broadwell-e5-2686v4"),
        ("AMD EPYC 7R13 Processor", "epyc-7r13"),
        ("Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", "cascade-lake-8259cl"),
    ],
)
def test_a_processor_of_our_tables_is_known_by_its_number(cpu, name):
    assert host_like(cpu).name == name


@pytest.mark.parametrize("cpu", [None, "", "x86_64", "AMD Ryzen 9 9950X 16-Core Processor"])
def test_another_processor_is_not(cpu):
    assert host_like(cpu) is None


def test_a_host_of_our_tables_takes_the_place_of_the_usual_one():
    stand_in = standing_in(Label(Origin.MEASURED, "V100-SXM2-16GB", "AMD EPYC 7R13 Processor"))

    assert stand_in.machine.host.name == "epyc-7r13"
    assert stand_in.machine.name == "p3.2xlarge with AMD EPYC 7R13"


def test_the_pace_without_the_profiler_is_that_of_the_second_half_of_the_unrecorded_steps():
    # 4 of 10 µs busy while recorded; unrecorded 8 µs a step, after slow first ones
    ledger = charge(draw(gpu="####......", steps="1111111111", label=V100))
    rows = [[90 * US, 1.0], [50 * US, 1.0], [7 * US, 1.0], [9 * US, 1.0], [10 * US, 1.0]]

    text = without_profiler(ledger, rows, 1).replace("\N{NO-BREAK SPACE}", " ")

    assert "Recorded, a step took 10.0 µs; the 2 before, which nobody recorded, took 8.00 µs" in text
    assert text.endswith("about 50 % busy.")


def test_without_unrecorded_steps_nothing_is_said_on_the_pace():
    assert without_profiler(charge(draw(gpu="##", steps="11", label=V100)), [[2 * US, 1.0]], 1) == ""


# --- lesson 1's workloads ------------------------------------------------------------------------------------------


def test_measured_workloads_stand_beside_expected_ones(tmp_path, monkeypatch, runs):
    def adding(device):
        import torch

        x = torch.ones(8, device=device)
        return lambda: x + x

    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))
    with machine_with_gpu() as bench:
        told = measured.gauge(Progress(results_dir=tmp_path), bench=bench, workloads=[Workload("adding", 40, adding)])

    text = plain(gt.measured_gauges(stored(tmp_path, "gauge", told), {"adding": runs.tape}))

    assert "Three gauges, measured" in text
    assert "The same, expected Simulated V100-SXM2-16GB · p3.2xlarge" in text
    assert "One kernel Measured V100-SXM2-16GB" in text


# --- in the lesson -------------------------------------------------------------------------------------------------


@pytest.fixture
def lesson_text(runs, home, monkeypatch):
    """Runs lesson 2 for that reader on a machine with such GPUs; gives the text of its page."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(home))
    monkeypatch.setattr("gpututor.lab.pool.Lab.warm", lambda *_: None)
    monkeypatch.setattr(mo, "query_params", dict)

    def run(*names: str) -> str:
        monkeypatch.setattr("gpututor.page.measured.find_gpus", found(*names))
        outputs, _ = runpy.run_path(str(ROOT / "lessons" / "02_the_25_percent_mystery.py"))["app"].run()
        return plain(mo.vstack([each for each in outputs if each is not None]))

    return run


def test_lesson_2_shows_the_measured_run_where_there_is_a_gpu(lesson_text):
    text = lesson_text("Tesla V100-SXM2-16GB")

    assert "Measure it here Tesla V100-SXM2-16GB" in text
    assert "Measured beside expected Measured V100-SXM2-16GB" in text
    assert "no GPU was found" not in text


def test_lesson_2_says_in_one_line_that_all_is_simulated_where_there_is_none(lesson_text):
    text = lesson_text()

    assert text.count("no GPU was found here") == 1
    assert "Measured V100" not in text
    assert "Measure it" not in text


def test_a_measured_run_whose_file_is_damaged_is_one_sentence(runs, tmp_path, monkeypatch):
    (tmp_path / "gone.timeline.json").write_text("{")
    broken = replace(runs.measured, folder=tmp_path, data=runs.measured.data | {"timeline": "gone.timeline.json"})
    monkeypatch.setattr("gpututor.page.measured.find_gpus", found())
    own = gt.OwnGpu(Store(), "02", "any")
    own.runner = type("Kept", (), {"trouble": None, "result": broken, "caught_up": lambda _, now: now})()
    own.found = Gpus(("V100",))

    text = plain(own.section([], gt.Shown("done"), lambda run: gt.measured_steps(run, runs.tape)))

    assert "What this run left can't be shown: " in text
