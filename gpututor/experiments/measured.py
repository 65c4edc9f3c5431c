"""The lessons' jobs on this machine's own GPU, recorded with torch.profiler.

For a worker of kind "real", which never simulates. One measurement at a time on a machine: two that overlap
spoil each other. What is handed back is data and timeline files, as if a page had simulated it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpututor import timeline_file
from gpututor.errors import ExperimentError, GpututorError, NoSteps, WrongDevice
from gpututor.experiments.gauge import WORKLOADS, Workload
from gpututor.experiments.seq2seq import WARMUP_STEPS, WHAT
from gpututor.lab.lock import measuring
from gpututor.progress import Progress, Stopped

if TYPE_CHECKING:
    from gpututor.jobs.seq2seq import Seq2SeqJob
    from gpututor.measure.cuda import Gpu
    from gpututor.recording import Recording

TIMELINE_FILE = "seq2seq.timeline.json.gz"
THINNED = 4  # a quarter second of each workload, the shortest that nvidia-smi averages over (NVML reference)
N_BURSTS = 5  # launches are recorded in so many bursts: a mark around each one would cost more than a short kernel runs
OUT_OF_MEMORY = "OutOfMemoryError"  # torch's own name for it, on every backend


@dataclass(frozen=True, slots=True)
class Bench:
    """Where to measure: the name by which torch knows the device, and the GPU with its profiler."""

    device: str
    gpu: Gpu


class TooLarge(ExperimentError):
    """A job that doesn't fit into the GPU's free memory."""


def seq2seq(
    progress: Progress, *, n_steps: int = 200, n_kept: int = 8, seed: int = 0, bench: Bench | None = None
) -> dict[str, Any]:
    """Train the translator on this machine's GPU, `n_steps` sentences, of which the last `n_kept` are recorded.

    They are the sentences of a simulated run with the same numbers. Losses differ a little: a GPU adds in
    another order and draws its dropout from another generator.

    Gives "timeline", the file's name; "steps", a row [wall ns, loss] for each sentence; "n_kept", how many of the
    last ones were recorded; "gpu", "card", "notes" and "torch". Stopped before the recording it hands back nothing.

    Raises:
        ExperimentError: no GPU, not enough memory, nothing recorded, or numbers of steps that make no sense.
        MachineBusy: another measurement is running on this machine.
    """
    if not 1 <= n_kept <= n_steps:
        raise ExperimentError(f"{n_kept} of {n_steps} steps were to be recorded; that takes 1 or more, and not more")
    bench = bench or this_bench()
    with measuring(f"Lesson 2 on the {bench.gpu.name}"), _in_words(bench.gpu):
        progress.tick(0, n_steps, "building the translator")
        from gpututor.jobs.seq2seq import Seq2SeqJob
        from gpututor.measure.cuda import record_cuda

        job = Seq2SeqJob(bench.device, seed, n_steps=WARMUP_STEPS + n_steps)
        training = _Training(progress, job, bench.gpu, n_steps, n_kept)
        before = WARMUP_STEPS + n_steps - n_kept - 1  # the recorder runs one more while its profiler warms up
        try:
            recording = record_cuda(training.step, n_steps=n_kept, warmup=before, n_samples=1, what=WHAT, gpu=bench.gpu)
        except NoSteps:
            raise Stopped from None  # the reader stopped it; nothing else ends this loop
    return {
        "timeline": _kept(progress, recording, TIMELINE_FILE),
        "steps": training.rows,
        "n_kept": len(recording.timeline.steps),
        "notes": list(recording.notes),
        **_about(bench, recording),
    }


def gauge(
    progress: Progress,
    *,
    thinned: int = THINNED,
    bench: Bench | None = None,
    workloads: Sequence[Workload] = WORKLOADS,
) -> dict[str, Any]:
    """Run lesson 1's workloads on this machine's GPU; `thinned` divides the launches of each.

    Gives "timelines", file names by workload; "notes" likewise; "left_out", the reason for each workload that does
    not fit into the card's memory; "gpu", "card" and "torch". A stopped run hands back the workloads that it finished.

    Raises:
        ExperimentError: no GPU, nothing recorded, nothing fits, or `thinned` is less than 1.
        MachineBusy: another measurement is running on this machine.
    """
    if thinned < 1:
        raise ExperimentError(f"the launches were to be divided by {thinned}; that takes a number of 1 or more")
    bench = bench or this_bench()
    data: dict[str, Any] = {"timelines": {}, "notes": {}, "left_out": {}}
    with measuring(f"Lesson 1 on the {bench.gpu.name}"):
        for k, workload in enumerate(workloads):
            try:
                progress.tick(k, len(workloads), workload.name, data if data["timelines"] else None)
                with _in_words(bench.gpu):
                    recording = _burst(progress, bench, workload, thinned)
            except TooLarge as error:
                data["left_out"][workload.name] = str(error)
                continue
            except Stopped:
                if not data["timelines"]:
                    raise
                break
            data["timelines"][workload.name] = _kept(progress, recording, f"gauge-{k + 1}.timeline.json.gz")
            data["notes"][workload.name] = list(recording.notes)
            data |= _about(bench, recording)
    if not data["timelines"]:
        raise ExperimentError(next(iter(data["left_out"].values())))
    return data


def this_bench() -> Bench:
    """This process's own GPU.

    Raises:
        ExperimentError: torch finds none; says why, as far as that can be told.
    """
    import torch

    if not torch.cuda.is_available():
        why = _why_no_gpu(torch.version.cuda or torch.version.hip, torch.__version__, os.environ)
        raise ExperimentError(f"there is no GPU to measure on: {why}; the simulated card needs none")
    from gpututor.measure.cuda import this_gpu

    try:
        return Bench("cuda", this_gpu())
    except RuntimeError as error:
        raise ExperimentError(
            f"the GPU does not answer torch ({_first_line(error)}); is the driver up to date?"
        ) from error


def _why_no_gpu(built_for: str | None, version: str, environment: Mapping[str, str]) -> str:
    if built_for is None:
        return f"this torch, {version}, was built without CUDA, and pytorch.org's selector shows how to get one with it"
    if environment.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU from this process"
    return f"torch {version}, built for {built_for}, finds none; perhaps the driver is older than that"


class _Training:
    """The job step by step, as the recorder calls it: times each, tells the page of those that nobody watches."""

    def __init__(self, progress: Progress, job: Seq2SeqJob, gpu: Gpu, n_steps: int, n_kept: int) -> None:
        self.rows: list[list[float]] = []
        self._progress, self._job, self._clock_ns = progress, job, gpu.clock_ns
        self._n_steps, self._first_watched = n_steps, WARMUP_STEPS + n_steps - n_kept

    def step(self, k: int) -> float:
        """Train on sentence `k`; its loss, read from the GPU, so the step is over when the clock is read."""
        watched = k >= self._first_watched
        if watched and self._progress.should_stop:  # asking is cheap, telling would be part of the recording
            raise StopIteration
        began_ns = self._clock_ns()
        loss = self._job.step(k)
        if k >= WARMUP_STEPS and k < WARMUP_STEPS + self._n_steps:
            self.rows.append([self._clock_ns() - began_ns, loss])
        if not watched:
            self._progress.tick(max(0, k + 1 - WARMUP_STEPS), self._n_steps, f"loss {loss:.2f}")
        return loss


def _burst(progress: Progress, bench: Bench, workload: Workload, thinned: int) -> Recording:
    import torch

    from gpututor.measure.cuda import record_cuda

    launch = workload.make(torch.device(bench.device))
    n_launches = -(-workload.n_launches // thinned)
    n_bursts = min(N_BURSTS, n_launches)

    def step(k: int) -> None:
        if progress.should_stop:
            raise StopIteration
        for _ in range(n_launches // n_bursts):
            launch()

    try:
        recording = record_cuda(step, n_steps=n_bursts, warmup=1, what=workload.name, gpu=bench.gpu)
    except NoSteps:
        raise Stopped from None
    if progress.stop_was_seen:
        raise Stopped  # a part of it would be a shorter recording than the others
    return recording


def _kept(progress: Progress, recording: Recording, file: str) -> str:
    timeline_file.save(recording.timeline, progress.results_dir / file)
    return file


def _about(bench: Bench, recording: Recording) -> dict[str, Any]:
    import torch

    label = recording.timeline.label
    return {"gpu": bench.gpu.name, "card": label.card, "host": label.host, "torch": torch.__version__}


@contextmanager
def _in_words(gpu: Gpu) -> Iterator[None]:
    """Turn what a GPU or its profiler can do to a job into one sentence each."""
    try:
        yield
    except WrongDevice as error:
        raise ExperimentError(
            f"the job ran on the {gpu.name}, but torch.profiler saw none of its kernels; perhaps another profiler "
            "holds the GPU, or this system doesn't let programs profile it"
        ) from error
    except Exception as error:
        if OUT_OF_MEMORY in (type(error).__name__, type(error.__cause__).__name__):
            raise TooLarge(
                f"the {gpu.name} has too little free memory for this job; nvidia-smi lists the programs that hold some"
            ) from error
        if isinstance(error, GpututorError):
            raise
        raise ExperimentError(
            f"the {gpu.name} could not run the job ({type(error).__name__}: {_first_line(error)}); "
            "does this torch support it?"
        ) from error


def _first_line(error: Exception) -> str:
    """CUDA errors go on with advice about environment variables; the first line says what happened."""
    return next(iter(str(error).splitlines()), type(error).__name__)
