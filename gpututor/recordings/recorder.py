"""Run the lessons' experiments on this machine's GPU, one after the other, and keep what each leaves.

Both kinds of run go through the lab, so a crash of one is a sentence and the next one goes on. All measuring comes
first, while nothing else works here; then the same jobs are simulated, to say what was to be expected.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from gpututor.errors import ExperimentError, GpututorError, RecordingsNotKept
from gpututor.lab.client import Kind
from gpututor.lab.job import JobResult, Report, as_sentence
from gpututor.lab.pool import the_lab
from gpututor.recordings.compared import Row, rows_of
from gpututor.recordings.course import LessonExperiment, tapes_of, timelines_of
from gpututor.recordings.kept import LessonRecording, keep, slug
from gpututor.results import now_utc

BUDGET_S = (
    600.0  # an experiment takes seconds; the first use of a GPU loads its libraries, from a slow disk for minutes
)
NOT_BEGUN = "You stopped before it began."
NOT_SIMULATED = "you stopped before it was simulated"

Tell = Callable[[str, int, int], None]


class Run(Protocol):
    """How an experiment is run; `in_the_lab` but for tests."""

    def __call__(
        self,
        experiment: str,
        params: Mapping[str, Any],
        kind: Kind,
        folder: Path,
        on_progress: Callable[[Report], None],
        should_stop: Callable[[], bool],
    ) -> JobResult:
        """What became of it; its files lie in `folder`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """An experiment, what was kept of it, and its figures; `sentence` says why it is missing or not whole."""

    experiment: LessonExperiment
    recording: LessonRecording | None
    sentence: str = ""
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """All outcomes in order, and the folder that holds what was kept; None where nothing was."""

    folder: Path | None
    outcomes: tuple[Outcome, ...]
    stopped: bool

    @property
    def recordings(self) -> tuple[LessonRecording, ...]:
        """What was kept."""
        return tuple(each.recording for each in self.outcomes if each.recording)


def in_the_lab(
    experiment: str,
    params: Mapping[str, Any],
    kind: Kind,
    folder: Path,
    on_progress: Callable[[Report], None],
    should_stop: Callable[[], bool],
) -> JobResult:
    """The experiment in a worker process of its own kind, as a lesson runs it."""
    return the_lab().run(
        experiment,
        params,
        budget_s=BUDGET_S,
        on_progress=on_progress,
        should_stop=should_stop,
        results_dir=folder,
        kind=kind,
    )


def why_no_gpu() -> str | None:
    """Why nothing can be measured here, without a full stop; None where torch finds a GPU. Loads torch."""
    import torch

    if torch.cuda.is_available():
        return None
    from gpututor.experiments.measured import this_bench
    from gpututor.measure.nvml import find_gpus

    gpus = find_gpus()
    if not gpus.names:
        return f"{gpus.reason}, and torch {torch.__version__} finds no GPU either"
    try:
        this_bench()
    except ExperimentError as error:
        return f"the driver shows {', '.join(gpus.names)}, but {error}"
    return None


def _nobody_listens(what: str, k: int, n: int) -> None:
    return None


def _never() -> bool:
    return False


def record(
    experiments: Sequence[LessonExperiment],
    to: Path | None = None,
    *,
    tell: Tell = _nobody_listens,
    should_stop: Callable[[], bool] = _never,
    run: Run = in_the_lab,
) -> Recorded:
    """Measure, keep and compare these experiments, into `to` or "recordings-" and the card's name.

    `tell` hears what goes on, with k of n steps. Each recording is on disk as soon as its experiment is over, so
    whoever stops later keeps it. Experiments that fail are told as sentences.

    Raises:
        RecordingsNotKept: the folder can't be written.
    """
    _check(to)
    with tempfile.TemporaryDirectory(prefix="gpututor-") as scratch:
        made = [_measured(each, to, Path(scratch), tell, should_stop, run) for each in experiments]
        outcomes = tuple(_compared(each, Path(scratch), tell, should_stop, run) for each in made)
    kept = [each.recording for each in outcomes if each.recording]
    return Recorded(kept[0].folder if kept else None, outcomes, should_stop())


def _check(to: Path | None) -> None:
    """Find out before the measuring whether its results can be kept."""
    try:
        if to is not None:
            to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingsNotKept(f"{to} can't be made a folder ({error.strerror}); name another with --to") from error
    folder = to or Path.cwd()
    if not os.access(folder, os.W_OK):
        raise RecordingsNotKept(f"{folder} is not yours to write in; name another folder with --to")


def _measured(
    experiment: LessonExperiment,
    to: Path | None,
    scratch: Path,
    tell: Tell,
    should_stop: Callable[[], bool],
    run: Run,
) -> Outcome:
    if should_stop():
        return Outcome(experiment, None, NOT_BEGUN)
    folder = scratch / f"{experiment.name}-measured"
    folder.mkdir()
    heard = _heard(tell, experiment.title)
    job = run(experiment.measured, experiment.params, "real", folder, heard, should_stop)
    if not job.data or not timelines_of(job.data):
        return Outcome(experiment, None, job.sentence)
    at = now_utc().isoformat(timespec="seconds")
    target = to or Path(f"recordings-{slug(job.data.get('card') or job.data['gpu'])}")
    return Outcome(experiment, keep(experiment, job.data, job.state, at, folder, target), job.sentence)


def _compared(made: Outcome, scratch: Path, tell: Tell, should_stop: Callable[[], bool], run: Run) -> Outcome:
    if made.recording is None:
        return made
    experiment = made.experiment
    folder = scratch / f"{experiment.name}-simulated"
    tapes: dict[str, Path] = {}
    why = NOT_SIMULATED
    if not should_stop():
        heard = _heard(tell, f"{experiment.title}, simulated")
        job = run(experiment.simulated, experiment.simulated_params, "simulated", folder, heard, should_stop)
        tapes = {name: folder / file for name, file in tapes_of(job.data or {}).items()} if job.state == "done" else {}
        why = job.sentence.rstrip(".") if job.state == "failed" else why
    try:
        return replace(made, rows=rows_of(made.recording, tapes, experiment.unit, why))
    except GpututorError as error:
        return replace(made, sentence=" ".join(filter(None, [made.sentence, as_sentence(str(error))])))


def _heard(tell: Tell, title: str) -> Callable[[Report], None]:
    tell(title, 0, 0)
    return lambda report: tell(f"{title}: {report.note}" if report.note else title, report.k, report.n)
