"""Lesson 6 on this computer's own GPU, or on its processor where there is none: the same files, the same workers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from gpututor.experiments.fed import Train, Watch, feed_training, no_worker_left, teller
from gpututor.experiments.feeding import N_FILES, N_WARMUP, WHAT, about, resnet18, seen, trainer
from gpututor.experiments.feeds import Feed, sweep, usable_cores
from gpututor.lab.lock import measuring
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch

CPU_SIDE_PX = 32  # the small network's pictures: on a processor a ResNet-18 at full size takes seconds a step


def measure(
    progress: Progress, *, device: str = "cuda", feeds: Sequence[Feed] | None = None, n_files: int = N_FILES
) -> dict[str, Any]:
    """The sweep over workers on this computer's GPU ("cuda"), or with a small network on its processor ("cpu").

    Gives what `sweeps.measure` does, without timelines, and wait_ns; step_ns is the median of the steady steps, each
    of which ends when its loss was read. Stopped half-way it hands back what it finished.

    Raises:
        ExperimentError: there is no such device.
        MachineBusy: another measurement is running on this machine.
    """
    import torch

    from gpututor.jobs.photographs import SIDE_PX, Photographs, write_photographs

    place, told = _place(device)
    side_px = SIDE_PX if place.type == "cuda" else CPU_SIDE_PX
    todo = list(feeds if feeds is not None else sweep(usable_cores()))
    n_all, n_before = sum(feed.n_steps for feed in todo), 0
    points: list[dict[str, Any]] = []
    data = {"what": WHAT, "torch": torch.__version__, "points": points, **told}
    with measuring(WHAT), TemporaryDirectory(prefix="pictures-", dir=progress.results_dir) as folder:
        paths = write_photographs(Path(folder), n_files)
        for feed in todo:
            tell = teller(progress, n_before, n_all, feed.label, data if points else None)
            pictures = Photographs(paths, feed.n_pictures, side_px=side_px)
            try:
                with no_worker_left():
                    train = _warm(place, feed.batch, side_px)
                    fed = feed_training(feed, pictures, train, Watch(time.perf_counter_ns, tell))
            except Stopped:
                if not points:
                    raise
                break
            n_before += feed.n_steps
            points.append(
                about(feed) | seen(fed, slice(0, len(fed.step_ns))) | {"step_ns": statistics.median(fed.step_ns)}
            )
    return data


def _place(device: str) -> tuple[torch.device, dict[str, Any]]:
    """The device, and what the page says of it."""
    import torch

    from gpututor.own_machine import cpu_name

    if device == "cpu":
        return torch.device("cpu"), {"device": "cpu", "gpu": None, "card": None, "host": cpu_name()}
    from gpututor.experiments.measured import this_bench

    bench = this_bench()
    told: dict[str, Any] = {"device": "cuda", "gpu": bench.gpu.name, "card": None, "host": cpu_name(), "timelines": {}}
    return torch.device(bench.device), told


def _warm(place: torch.device, batch: int, side_px: int) -> Train:
    """The training of a fresh network, some steps of which are done on an empty batch."""
    import torch

    from gpututor.jobs.photographs import small_network

    torch.manual_seed(0)
    train = trainer(place, resnet18() if place.type == "cuda" else small_network())
    empty = torch.zeros(batch, 3, side_px, side_px, dtype=torch.uint8)
    for _ in range(N_WARMUP):
        train((empty, torch.zeros(batch, dtype=torch.int64)))
    return train
