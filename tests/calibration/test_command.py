"""`gpututor calibrate` from the outside, and the file that it keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from gpututor import own_machine
from gpututor.calibration import on_cpu, whole
from gpututor.calibration.on_cpu import HostFound
from gpututor.cards import card, machine_for
from gpututor.cli import main
from gpututor.errors import CalibrationDamaged, CardNotKnown, NotCalibrated
from gpututor.lookup import machine_named
from gpututor.model.host import COST_NAMES
from gpututor.own_machine import Calibration, OwnCard, OwnHost, as_toml, base_costs, load
from tests.calibration.fake_bench import Made

CPU = 'Some "CPU" µ\\7 é'
AT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOST = OwnHost(CPU, 8, 0.4, 0.2, "counted", 12e9, None, 11.0)
FULL = Calibration(
    "2026-03-01T12:00:00+00:00",
    HOST,
    OwnCard("Tesla V100-SXM2-16GB", "550.54", {"fp16": 0.7}, 0.8),
    {"torch": "2.13.0"},
    {"launch_us": 4.5},
    {"pageable_bytes_per_s": "RuntimeError: out of memory"},
    ("the machine was busy",),
)


@pytest.fixture(autouse=True)
def own(monkeypatch, tmp_path):
    """A home of its own, on a machine with a processor that nobody has, nothing measuring."""
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GPUTUTOR_LOCK_DIR", str(tmp_path))
    for module in (own_machine, whole):
        monkeypatch.setattr(module, "cpu_name", lambda: CPU)
    monkeypatch.setattr(whole.surroundings, "warnings", lambda: ("the battery is low",))
    monkeypatch.setattr(on_cpu, "measured", lambda tell: HostFound(0.4, 0.2, "counted"))
    monkeypatch.setattr(whole, "_bench", lambda: (None, "no GPU was found"))


@pytest.fixture
def run(capsys):
    def _run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["calibrate", *arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out.replace("\N{NO-BREAK SPACE}", " "), err

    return _run


def keep(found: Calibration) -> None:
    whole.keep(found)


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [FULL, replace(FULL, card=None), replace(FULL, reasons={}, warnings=(), noted={})])
def test_what_is_kept_is_read_again(found):
    keep(found)

    assert load() == found


def test_without_a_file_there_is_no_calibration():
    assert load() is None


def test_that_of_another_processor_is_not_this_machines(monkeypatch):
    keep(FULL)
    monkeypatch.setattr(own_machine, "cpu_name", lambda: "another")

    assert load() is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format" = "gpututor-calibration"', '"format" = "other"'),
        ('"version" = 1', '"version" = 2'),
        ('"times" = 0.4', '"times" = 0'),
        ('"times" = 0.4', '"times" = nan'),
        ('"times" = 0.4', '"times" = "fast"'),
        ('"fp16" = 0.7', '"fp16" = 7'),
        ("[host]", "[hots]"),
        ("[host]", "[host"),
    ],
)
def test_a_damaged_file_is_one_sentence_that_says_what_to_do(old, new):
    keep(FULL)
    text = own_machine.path().read_text("utf-8")
    assert old in text
    own_machine.path().write_text(text.replace(old, new), "utf-8")

    with pytest.raises(CalibrationDamaged, match=r"can't be read \(.*measure again with `gpututor calibrate`"):
        load()


def test_bytes_that_are_no_text_are_a_damaged_file():
    keep(FULL)
    own_machine.path().write_bytes(b"\xff\xfe")

    with pytest.raises(CalibrationDamaged):
        load()


# --- machines -------------------------------------------------------------------------------------------------------


def test_here_is_the_measured_card_beside_the_measured_host():
    keep(FULL)
    here = machine_named("here")

    assert (here.name, here.card.name, here.n_cards, here.usd_per_hour) == ("here", "V100-SXM2-16GB", 1, None)
    assert (here.card.sustained["fp16"], here.card.bandwidth_share) == (0.7, 0.8)
    assert here.card.sustained["fp32"] == card("V100-SXM2-16GB").sustained["fp32"]


def test_the_hosts_costs_are_the_tables_times_what_was_measured():
    keep(FULL)
    host = machine_named("here").host

    assert set(host.costs) == set(COST_NAMES)
    assert host.costs["launch"] == pytest.approx(0.4 * base_costs()["launch"])
    assert host.costs["copy_latency"] == base_costs()["copy_latency"]  # the link's, not the processor's
    assert host.costs_error_share == 0.2


def test_what_was_not_measured_is_the_usual_hosts():
    keep(FULL)
    host, usual = machine_named("here").host, machine_for("V100-SXM2-16GB").host

    assert (host.pinned_bytes_per_s, host.sync_us) == (12e9, 11.0)
    assert host.pageable_bytes_per_s == usual.pageable_bytes_per_s
    assert host.sources["pageable_bytes_per_s"] == f"as {usual.name}"


def test_another_card_can_be_put_into_this_computer():
    keep(replace(FULL, card=None))
    put_in = machine_named("T4 here")

    assert (put_in.name, put_in.card.name, put_in.host.name) == ("T4 here", "T4", "here")
    assert machine_named(put_in.name) == put_in


def test_without_a_calibration_here_is_refused_with_what_to_do():
    with pytest.raises(NotCalibrated, match="run `gpututor calibrate` first"):
        machine_named("here")


def test_without_a_card_one_has_to_be_named():
    keep(replace(FULL, card=None))

    with pytest.raises(NotCalibrated, match='name one to put in: "T4 here"'):
        machine_named("here")


def test_a_measured_card_that_is_not_listed_is_refused():
    keep(replace(FULL, card=OwnCard("NVIDIA X9000")))

    with pytest.raises(CardNotKnown, match="X9000"):
        machine_named("here")


# --- the command ----------------------------------------------------------------------------------------------------


def test_without_a_gpu_the_operators_decide_and_every_missing_figure_has_its_reason(run):
    status, out, _ = run()

    assert status == 0
    assert load().host.times == 0.4
    assert load().reasons == dict.fromkeys(whole.NEEDS_GPU, "no GPU was found")
    assert "Host work takes 0.4 times the amounts of our table, give or take 20 %: counted." in out
    assert "Warning: the battery is low." in out


def test_with_a_gpu_both_are_measured(run, monkeypatch):
    monkeypatch.setattr(whole, "_bench", lambda: (Made().bench(), ""))
    status, out, _ = run("--json")
    found = json.loads(out)

    assert status == 0
    assert found["host"]["times"] == pytest.approx(0.5)
    assert found["card"]["name"] == "Tesla V100-SXM2-16GB"
    assert machine_named("here").card.bandwidth_share == pytest.approx(0.8, rel=0.01)


def test_a_gpu_that_gives_no_host_leaves_the_operators(monkeypatch):
    broken = Made(failing={"network": RuntimeError("no kernel image")}).bench()
    monkeypatch.setattr(whole, "_bench", lambda: (broken, ""))

    found = whole.calibrate(lambda *_: None, lambda: AT)

    assert (found.host.times, found.host.how, found.measured_at) == (0.4, "counted", FULL.measured_at)
    assert "no kernel image" in found.reasons["no_grad_ns"]


def test_the_json_has_the_fields_that_the_help_names(run):
    _, told, _ = run("--help")
    _, out, _ = run("--json")

    names = set(json.loads(out)) | set(json.loads(out)["host"])
    assert all(name in told for name in names)


def test_show_prints_what_was_kept_and_measures_nothing(run, monkeypatch):
    keep(FULL)
    monkeypatch.setattr(whole, "calibrate", lambda tell: 1 / 0)
    status, out, _ = run("--show")

    assert status == 0
    assert "Tesla V100-SXM2-16GB, driver 550.54" in out
    assert "fp16: 70 % of the data sheet's rate" in out
    assert "not measured: pageable_bytes_per_s (RuntimeError: out of memory)" in out


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "none of them until `gpututor calibrate` has measured it"),
        (FULL, '"here" is your own computer, calibrated on 2026-03-01'),
        (replace(FULL, card=None), '"T4 here", and so with any card, is your own computer'),
    ],
)
def test_the_list_of_machines_says_whether_the_readers_own_is_among_them(capsys, found, words):
    if found is not None:
        keep(found)
    with pytest.raises(SystemExit):
        main(["machines"])

    assert words in capsys.readouterr().out


def test_the_list_of_machines_stands_with_a_damaged_calibration(capsys):
    keep(FULL)
    own_machine.path().write_text("{")
    with pytest.raises(SystemExit) as ended:
        main(["machines"])

    assert ended.value.code in (0, None)
    assert "measure again with `gpututor calibrate`" in capsys.readouterr().out


def test_show_without_a_calibration_is_one_sentence(run):
    status, out, err = run("--show")

    assert (status, out) == (2, "")
    assert "has not been calibrated" in err


def test_reset_forgets(run):
    keep(FULL)

    assert run("--reset")[0] == 0
    assert load() is None
    assert "no calibration to forget" in run("--reset")[1]


def test_reset_also_takes_away_a_damaged_file(run):
    keep(FULL)
    own_machine.path().write_text("{")

    assert run("--reset")[0] == 0
    assert not own_machine.path().exists()


def test_ctrl_c_leaves_what_was_there(run, monkeypatch):
    keep(FULL)
    monkeypatch.setattr(on_cpu, "measured", lambda tell: (_ for _ in ()).throw(KeyboardInterrupt))

    assert run()[0] == 130
    assert load() == FULL
    assert list(own_machine.path().parent.iterdir()) == [own_machine.path()]


def test_a_folder_that_cannot_be_written_to_is_one_sentence(run, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path / "file"))
    status, _, err = run()

    assert status == 2
    assert "can't be written" in err


def test_while_another_measurement_runs_it_is_refused(run, tmp_path):
    code = "from gpututor.lab.lock import measuring\nwith measuring('x'):\n    print(flush=True)\n    input()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    try:
        status, _, err = run()
    finally:
        other.communicate("\n")

    assert status == 2
    assert "is measuring real time" in err


def test_the_file_is_toml_whatever_the_processor_is_called():
    keep(replace(FULL, host=replace(HOST, how='a "quote", a \\ and \x7f')))

    assert load().host.how == 'a "quote", a \\ and \x7f'
    assert as_toml(FULL).count("[host]") == 1
