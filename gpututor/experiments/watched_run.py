"""A run that is watched while it goes on: the paced clock, a simulated card, and `gpututor watch` as a process beside.

In its first half the batches are ready. In the second half a loader's two workers draw every picture when it is asked
for, so the processor has to work while the card waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpututor.errors import MachineBusy
from gpututor.experiments.fed import no_worker_left
from gpututor.lab.lock import measuring
from gpututor.lab.processes import PACKAGE_ROOT
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

WHAT = "lesson 18, watched"
WATCH_S = 8.0  # both halves together
INTERVAL_S = 0.5
STARTS_WITHIN_S = 20.0  # the watch's own imports, on a busy computer
ENDS_WITHIN_S = 5.0
READINGS, EVENTS = "watch.jsonl", "events/watch"
BATCH, SIDE, WIDTH = 256, 32, 128  # on a V100 the card needs some 20 ms for it
N_WORKERS = 2


def watch_a_run(progress: Progress, *, machine: str, seconds: float, n_before: int, n_all: int) -> dict[str, Any]:
    """Train by shapes for `seconds` on the paced clock while `gpututor watch` keeps readings in the results folder.

    Gives "readings" and "events", the file and the folder of what it kept, "turned_s", the Unix time at which the
    loader began to work, "pid" of the training process and its "n_steps"; or "trouble", a sentence, where another
    measurement holds this computer or the watch kept nothing. A reader who stops it keeps what was read so far.
    """
    try:
        watch = _Watch(progress.results_dir)
        with measuring(WHAT), watch, no_worker_left():
            told = _train(progress, machine, seconds, (n_before, n_all))
    except MachineBusy as busy:
        return {"trouble": f"Nothing was watched, as {busy}"}
    if not watch.kept:
        return {"trouble": "The watch kept no reading; is this computer very busy? Run it again."}
    return {"readings": READINGS, "events": EVENTS, "pid": os.getpid(), **told}


class _Watch:
    """`gpututor watch` as a process, ended on the way out as Ctrl-C would."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / READINGS
        self._command = [sys.executable, "-m", "gpututor", "watch", "--interval", f"{INTERVAL_S:g}"]
        self._command += ["--jsonl", READINGS, "--tensorboard", EVENTS]
        self._folder = folder

    @property
    def kept(self) -> bool:
        """Whether there is a reading."""
        return self._path.is_file() and self._path.stat().st_size > 0

    def __enter__(self) -> None:
        path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]))
        with (self._folder / "watch.txt").open("wb") as said:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": path},
            )
        ends_s = time.monotonic() + STARTS_WITHIN_S
        while not self.kept and self._process.poll() is None and time.monotonic() < ends_s:
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _train(progress: Progress, machine: str, seconds: float, counted: tuple[int, int]) -> dict[str, Any]:
    """Both halves; stopped, it hands back what it has."""
    import torch

    from gpututor.jobs.shapes import SmallNet
    from gpututor.simgpu import simulated_gpu

    turned_s = None
    with simulated_gpu(machine, numerics=False, what="the watched job", keep_tape=False, clock="paced") as sim:
        device = torch.device("simgpu")
        net = SmallNet(WIDTH).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        began_s, n_steps = time.monotonic(), 0
        for half, batches in enumerate((_ready(), _drawn())):
            if half:
                turned_s = time.time()
            for pictures, kinds in batches:
                _step(net, optimizer, pictures.to(device), kinds.to(device))
                n_steps += 1
                sim.begin_step(BATCH)
                gone_s = time.monotonic() - began_s
                progress_share = min(1.0, gone_s / seconds)
                if _told_to_stop(progress, progress_share, counted):
                    return {"turned_s": turned_s, "n_steps": n_steps}
                if gone_s >= seconds * (half + 1) / 2:
                    break
    return {"turned_s": turned_s, "n_steps": n_steps}


def _told_to_stop(progress: Progress, share: float, counted: tuple[int, int]) -> bool:
    n_before, n_all = counted
    try:
        progress.tick(n_before + round(share * (n_all - n_before)), n_all, "watching a run", progress.partial)
    except Stopped:
        return True
    return False


def _step(net: Any, optimizer: Any, pictures: torch.Tensor, kinds: torch.Tensor) -> None:
    import torch
    import torch.nn.functional as F  # noqa: N812 - torch's own habit

    optimizer.zero_grad()
    F.cross_entropy(net(pictures), kinds).backward()
    optimizer.step()
    torch.accelerator.synchronize()


def _ready() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The same batch again and again."""
    from gpututor.jobs.shapes import draw

    return repeat(draw(BATCH, 0, SIDE))


def _drawn() -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of a loader whose two workers draw each picture when it is asked for."""
    from torch.utils.data import DataLoader

    from gpututor.jobs.nightly import Drawn

    loader: Iterable[tuple[torch.Tensor, torch.Tensor]] = DataLoader(Drawn(), batch_size=BATCH, num_workers=N_WORKERS)
    return loader
