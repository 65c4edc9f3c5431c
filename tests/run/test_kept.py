"""A finished run in the history, and a measured one beside its prediction."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from gpututor.ledger import Account
from gpututor.model import tape_file
from gpututor.model.kernels import Gemm
from gpututor.model.spec import HostKind
from gpututor.model.tape import BeginStep, EndRun, Sync, Tape, TapeOp
from gpututor.run import outcome, report, report_json
from gpututor.run.keeping import entry_of
from gpututor.run.parent import Ended
from gpututor.run.request import TAPE, Request
from tests.run.test_here import watched_run

TOLD = {
    "n_steps": 3,
    "n_left_out": 1,
    "n_kept": 2,
    "n_launches": 2,
    "steps_are": "optimizer",
    "optimizer": "AdamW",
    "kept_whole": True,
    "torch": "2.13.0",
    "error": None,
    "seconds": 1.5,
    "stopped": None,
    "memory_peak_bytes": 1,
}
REQUEST = Request("train.py", ("--lr", "1"), machine="p3.2xlarge")
ENDED = Ended(0, TOLD, True, None, "exit code 0", 2**29, 2.5)


@pytest.fixture
def predicted(tmp_path):
    """A simulated run of two steps with one product each."""
    product = TapeOp("mm", HostKind.GEMM, "forward", (Gemm("gemm", 1024, 1024, 1024, 12 * 2**20, "fp32"),))
    tape = Tape("train.py", [BeginStep(), product, BeginStep(), product, Sync("end"), EndRun()], [2.0, 1.0])
    tape_file.save(tape, tmp_path / TAPE)
    return outcome.simulated(REQUEST, ENDED, tmp_path)


@pytest.fixture
def measured(tmp_path):
    """A run on the made-up GPU: 30 µs of Python and a kernel of 20 µs that is waited for."""
    folder = tmp_path / "measured"
    folder.mkdir()
    return watched_run(folder, 9, skip=2)


def test_a_simulated_run_is_kept_with_its_steps_accounts_and_price(predicted):
    entry = entry_of(predicted)

    assert (entry.kind, entry.name, entry.origin, entry.machine) == ("run", "train.py", "simulated", "p3.2xlarge")
    assert sum(entry.accounts_ns.values()) == pytest.approx(entry.step_ns)
    assert entry.usd_per_1000_steps == predicted.usd_per_1000_steps
    assert entry.versions == {"torch": "2.13.0"}


def test_a_measured_run_has_no_price_and_says_so(measured):
    entry = entry_of(measured)

    assert entry.origin == "measured"
    assert entry.usd_per_1000_steps is None
    assert "usd_per_1000_steps" in entry.reasons


def test_how_many_steps_were_asked_for_makes_no_other_run(predicted):
    longer = replace(predicted, request=replace(REQUEST, n_steps=500))

    assert entry_of(longer).key == entry_of(predicted).key


def test_other_arguments_make_another_run(predicted):
    other = replace(predicted, request=replace(REQUEST, arguments=("--lr", "2")))

    assert entry_of(other).key != entry_of(predicted).key


def test_a_run_without_a_ledger_is_kept_with_the_reason(predicted):
    died = replace(predicted, timeline=None, ledger=None, why_none="its process is gone")

    entry = entry_of(died)

    assert entry.step_ns is None
    assert entry.reasons["step_ns"] == "its process is gone"


def test_a_comparison_ends_with_a_verdict_on_each_account(predicted, measured):
    console = Console(width=120, record=True, file=io.StringIO())

    report.show_comparison(predicted, measured, console)

    text = console.export_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "A step:" in text
    assert "to tell:" in text


def test_verdicts_as_json_say_account_room_and_experiment(predicted, measured):
    found = report_json.verdict_fields(outcome.verdicts(predicted, measured))

    accounts = {each["account"]: each for each in json.loads(json.dumps(found))["accounts"]}
    assert accounts["launch_overhead"]["seen_ns"] == pytest.approx(
        measured.ledger.charged_ns[Account.LAUNCH_OVERHEAD] / measured.ledger.n_steps
    )
    assert set(found) == {"step", "accounts", "source"}


def test_a_run_without_steps_gets_no_verdicts(predicted, measured):
    assert outcome.verdicts(predicted, replace(measured, ledger=None)) is None
    assert report_json.verdict_fields(None) is None
