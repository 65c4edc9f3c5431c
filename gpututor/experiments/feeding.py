"""Lesson 6: a ResNet-18 fed from JPEG files by real worker processes, and a simulated card that waits for them.

Everything of the host is real: files, decoding, processes, the CPU that they share. The card is simulated on the paced
clock, and follows shapes only: this computer's cores are needed for decoding, and would take seconds for arithmetic
that the card does in milliseconds. That it learns the same with any number of workers is shown by a small network
whose arithmetic is done.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from gpututor.experiments.calm import calm_stretch
from gpututor.experiments.fed import Fed, Train, Watch, feed_training, no_worker_left, teller
from gpututor.experiments.feeds import BATCH, Feed, others, start_methods, sweep, usable_cores
from gpututor.lab.lock import measuring
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    import torch
    from torch import nn

    from gpututor.model.tape import Tape

MACHINE = "p3.2xlarge"
WHAT = "ResNet-18 from JPEG files"
N_FILES = 64
N_WARMUP = 2  # steps on an empty batch before the loader is made: they fill the simulated card's memo of shapes
N_LEARNED, LEARNING_RATE = 32, 0.002  # steps of the small network, slow enough for a curve to be seen
SHM = Path("/dev/shm")  # noqa: S108 - where Linux keeps what processes share


@dataclass(slots=True)
class _Done:
    """What the experiment hands back, as JSON data grows: see `run`."""

    points: list[dict[str, Any]] = field(default_factory=list)
    tapes: dict[str, str] = field(default_factory=dict)
    learned: list[dict[str, Any]] = field(default_factory=list)


def run(
    progress: Progress,
    *,
    machine: str = MACHINE,
    thinned: int = 1,
    feeds: Sequence[Feed] | None = None,
    n_files: int = N_FILES,
    n_learned: int | None = None,
) -> dict[str, Any]:
    """Train from files on `machine`'s simulated card, paced, once for each way of feeding; `thinned` makes them short.

    Gives "points", a dict for each way: those of `sweeps.simulate` (step_ns is the mean of a calm stretch of steady
    steps, mean_step_ns that of all) with n_workers,
    wait_ns (the part of it spent waiting for input), wait_cpu_ns (this process's CPU time in that), first_ns and
    epoch_ns by epoch, who (workers that made a batch), cpu_cores, system_cores, n_threads and lag_share (how far the
    simulation fell behind this computer's clock); "tapes", files of the steady steps by key; "learned", losses of a
    small network by number of workers; "pickled", bytes and nanoseconds that sending the dataset to a started worker
    takes, with paths and with pictures in it; "n_cores", "starts" (ways to start a worker), "machine", "what", "torch".
    Stopped half-way it hands back what it finished.

    Raises:
        MachineBusy: another measurement is running on this machine.
    """
    import torch

    from gpututor.jobs.photographs import write_photographs
    from gpututor.model import tape_file

    n_cores = usable_cores()
    n_learned = max(2, N_LEARNED // thinned) if n_learned is None else n_learned
    todo = list(feeds) if feeds is not None else [*sweep(n_cores, thinned), *others(n_cores, thinned)]
    done = _Done()
    n_all = sum(feed.n_steps for feed in todo) + 2 * n_learned
    data: dict[str, Any] = {"what": WHAT, "machine": machine, "clock": "paced", "torch": torch.__version__}
    data |= {"n_cores": n_cores, "starts": list(start_methods()), "batch": BATCH}
    data |= {"points": done.points, "tapes": done.tapes, "learned": done.learned}
    with measuring(WHAT), no_worker_left(), _folder(progress) as folder:
        progress.tick(0, n_all, "writing pictures")
        paths = write_photographs(Path(folder), n_files)
        data |= {"picture_bytes": round(mean(path.stat().st_size for path in paths)), "pickled": pickled(paths)}
        n_before = 0
        try:
            for feed in todo:
                tell = teller(progress, n_before, n_all, feed.label, data if done.points else None)
                point, tape = _simulated(feed, paths, machine, tell)
                if tape is not None:
                    done.tapes[feed.key] = f"{feed.key}.tape.gz"
                    tape_file.save(tape, progress.results_dir / done.tapes[feed.key])
                done.points.append(point)
                n_before += feed.n_steps
            if n_learned:
                for n_workers in (0, 2):
                    tell = teller(progress, n_before, n_all, f"learning, {n_workers} workers", data)
                    done.learned.append(learn(paths, n_workers, n_learned, machine, tell))
                    n_before += n_learned
        except Stopped:
            if not done.points:
                raise
    return data


def _folder(progress: Progress) -> tempfile.TemporaryDirectory[str]:
    """Where the pictures lie while the experiment runs."""
    return tempfile.TemporaryDirectory(prefix="pictures-", dir=progress.results_dir)


def about(feed: Feed) -> dict[str, Any]:
    """A point that has yet to be run."""
    told: dict[str, Any] = {"key": feed.key, "label": feed.label, "x": feed.x, "n_samples": feed.batch, "losses": []}
    told |= dict.fromkeys(("step_ns", "wait_ns", "wait_cpu_ns", "memory_bytes", "trouble"))
    told |= dict.fromkeys(("cpu_cores", "system_cores", "n_threads", "lag_share"))
    told |= {"n_workers": feed.n_workers, "n_batches": feed.n_batches, "start": feed.start}
    return told


def calm_steps(fed: Fed, n_calm: int | None) -> slice:
    """Which of the steady steps are kept: a calm stretch of so many, or all."""
    n_steps = len(fed.step_ns)
    if n_calm is None or n_calm >= n_steps:
        return slice(0, n_steps)
    first = calm_stretch([0, *accumulate(fed.step_ns)], n_calm)
    return slice(first, first + n_calm)


def seen(fed: Fed, kept: slice) -> dict[str, Any]:
    """What a point holds once it was run, by the steady steps that are kept."""
    told: dict[str, Any] = {"first_ns": fed.first_ns, "epoch_ns": fed.epoch_ns, "who": sorted(set(fed.who))}
    told |= {"cpu_cores": fed.cpu_cores, "system_cores": fed.system_cores, "n_threads": fed.n_threads}
    if fed.step_ns:
        told |= {"step_ns": mean(fed.step_ns[kept]), "wait_ns": mean(fed.wait_ns[kept])}
        told |= {"wait_cpu_ns": mean(fed.wait_cpu_ns[kept]), "mean_step_ns": mean(fed.step_ns)}
    return told


def too_little_shared_memory(feed: Feed, picture_bytes: int, folder: Path = SHM) -> str | None:
    """One sentence where the batches that wait don't fit into what processes can share; None where they do."""
    if not folder.is_dir():
        return None
    needed, free = (feed.n_ahead + 1) * feed.batch * picture_bytes, shutil.disk_usage(folder).free
    if not feed.n_workers or needed <= free:
        return None
    return f"needs {needed / 2**20:.0f} MiB of shared memory, and {folder} has {free / 2**20:.0f}"


def _simulated(
    feed: Feed, paths: Sequence[Path], machine: str, tell: Callable[[int], None]
) -> tuple[dict[str, Any], Tape | None]:
    """One way of feeding: what was seen of it, and the tape of its steady steps; no tape, and a sentence, without."""
    import torch

    from gpututor.jobs.photographs import SIDE_PX, Photographs
    from gpututor.model.tape import Tape
    from gpututor.simgpu import simulated_gpu
    from gpututor.simgpu.clocks.paced import clock_of

    told = about(feed)
    trouble = too_little_shared_memory(feed, 3 * SIDE_PX**2)
    if trouble is not None:
        return told | {"trouble": trouble}, None
    with simulated_gpu(machine, numerics=False, what=feed.label, clock="paced") as sim, no_worker_left():
        clock = clock_of(sim)
        assert clock is not None
        train = trainer(torch.device("simgpu"), resnet18())
        empty = torch.zeros(feed.batch, 3, SIDE_PX, SIDE_PX, dtype=torch.uint8)
        for _ in range(N_WARMUP):
            train((empty, torch.zeros(feed.batch, dtype=torch.int64)))
        marks: list[tuple[int, int, int]] = []  # entries on the tape, host's clock and lag: before and after the steps

        def mark() -> None:
            marks.append((len(sim.tape.entries), sim.host_ns, clock.lag_ns))

        def begin_step(n_samples: int) -> None:
            if not marks:
                mark()
            sim.begin_step(n_samples)

        def end_steps() -> None:
            sim.end_run()
            mark()

        watch = Watch(lambda: sim.host_ns, tell, begin_step, end_steps)
        pictures = Photographs(paths, feed.n_pictures, smoothed=feed.smoothed, halved=feed.halved)
        fed = feed_training(feed, pictures, train, watch)
        (first, began_ns, before_ns), (last, ended_ns, after_ns) = marks
        kept = calm_steps(fed, feed.n_calm)
        told |= seen(fed, kept) | {"memory_bytes": sim.memory.peak_bytes}
        told["lag_share"] = (after_ns - before_ns) / max(1, ended_ns - began_ns)
        tape = Tape(feed.label, sim.tape.entries[first:last], [None] * len(fed.step_ns), clock="paced")
    return told, tape.steps(kept.start, kept.stop)


def resnet18() -> nn.Module:
    """The network that is fed; its scores are for ImageNet's 1000 kinds."""
    from gpututor.workloads.vision.resnets import ResNet

    return ResNet((2, 2, 2, 2), basic=True)


def trainer(device: torch.device, network: nn.Module, rate: float = 0.05) -> Train:
    """Trains `network` on a batch with SGD and momentum, and reads the loss, as PyTorch's ImageNet example does."""
    import torch
    from torch.nn.functional import cross_entropy

    network.to(device)
    sgd = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)

    def train(batch: Sequence[torch.Tensor]) -> float:
        pictures, kinds = batch[0].to(device), batch[1].to(device)
        loss = cross_entropy(network(pictures.float() / 255 - 0.45), kinds)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss.item()

    return train


def learn(
    paths: Sequence[Path], n_workers: int, n_steps: int, machine: str, tell: Callable[[int], None]
) -> dict[str, Any]:
    """Losses of the small network, fed by so many workers, with real arithmetic on the simulated card."""
    import torch

    from gpututor.jobs.photographs import Photographs, small_network
    from gpututor.simgpu import simulated_gpu

    feed = Feed("", "", n_workers, n_steps, BATCH, ends=True)
    losses: list[float] = []
    with simulated_gpu(machine, what="learning"), no_worker_left():
        torch.manual_seed(0)
        train = trainer(torch.device("simgpu"), small_network(), LEARNING_RATE)
        watch = Watch(time.perf_counter_ns, tell)
        feed_training(feed, Photographs(paths, feed.n_pictures, side_px=32), lambda b: losses.append(train(b)), watch)
    return {"n_workers": n_workers, "losses": [loss if math.isfinite(loss) else None for loss in losses]}


def pickled(paths: Sequence[Path]) -> dict[str, list[int]]:
    """Bytes and nanoseconds of packing a dataset for a worker that starts afresh.

    Under "paths" one that reads files, under "pictures" the pixels of a thousandth of ImageNet, already in memory.
    """
    import pickle

    import torch

    from gpututor.jobs.photographs import SIDE_PX, Photographs

    told = {}
    in_memory = torch.zeros(1281, 3, SIDE_PX, SIDE_PX, dtype=torch.uint8).numpy()
    for name, data in (("paths", Photographs(paths, 1281)), ("pictures", in_memory)):
        began_ns = time.perf_counter_ns()
        told[name] = [len(pickle.dumps(data)), time.perf_counter_ns() - began_ns]
    return told
