"""`gpututor history`, and what `run` and `job` leave in it."""

from __future__ import annotations

import csv
import io
import json

import pytest

from gpututor.cli import main
from gpututor.history import History
from gpututor.history.drawing import sparkline
from gpututor.ledger import Account
from tests.history.runs import row, run


@pytest.fixture
def history(tmp_path, monkeypatch) -> History:
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))
    monkeypatch.delenv("GPUTUTOR_HISTORY", raising=False)
    return History()


@pytest.fixture
def told(capsys):
    """What the command prints, with plain spaces, and its exit status."""

    def _told(*arguments: str) -> tuple[str, int]:
        with pytest.raises(SystemExit) as ended:
            main(["history", *arguments])
        captured = capsys.readouterr()
        return (captured.out + captured.err).replace("\N{NO-BREAK SPACE}", " "), int(ended.value.code or 0)

    return _told


@pytest.fixture
def slower(history) -> History:
    """Four equal runs, and two whose input wait is 1.8 ms longer."""
    for entry in row("10 10 10 10"):
        history.log(entry)
    for _ in range(2):
        history.log(run(11.8, 3.8, commit="b" * 40))
    return history


def test_an_empty_history_says_what_fills_it(history, told):
    text, status = told()

    assert "gpututor run" in text
    assert status == 0


def test_the_list_has_a_line_for_each_run(slower, told):
    text, _ = told("list", "--last", "3")

    lines = text.splitlines()
    assert len(lines) == 4
    assert lines[-1].split()[0] == "6"
    assert "11.8 ms" in lines[-1]


def test_a_run_without_figures_is_listed_with_dashes(history, told):
    history.log(run(None, busy_share=None, usd_per_1000_steps=None))

    assert told("list")[0].splitlines()[1].split()[-3:] == ["–", "–", "–"]


def test_one_run_is_shown_with_accounts_versions_and_configuration(slower, told):
    text, _ = told("show", "-1")

    assert "waiting for input" in text
    assert "3.80 ms" in text
    assert "torch 2.13.0" in text
    assert "--batch" in text


def test_two_runs_compare_account_by_account(slower, told):
    text, _ = told("compare", "1", "6")

    assert "+18 % a step" in text
    assert "+1.80 ms" in text
    assert "commit aaaaaaaaa before and bbbbbbbbb after" in text


def test_two_runs_of_different_settings_are_said_not_to_be_repeats(history, told):
    history.log(run())
    history.log(run(configuration={"arguments": []}))

    text, _ = told("compare", "1", "2")

    assert "arguments ['--batch', '32'] before and [] after" in text
    assert "aren't repeats of each other" in text


def test_a_regression_is_one_sentence_and_exit_status_one(slower, told):
    text, status = told("regressions")

    assert "since run 5: +18 % a step, 10.0 ms before and 11.8 ms after, on the account waiting for input" in text
    assert status == 1


def test_regressions_as_json_have_the_account_and_the_band(slower, told):
    text, _ = told("regressions", "--json")

    (change,) = json.loads(text)["changes"]
    assert (change["since"], change["account"], change["over"]) == (5, "waiting_for_input", False)
    assert change["before_ns"] == 10_000_000


def test_too_few_runs_cannot_tell(history, told):
    history.log(run())

    text, status = told("regressions")

    assert "cannot tell yet, with 1 of the 4 runs" in text
    assert status == 0


def test_the_export_has_a_column_for_each_account(slower, told):
    text, _ = told("export")

    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 6
    assert float(rows[-1]["waiting_for_input_ns"]) == 3_800_000
    assert {f"{account.name.lower()}_ns" for account in Account} < set(rows[0])


def test_the_export_leaves_unknown_cells_empty(history, told):
    history.log(run(None))

    (line,) = csv.DictReader(io.StringIO(told("export")[0]))
    assert line["step_ns"] == line["waiting_for_input_ns"] == ""


def test_runs_are_deleted_by_number(slower, told):
    told("delete", "5", "6", "--yes")

    assert [entry.number for entry in slower.runs()] == [1, 2, 3, 4]


def test_deleting_nothing_is_refused(history, told):
    text, status = told("delete", "--yes")

    assert "no run was named" in text
    assert status == 2


def test_the_plot_draws_each_run_as_a_block(slower, told):
    text, _ = told("plot")

    assert "▇▇▇▇██  runs 1 to 6, 10.0 ms to 11.8 ms, last 11.8 ms" in text


@pytest.mark.parametrize(
    ("values", "line"), [([], ""), ([0.0, 0.0], "▁▁"), ([1, 2, 4, 8], "▁▂▄█"), ([None, 5.0], " █"), ([1e-9, 1.0], "▁█")]
)
def test_blocks_are_an_eighth_of_the_largest_each(values, line):
    assert sparkline(values) == line


def test_the_page_is_written_where_it_is_asked_for(slower, told, tmp_path):
    text, status = told("plot", "--html", str(tmp_path / "runs.html"))

    assert (text.splitlines()[-1], status) == (f"The charts are in {tmp_path / 'runs.html'}.", 0)
    assert "since run 5" in (tmp_path / "runs.html").read_text(encoding="utf-8")


def test_a_damaged_history_is_said_to_be_kept_aside(history, told):
    history.path.write_text("no database")

    assert "It was kept as history.damaged-" in told("list")[0]
