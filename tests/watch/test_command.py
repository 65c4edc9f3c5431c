"""`gpututor watch` as a process of its own: without a driver, with the fake one, and beside a paced run."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from gpututor.cli import main
from tests.measure.fake_nvml.driver import MISSING, FakeDriver, build, can_build

SLOW_S = 30  # for whole commands on a loaded machine; none takes that long by itself
COMMAND = [sys.executable, "-m", "gpututor", "watch"]


@pytest.fixture
def environ(tmp_path):
    """An environment without a driver and without other runs."""
    return {**os.environ, "GPUTUTOR_HOME": str(tmp_path / "home"), "COLUMNS": "100"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    if not can_build():
        pytest.skip(MISSING)
    return FakeDriver(build(tmp_path_factory.mktemp("driver")))


def run(environ, *arguments):
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ, timeout=SLOW_S)
    return done.returncode, done.stdout.replace("\u00a0", " "), done.stderr


def with_driver(environ, driver, script):
    """The environment in which the fake driver answers by this script."""
    found = {k: v for k, v in driver.environ(script).items() if k in {"LD_LIBRARY_PATH", "FAKE_NVML"}}
    return {k: v for k, v in environ.items() if not k.startswith("CUDA_")} | found


@pytest.fixture
def refused(capsys):
    """What a command line that can't be is answered."""

    def _refused(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["watch", *arguments])
        assert ended.value.code == 2
        return capsys.readouterr().err

    return _refused


def without_driver():
    from gpututor.measure.nvml import find_gpus

    return not find_gpus().names


def test_on_a_machine_without_a_driver_it_says_so_and_shows_the_cpu(environ):
    if not without_driver():
        pytest.skip("this machine has a GPU")
    status, out, err = run(environ, "--once")

    assert (status, err) == (0, "")
    assert out.startswith("No real GPU is visible: no NVIDIA driver is installed here")
    assert re.search(r"CPU .* of (one core|\d+ cores) busy", out)


def test_a_drivers_gpu_is_explained(environ, driver):
    told = with_driver(environ, driver, "name=NVIDIA H100;util=25;gpm=0;power_mw=250000;reasons=4")
    status, out, _ = run(told, "--once", "--gpu", "0")

    assert status == 0
    assert "gpu0: NVIDIA H100" in out
    assert "A kernel ran 25 % of the time; that says nothing of how full the card was." in out
    assert "the power limit is reached" in out


def test_a_gpu_that_is_not_there_is_said_not_to_be(environ, driver):
    _, out, _ = run(with_driver(environ, driver, "count=1"), "--once", "--gpu", "5")

    assert "No GPU of this number is here." in out
    assert "gpu0" not in out


def test_every_file_has_the_same_ticks(environ, driver, tmp_path):
    told = with_driver(environ, driver, "util=50")
    files = ["--csv", f"{tmp_path}/a.csv", "--jsonl", f"{tmp_path}/a.jsonl", "--tensorboard", f"{tmp_path}/tb"]
    status, out, _ = run(told, "--interval", "0.2", "--seconds", "1", *files)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]

    assert status == 0
    assert 1 <= len(rows) == len(lines) <= 5  # at 0.2, 0.4, … 1.0 s
    assert f"{len(rows)} reading" in out
    assert len(list((tmp_path / "tb").iterdir())) == 1
    assert {row["gpu0_kernel_time_share"] for row in rows} == {"0.5"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_a_summary_and_whole_rows(environ, tmp_path, number):
    process = subprocess.Popen(
        [*COMMAND, "--interval", "0.1", "--csv", f"{tmp_path}/a.csv"], stdout=subprocess.PIPE, text=True, env=environ
    )
    deadline = time.monotonic() + SLOW_S
    path = tmp_path / "a.csv"
    while time.monotonic() < deadline and not (path.exists() and path.read_text().count("\n") > 3):
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=SLOW_S)
    with path.open(newline="") as file:
        widths = {len(row) for row in csv.reader(file)}

    assert process.returncode == 0
    assert "Watched" in out.splitlines()[-1] or "Watched" in out.splitlines()[-2]
    assert len(widths) == 1
    assert path.read_text().endswith("\n")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
@pytest.mark.parametrize("columns", [60, 100])
def test_on_a_terminal_the_screen_is_drawn_again_and_fits(environ, columns):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    told = {k: v for k, v in environ.items() if k not in {"COLUMNS", "LINES", "NO_COLOR", "CI"}}
    told["TERM"] = "xterm-256color"
    process = subprocess.Popen(
        [*COMMAND, "--interval", "0.2", "--seconds", "0.9"], stdout=theirs, stderr=theirs, stdin=theirs, env=told
    )
    os.close(theirs)
    out = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's word for the end
            break
        if not part:
            break
        out += part
    os.close(ours)
    text = out.decode()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

    assert process.wait(SLOW_S) == 0
    assert text.count("Ctrl-C ends it") > 1  # drawn again
    assert "\x1b[1A" in text  # in its own place
    drawn = plain.partition("Watched")[0]
    assert max(len(line) for line in re.split(r"[\r\n]+", drawn)) <= columns


def test_a_paced_run_in_another_process_shows_up_as_a_simulated_gpu(environ, tmp_path):
    script = tmp_path / "busy.py"
    script.write_text(
        "import torch\n"
        "from gpututor.simgpu import simulated_gpu\n"
        "with simulated_gpu(numerics=False, clock='paced', what='busy.py'):\n"
        "    x = torch.zeros(8192, 8192, device='simgpu')\n"
        "    print('begun', flush=True)\n"
        "    for _ in range(2000):\n"
        "        x @ x\n"
        "        torch.simgpu.synchronize()\n"
    )
    run_of = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environ)
    try:
        assert run_of.stdout.readline() == "begun\n"
        deadline = time.monotonic() + SLOW_S
        out = ""
        while time.monotonic() < deadline and busy_share(out) <= 0.5:  # a first look may fall into its begin
            out = run(environ, "--once", "--gpu", "sim0")[1]
    finally:
        run_of.kill()
        run_of.communicate()

    assert "sim0: simulated V100-SXM2-16GB (busy.py" in out
    assert busy_share(out) > 0.5


def busy_share(out):
    """The share of time in which a kernel ran, as the words say it; 0 where they say nothing."""
    said = re.search(r"A kernel ran (all|[> ]*[\d.]+ %)", out)
    return 0.0 if said is None else 1.0 if said[1] == "all" else float(said[1].strip("> %")) / 100


def test_a_page_that_nobody_could_open_is_refused(refused):
    assert "--once ends before a browser could open the page" in refused("--once", "--page")


def test_a_port_without_a_page_is_refused(refused):
    assert "add --page" in refused("--port", "8080")


def test_a_file_that_holds_something_is_not_overwritten(refused, tmp_path):
    (tmp_path / "a.csv").write_text("old")

    assert "holds something already" in refused("--once", "--csv", f"{tmp_path}/a.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_page_is_served_while_the_watch_goes_on_and_stops_with_it(environ):
    import urllib.error
    import urllib.request

    process = subprocess.Popen(
        [*COMMAND, "--page", "--interval", "0.2"], stdout=subprocess.PIPE, text=True, env=environ
    )
    address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline()).group()
    with urllib.request.urlopen(f"{address}/readings", timeout=10) as answer:
        told = json.load(answer)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SLOW_S)

    assert told["words"]["cpu"].startswith("CPU")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)
