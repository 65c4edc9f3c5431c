"""Lesson 16 for real: the small network in one process and in two, started by torchrun on this computer.

The processes reach each other by way of 127.0.0.1 alone and meet by way of a file. They end with the run.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from gpututor.errors import ExperimentError
from gpututor.lab.lock import measuring
from gpututor.lab.processes import how_it_ended, import_path
from gpututor.own_machine import cpu_name
from gpututor.progress import Progress, Stopped

CHILD = "gpututor.experiments.torchrun_child"
LOOK_EVERY_S = 0.1
LONGEST_S = 120.0  # of one job; starting takes some seconds, its steps take some more
GRACE_S = 5.0  # for torchrun to end its processes by itself
N_STEPS, N_WARMUP = 60, 4
LAST_WORDS = 300  # characters of what a failed job wrote


def loopback() -> str:
    """The name of the interface that this computer alone can reach.

    Raises:
        ExperimentError: there is none.
    """
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.family == socket.AF_INET and each.address == "127.0.0.1" for each in addresses):
            return str(name)
    raise ExperimentError("this computer has no interface with the address 127.0.0.1; switch on its loopback interface")


def command(folder: Path, n_processes: int, n_steps: int, n_warmup: int, backend: str) -> list[str]:
    """The call of torchrun for so many processes, which meet by way of a file in `folder`."""
    meets = ["--rdzv-backend", "c10d", "--rdzv-endpoint", str(folder / "rendezvous"), "--rdzv-conf", "store_type=file"]
    here = ["--nnodes", "1", "--nproc-per-node", str(n_processes), "--local-addr", "127.0.0.1", *meets]
    run = [sys.executable, "-m", "torch.distributed.run", *here]
    return [*run, "-m", CHILD, str(folder), str(n_steps), str(n_warmup), backend]


def environment() -> dict[str, str]:
    """What the processes see: one thread each, and no interface but the loopback."""
    name = loopback()
    seen = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}
    seen["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # else torchrun listens for other machines
    path = import_path()
    return seen if path is None else seen | {"PYTHONPATH": path}


@contextmanager
def started(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A running torchrun, which ends with the block together with all that it started, whatever happens in it."""
    with log.open("wb") as words:
        job = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=words, stderr=words, env=environment())
        try:
            yield job
        finally:
            _end(job)


def _end(job: subprocess.Popen[bytes]) -> None:
    family = []
    with suppress(psutil.Error):
        family = psutil.Process(job.pid).children(recursive=True)
    if job.poll() is None:
        job.terminate()  # torchrun hands it on
        with suppress(subprocess.TimeoutExpired):
            job.wait(GRACE_S)
    for process in family:
        with suppress(psutil.Error):
            process.kill()  # psutil looks whether the number is still the same process's
    job.kill()
    job.wait()


def train(
    progress: Progress, n_processes: int, n_steps: int, n_warmup: int, backend: str, before: int, whole: int
) -> dict[str, Any]:
    """Losses and wall times of the steps of so many processes; `before` of `whole` steps were done.

    Raises:
        ExperimentError: torchrun or one of its processes failed, or took too long.
        Stopped: the reader stopped it; nothing of it runs on.
    """
    what = "1 process" if n_processes == 1 else f"{n_processes} processes"
    with tempfile.TemporaryDirectory(prefix="gpututor-torchrun-") as name:
        folder = Path(name)
        told: dict[str, Any] = {"losses": [], "walls_ns": [], "done": False}
        with started(command(folder, n_processes, n_steps, n_warmup, backend), folder / "log") as job:
            ends_s = time.monotonic() + LONGEST_S
            while not told["done"]:
                if job.poll() not in (None, 0) or time.monotonic() > ends_s:
                    raise ExperimentError(_failed(job, folder, what))
                time.sleep(LOOK_EVERY_S)
                with suppress(OSError, ValueError):
                    told = json.loads((folder / "told.json").read_text("utf-8"))
                progress.tick(before + len(told["losses"]), whole, what)
            with suppress(subprocess.TimeoutExpired):
                job.wait(GRACE_S)
    return told


def _failed(job: subprocess.Popen[bytes], folder: Path, what: str) -> str:
    """What became of a job, with a process's own error where one left it, else torchrun's last words."""
    ended = "took too long" if job.poll() is None else f"failed ({how_it_ended(job.returncode)})"
    words = ""
    for name in ("log", "error"):
        with suppress(OSError):
            words = " ".join((folder / name).read_text("utf-8", "replace").split())[-LAST_WORDS:]
    return f"torchrun with {what} {ended}; its last words: {words or 'none'}"


def how_many(device: str) -> tuple[int, str, dict[str, Any]]:
    """How many processes, by which backend, and what they run on: two GPUs where there are, else the processor."""
    import torch

    about: dict[str, Any] = {"device": "cpu", "gpu": None, "card": None, "host": cpu_name()}
    if device == "cpu" or torch.cuda.device_count() < 2:
        return 2, "gloo", about
    name = torch.cuda.get_device_name(0)
    return 2, "nccl", about | {"device": "cuda", "gpu": name, "card": None}


def measure(
    progress: Progress, *, device: str = "cpu", n_steps: int = N_STEPS, n_warmup: int = N_WARMUP
) -> dict[str, Any]:
    """The small network in one process and in two, by torchrun; on two GPUs with NCCL, else on the processor with gloo.

    Gives data as `sweeps.measure` does; the losses are means over the processes. Stopped half-way it hands back what
    is finished.

    Raises:
        ExperimentError: torchrun failed, or torch was built without what processes talk through.
        MachineBusy: another measurement is running on this machine.
    """
    import torch
    import torch.distributed as dist

    n, backend, about = how_many(device)
    if not dist.is_available() or not dist.is_backend_available(backend):
        raise ExperimentError(
            f"this torch was built without {backend}, through which processes talk; install a usual one"
        )
    points: list[dict[str, Any]] = []
    data = {"what": "lesson 16, torchrun", "torch": torch.__version__, "points": points, **about}
    each = n_steps + n_warmup
    with measuring("lesson 16, torchrun"):
        for k, n_processes in enumerate((1, n)):
            try:
                seen = train(progress, n_processes, n_steps, n_warmup, backend, k * each, 2 * each)
            except Stopped:
                if not points:
                    raise
                break
            label = "1 process" if n_processes == 1 else f"{n_processes} processes, {backend}"
            step_ns = statistics.median(seen["walls_ns"][n_warmup:])
            point = {"key": f"here-{n_processes}", "label": label, "x": n_processes, "n_samples": None}
            points.append(point | {"losses": seen["losses"], "step_ns": step_ns, "memory_bytes": None, "trouble": None})
    return data
