"""A real dask cluster on this machine: a scheduler and worker processes, which a test may kill."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STARTS_WITHIN_S = 60.0


@contextmanager
def running(folder: Path, n_workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The scheduler's address and the workers' processes."""
    told = folder / "scheduler.json"
    python = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(told)], **quiet
    )  # fmt: skip
    worker = [*python, "distributed.cli.dask_worker", "--scheduler-file", str(told), "--nthreads", "1", "--no-nanny"]
    workers = [subprocess.Popen([*worker, "--no-dashboard", "--name", f"w{k}"], **quiet) for k in range(n_workers)]
    try:
        address = _address(told)
        _wait_for(address, n_workers)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def _address(told: Path) -> str:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s:
        try:
            return str(json.loads(told.read_text())["address"])
        except (OSError, ValueError, KeyError):
            time.sleep(0.1)
    raise TimeoutError("no scheduler came up")


def _wait_for(address: str, n_workers: int) -> None:
    code = (
        f"import distributed\nwith distributed.Client({address!r}, timeout={STARTS_WITHIN_S}) as client:\n"
        f"    client.wait_for_workers({n_workers}, timeout={STARTS_WITHIN_S})"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
