"""A workshop's server as an instructor starts it, with a class of made-up learners."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpututor.workshop.keys import Keys, read
from tests.workshop.protocol import ask

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 60.0


@dataclass(frozen=True)
class Workshop:
    """A running one: where it listens, its folder, its keys, what it wrote, and the process that was started."""

    url: str
    state: Path
    keys: Keys
    log: Path
    process: subprocess.Popen[bytes]


def roster(path: Path, n: int) -> Path:
    """A class of `n`, whose ids are learner-01 and so on."""
    path.write_text("id,name\n" + "".join(f"learner-{k:02d},Learner {k}\n" for k in range(1, n + 1)), "utf-8")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def workshop(scratch: Path, n: int, *more: str, env: Mapping[str, str] | None = None) -> Iterator[Workshop]:
    """`gpututor workshop` for a class of `n`, its files below `scratch`; asked to end on the way out."""
    port, log = free_port(), scratch / "workshop.log"
    command = [sys.executable, "-m", "gpututor", "workshop", "--roster", str(roster(scratch / "roster.csv", n))]
    command += ["--state", str(scratch / "state"), "--port", str(port), *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GPUTUTOR_LOCK_DIR": str(scratch)}
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, stdout=written, stderr=subprocess.STDOUT, env=environment | dict(env or {}), cwd=scratch
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_up(url, process, log)
        yield Workshop(url, scratch / "state", read(scratch / "state"), log, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)


def wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            if ask(url, "/health").status == 200 and "is open at" in log.read_text("utf-8"):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the workshop did not open; it wrote:\n{log.read_text('utf-8')[-2000:]}")
