"""`gpututor job`: what it prints, saves and says when it is stopped or can't be done."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from gpututor import timeline_file
from gpututor.cli import job as job_module
from gpututor.cli import main
from gpututor.cli.job import JOBS, Job
from gpututor.history import History
from gpututor.jobs.tutorial import TUTORIAL_STEPS

N_STEPS = 3


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["job", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def tapes(tmp_path_factory) -> Path:
    """One short training for all tests of this file."""
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module", autouse=True)
def trained_once(tapes):
    """The job's tape of a first run is handed out again, since training takes longer than all the rest."""
    known: dict[int, dict] = {}

    def train(progress, n_steps, machine):
        if n_steps not in known:
            known[n_steps] = JOBS_AS_SHIPPED["seq2seq"].train(progress, n_steps, machine)
            (tapes / f"{n_steps}.tape.gz").write_bytes((progress.results_dir / known[n_steps]["tape"]).read_bytes())
        (progress.results_dir / known[n_steps]["tape"]).write_bytes((tapes / f"{n_steps}.tape.gz").read_bytes())
        return known[n_steps]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_module, "JOBS", {"seq2seq": Job(train, "sentence", TUTORIAL_STEPS)})
        yield


JOBS_AS_SHIPPED = JOBS


@pytest.fixture
def printed(capsys):
    """The text that the command prints, with plain spaces."""

    def _printed(*arguments: str) -> str:
        assert called("seq2seq", "--steps", str(N_STEPS), *arguments) == 0
        return capsys.readouterr().out.replace("\N{NO-BREAK SPACE}", " ")

    return _printed


@pytest.fixture
def data(printed):
    return json.loads(printed("--json", "--sensitivity"))


def test_the_first_line_says_what_is_simulated(printed):
    assert printed().startswith("Simulated V100-SXM2-16GB · p3.2xlarge · seq2seq")


def test_gauges_ledger_cause_and_money_are_printed(printed):
    text = printed()

    for words in ("wall time", "launch overhead", "busy", "SM fill", "MFU", "waits for the host to launch", "Money"):
        assert words in text


def test_the_room_around_step_and_utilization_is_printed_with_its_source(printed):
    assert re.search(r"Expect .* to .* a step on a real one, and .* to .* in nvidia-smi, by our accuracy on", printed())


def test_the_predicted_step_lies_in_its_band(data):
    low, high = data["bands"]["step_ns"]

    assert low < data["step_ns"] < high


def test_the_machine_may_be_a_card(printed):
    assert "Simulated H100-SXM · one card of p5.48xlarge" in printed("--machine", "H100")


def test_a_machine_without_a_price_says_so(printed):
    assert "nobody quotes a price" in printed("--machine", "A40")


def test_without_being_asked_nothing_is_said_on_sensitivity(printed):
    assert "What moves the busy share" not in printed()


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(printed, monkeypatch, columns):
    monkeypatch.setattr("gpututor.cli.job_tables.WIDTH_WITHOUT_TERMINAL", columns)

    assert max(map(len, printed("--sensitivity").splitlines())) <= columns


def test_the_lever_that_moves_busy_most_stands_first(printed):
    table = printed("--sensitivity").partition("constants ")[2]
    shares = [[float(x) for x in re.findall(r"([\d.]+) %", line)] for line in table.splitlines() if "%" in line]
    widths = [abs(double - half) for half, double in shares]

    assert widths == sorted(widths, reverse=True)


def test_the_json_accounts_add_up_to_the_steps(data):
    total_ns = sum(account["ns"] for account in data["ledger"].values())

    assert total_ns == pytest.approx(data["n_steps_accounted"] * data["step_ns"])
    assert data["n_steps_accounted"] == data["n_steps_done"] == data["n_steps_asked"] == N_STEPS


def test_the_json_has_the_fields_that_the_help_names(data, capsys):
    called("--help")
    told = capsys.readouterr().out

    assert set(data) <= set(re.findall(r"\w+", told))
    assert set(data["money"]) | set(data["sensitivity"]["moved"][0]) <= set(re.findall(r"\w+", told))


def test_the_json_money_is_the_hours_times_the_price(data):
    money = data["money"]

    assert money["usd_per_epoch"] == pytest.approx(money["epoch_s"] / 3600 * money["usd_per_hour"])


def test_the_saved_timeline_is_that_of_the_run(tmp_path, printed):
    path = tmp_path / "run.json.gz"
    printed("--save", str(path))

    assert len(timeline_file.load(path).steps) == N_STEPS


def test_a_folder_that_is_not_there_is_told_before_the_training(tmp_path, capsys):
    assert called("seq2seq", "--save", str(tmp_path / "no" / "run.json")) == 2
    assert capsys.readouterr().err == f"gpututor: there is no folder {tmp_path / 'no'} to save the timeline in\n"


def test_a_file_that_cannot_be_written_is_told_after_the_result(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpututor.timeline_file.save", full)

    assert called("seq2seq", "--steps", str(N_STEPS), "--save", str(tmp_path / "run.json")) == 2
    told = capsys.readouterr()
    assert "MFU" in told.out
    assert re.fullmatch(r"gpututor: the timeline can't be written to .*No space left on device\)\n", told.err)


def test_an_unknown_job_is_refused_with_near_names(capsys):
    assert called("seq2sec") == 2
    assert 'no job is called "seq2sec". Did you mean seq2seq?' in capsys.readouterr().err


def interrupted_at(k_wanted: int, monkeypatch) -> None:
    """Ctrl-C when so many steps are done."""

    def train(progress, n_steps, machine):
        tell = progress._tell

        def told(k, *rest):
            tell(k, *rest)
            if k == k_wanted:
                signal.raise_signal(signal.SIGINT)

        progress._tell = told
        return JOBS_AS_SHIPPED["seq2seq"].train(progress, n_steps, machine)

    monkeypatch.setattr(job_module, "JOBS", {"seq2seq": Job(train, "sentence", TUTORIAL_STEPS)})


def test_ctrl_c_accounts_what_ran_until_then(monkeypatch, capsys):
    interrupted_at(2, monkeypatch)

    assert called("seq2seq", "--steps", "5000") == 130
    assert "Stopped after 2 of 5,000 sentences" in capsys.readouterr().out


def test_ctrl_c_before_the_first_step_is_one_sentence(monkeypatch, capsys):
    interrupted_at(0, monkeypatch)

    assert called("seq2seq", "--steps", "5000") == 2
    assert "stopped before its first step" in capsys.readouterr().err


def test_ctrl_c_means_what_it_did_before_once_the_command_is_over(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    interrupted_at(1, monkeypatch)
    called("seq2seq", "--steps", "5000")

    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_is_logged_with_its_accounts_and_its_price(printed, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))

    printed()

    (entry,) = History().runs()
    assert (entry.kind, entry.name, entry.machine) == ("job", "seq2seq", "p3.2xlarge")
    assert sum(entry.accounts_ns.values()) == pytest.approx(entry.step_ns)
    assert entry.usd_per_1000_steps == pytest.approx(1000 * entry.step_ns / 1e9 / 3600 * entry.usd_per_hour)


def test_a_run_that_is_not_to_be_logged_is_not(printed, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUTUTOR_HOME", str(tmp_path))

    printed("--no-history")

    assert History().runs() == ()
