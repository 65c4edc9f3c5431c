"""What the command line refuses, and how the reports look; no script is started here."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from gpututor.cli.run import CannotRun, chosen_machine, run_command
from gpututor.errors import CardNotKnown, MachineNotKnown
from gpututor.expect.accuracy import step_band
from gpututor.ledger import charge
from gpututor.model import tape_file
from gpututor.model.kernels import Gemm
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp
from gpututor.run import outcome, report, report_html, report_json
from gpututor.run.parent import Ended
from gpututor.run.request import TAPE, Request
from gpututor.run.target import NoScript, check
from gpututor.run.words import what_nvidia_smi_shows
from gpututor.text import duration
from gpututor.timeline import Label, Lane, LaneKind, Origin, Step, Timeline
from tests.draw import draw

TOLD = {
    "n_steps": 3,
    "n_left_out": 1,
    "n_kept": 2,
    "n_launches": 6,
    "steps_are": "optimizer",
    "optimizer": "AdamW",
    "kept_whole": True,
    "torch": "2.13.0",
    "error": None,
    "seconds": 1.5,
    "stopped": None,
    "memory_peak_bytes": 3 * 2**20,
}
REQUEST = Request("folder/train.py", ("--lr", "<1>"), machine="p3.2xlarge")
ENDED = Ended(0, TOLD, True, None, "exit code 0", 2**29, 2.5)


@pytest.fixture
def two_steps(tmp_path):
    """The outcome of a run of two steps with three products each."""
    product = TapeOp("mm", HostKind.GEMM, "forward", (Gemm("gemm", 1024, 1024, 1024, 12 * 2**20, "fp32"),))
    step = [BeginStep(), product, product, product]
    tape_file.save(Tape("train.py", [*step, *step, Sync("end"), EndRun()], [2.0, 1.0]), tmp_path / TAPE)
    return outcome.simulated(REQUEST, ENDED, tmp_path)


def test_a_missing_file_is_named_with_near_ones(tmp_path):
    (tmp_path / "train.py").touch()

    with pytest.raises(NoScript, match=r"trian.py is not there .*Did you mean .*train.py\?"):
        check(str(tmp_path / "trian.py"))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        pytest.param("train.sh", b"set -e\npython train.py\n", "is no Python script", id="shell"),
        pytest.param("model.pt", b"PK\x03\x04\x00\xff\xfe", "is no Python script", id="binary"),
    ],
)
def test_what_holds_no_python_is_refused(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(NoScript, match=why):
        check(str(tmp_path / name))


def test_a_folder_needs_a_main(tmp_path):
    with pytest.raises(NoScript, match=r"a folder without a __main__\.py"):
        check(str(tmp_path))


def test_a_syntax_error_is_left_to_python(tmp_path):
    (tmp_path / "train.py").write_text("x = = 1\n")

    check(str(tmp_path / "train.py"))


def test_the_machine_is_the_usual_one_for_the_card_unless_it_is_named():
    assert chosen_machine("T4", None).name == "g4dn.xlarge"
    assert chosen_machine("V100", "p3.2xlarge").name == "p3.2xlarge"
    with pytest.raises(CannotRun, match="has the card V100-SXM2-16GB, not T4"):
        chosen_machine("T4", "p3.2xlarge")


@pytest.mark.parametrize(("gpu", "machine"), [("B17", None), (None, "p17.large"), ("B17", "p3.2xlarge")])
def test_a_name_that_is_not_known_is_refused(gpu, machine):
    with pytest.raises((MachineNotKnown, CardNotKnown), match="is called"):
        chosen_machine(gpu, machine)


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["--steps", "3", "train.py", "--steps", "9", "-m"], ("train.py", "--steps", "9", "-m")),
        (["-m", "package", "--json"], ("--json",)),
        (["--json", "-m", "package", "-h"], ("-h",)),
    ],
)
def test_what_follows_the_script_is_the_scripts_own(words, script):
    context = run_command.make_context("run", list(words))

    assert context.params["script"] == script


def test_the_accounts_of_the_steps_add_up_to_their_time(two_steps):
    ledger = two_steps.ledger

    assert sum(ledger.charged_ns.values()) == ledger.window_ns
    assert ledger.n_steps == 2


def test_a_thousand_steps_cost_their_time_at_the_machines_price(two_steps):
    seconds = 1000 * two_steps.ledger.window_ns / 2 / 1e9

    assert two_steps.usd_per_1000_steps == pytest.approx(seconds * 3.06 / 3600)


@pytest.mark.parametrize("width", [80, 120])
def test_the_text_fits_its_terminal(two_steps, width):
    console = Console(width=width, record=True, file=io.StringIO())
    report.show(two_steps, console)
    lines = console.export_text().splitlines()

    assert max(map(len, lines)) <= width
    assert any(line.startswith("Wall time") for line in lines)
    assert any("2 steps of" in line and "1 before left out" in line for line in lines)


def test_the_band_is_that_of_such_runs_and_stands_in_every_form(two_steps):
    expected = step_band(two_steps.timeline, two_steps.ledger)
    console = Console(width=120, record=True, file=io.StringIO())
    report.show(two_steps, console)
    text = " ".join(console.export_text().split())

    assert two_steps.band == expected
    assert report_json.document(two_steps)["bands"]["step_ns"] == [expected.low, expected.high]
    assert f"Expect {duration(expected.low)} to {duration(expected.high)} a step".replace("\xa0", " ") in text
    assert duration(expected.low) in report_html.page([two_steps])


def looked_at(told: outcome.Outcome, drawn: str) -> outcome.Outcome:
    """The same outcome of another timeline, each character of which is half a second of one step."""
    timeline = draw(gpu=drawn, steps="1" * len(drawn), unit_ns=500_000_000)
    return replace(told, timeline=timeline, ledger=charge(timeline))


def test_the_range_of_what_nvidia_smi_shows_stands_in_every_form(two_steps):
    told = looked_at(two_steps, "aabb....")
    console = Console(width=120, record=True, file=io.StringIO())
    report.show(told, console)
    words = "would show 0 to 100\xa0% as you watch; each of its samples looks back over 1/6\xa0s to 1\xa0s by card, "

    assert f"nvidia-smi {words}".replace("\xa0", " ") in " ".join(console.export_text().split()) + " "
    assert words in report_html.page([told])
    assert report_json.document(told)["gpu_util_samples"] == {"period_s": 1 / 6, "low_share": 0.0, "high_share": 1.0}


def test_a_sample_of_a_short_step_sees_many_and_of_a_long_one_a_part(two_steps):
    assert "here 0.042 to 0.25 steps" in what_nvidia_smi_shows(looked_at(two_steps, "aabb...."))
    assert re.search(r"here \d+ to [\d,]+ steps", what_nvidia_smi_shows(two_steps))


def test_the_samples_cover_a_long_window_up_to_ten_minutes(two_steps):
    assert len(looked_at(two_steps, "a" * 8).gpu_util_samples) == 60  # ten seconds at least
    assert len(looked_at(two_steps, "a." * 30).gpu_util_samples) == 180
    assert len(looked_at(two_steps, "a" * 1300).gpu_util_samples) == 3600


def test_without_a_ledger_nvidia_smi_is_not_spoken_for(two_steps):
    none = replace(two_steps, ledger=None, timeline=None)

    assert what_nvidia_smi_shows(none) is None
    assert report_json.document(none)["gpu_util_samples"] is None


@pytest.mark.parametrize("changed", [{"clock": "paced"}, {"here": True}])
def test_what_no_report_of_ours_knows_has_no_band(two_steps, changed):
    other = replace(two_steps, request=replace(REQUEST, **changed))

    assert (other.band, other.util_band) == (None, None)
    assert report_json.document(other)["bands"] is None


def test_a_card_can_be_put_into_the_readers_own_computer(monkeypatch):
    asked = []
    monkeypatch.setattr("gpututor.cli.run.machine_named", asked.append)
    chosen_machine("T4", "here")

    assert asked == ["T4 here"]


def test_the_html_stands_alone_and_shows_what_was_typed(two_steps):
    page = report_html.page([two_steps])

    assert "--lr &lt;1&gt;" in page
    assert not re.search(r"https?://|<script|<link|url\(|@import", page)
    assert "prefers-color-scheme: dark" in page


def test_the_json_names_its_version_and_is_plain(two_steps):
    document = json.loads(json.dumps(report_json.document(two_steps), allow_nan=False))

    assert (document["format"], document["version"]) == ("gpututor-run", 1)
    assert document["steps"]["losses"] == [2.0, 1.0]
    assert document["memory_peak_bytes"] == 3 * 2**20


def test_the_layout_in_the_docstring_is_the_document(two_steps):
    described = set(re.findall(r'"(\w+)"', report_json.__doc__))

    assert set(report_json.document(two_steps)) <= described


def test_a_child_that_is_gone_is_told_with_what_it_had_done(tmp_path):
    told = {"n_steps": 7, "step_ns": 2_000_000.0}
    gone = outcome.simulated(
        REQUEST, replace(ENDED, told=told, whole=False, how="signal 11, segmentation fault"), tmp_path
    )

    assert gone.ledger is None
    assert "is gone (signal 11, segmentation fault)" in gone.why_none
    assert "7 steps of 2.00\xa0ms" in gone.why_none


def test_saving_leaves_timeline_and_tape(two_steps, tmp_path):
    sentences = list(report.save(two_steps, tmp_path / "run.json.gz"))

    assert len(sentences) == 2
    assert tape_file.load(tmp_path / "run.tape.gz").n_steps == 2


def test_without_a_gpu_measuring_is_refused_in_one_sentence(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (tmp_path / "train.py").touch()
    with pytest.raises(CannotRun, match="no GPU was found here"):
        run_command.main(["--gpu", "here", str(tmp_path / "train.py")], standalone_mode=False)


@pytest.mark.parametrize(("longest_ns", "n_notes"), [(400, 0), (500, 1)])
def test_a_step_that_holds_an_evaluation_is_told(longest_ns, n_notes):
    ends = [100, 200, 300, 300 + longest_ns]
    steps = tuple(Step(start, end) for start, end in pairwise([0, *ends]))
    lane = Lane(LaneKind.HOST, "main thread")

    assert len(outcome.uneven(Timeline((lane,), (), (0, ends[-1]), Label(Origin.SIMULATED), steps))) == n_notes
