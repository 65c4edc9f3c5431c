from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

import gpututor
from gpututor.cards import cards, machines
from gpututor.cli import COMMANDS, main
from gpututor.cli.lessons import CourseNotServed, free_port, server_command


@pytest.fixture
def run(capsys):
    """Run one command line; gives exit status, stdout and stderr."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return _run


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_version_is_the_package_version(run):
    assert run("--version") == (0, f"gpututor {gpututor.__version__}\n", "")


def test_without_a_command_the_help_lists_all_of_them(run):
    status, out, _ = run()

    assert status == 0
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(run, name):
    status, out, _ = run(name, "--help")

    assert status == 0
    assert out.startswith(f"Usage: gpututor {name}")


def test_cards_lists_every_card(run):
    _, out, _ = run("cards")

    assert all(name in out for name in cards())


def test_one_card_shows_where_its_figures_come_from(run):
    _, out, _ = run("cards", "v100")

    assert "V100-SXM2-16GB · Volta" in out
    assert "NVIDIA V100 data sheet, 2020" in out


def test_cards_as_json_carries_units_and_sources(run):
    _, out, _ = run("cards", "V100", "--json")
    figures = json.loads(out)

    assert figures["bandwidth_bytes_per_s"] == 900e9
    assert figures["peak_flop_per_s"]["fp16"] == 125e12
    assert "NVIDIA V100 data sheet" in figures["sources"]["tdp_w"]


def test_all_cards_as_json_is_one_list(run):
    _, out, _ = run("cards", "--json")

    assert [c["name"] for c in json.loads(out)] == list(cards())


def test_machines_lists_every_machine_with_its_price(run):
    _, out, _ = run("machines")

    assert all(name in out for name in machines())
    assert "$3.06" in out


def test_machines_as_json_names_card_and_host(run):
    _, out, _ = run("machines", "--json")
    p3 = next(m for m in json.loads(out) if m["name"] == "p3.8xlarge")

    assert (p3["card"], p3["n_cards"], p3["usd_per_card_hour"]) == ("V100-SXM2-16GB", 4, 3.06)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["cards", "V101"], 'gpututor: no card is called "V101". Did you mean', id="card"),
        pytest.param(["cardz"], 'gpututor: no command is called "cardz". Did you mean cards', id="command"),
        pytest.param(["cards", "--jsn"], "gpututor: No such option", id="option"),
        pytest.param(["lessons", "--port", "70000"], "gpututor: Invalid value for '--port': 70000", id="port"),
        pytest.param(["lessons", "--host", "no.such.name.invalid"], "gpututor: no address is called", id="host"),
    ],
)
def test_a_wrong_word_is_one_sentence_on_stderr_and_status_2(run, arguments, sentence):
    status, out, err = run(*arguments)

    assert (status, out) == (2, "")
    assert err.startswith(sentence)
    assert err.count("\n") == 1


def test_a_reader_who_closes_the_pipe_sees_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "gpututor", "cards"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)

    assert done.stderr == ""


def test_a_wanted_port_that_is_taken_is_named(taken_port):
    with pytest.raises(CourseNotServed, match=f"port {taken_port} on 127.0.0.1 is taken"):
        free_port("127.0.0.1", taken_port)


def test_without_a_wish_a_taken_port_is_passed_over(taken_port, monkeypatch):
    monkeypatch.setattr("gpututor.cli.lessons.DEFAULT_PORT", taken_port)

    assert free_port("127.0.0.1", None) > taken_port


def test_the_course_is_served_by_this_python_and_opens_no_browser_when_told_so(tmp_path):
    command = server_command(tmp_path, "127.0.0.1", 2718, headless=True)

    assert command[0] == sys.executable
    assert command[-1] == "--headless"


def test_the_course_answers_on_this_machine(run):
    status, out, err = run("lessons", "--check")

    assert (status, err) == (0, "")
    assert out.startswith("The course answers at http://127.0.0.1:")
