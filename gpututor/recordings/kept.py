"""A recording on disk: timelines, and beside them one description, written last, that makes them count.

For the job "seq2seq" on an H200-SXM they are `seq2seq.h200-sxm.timeline.json.gz` and `seq2seq.h200-sxm.recording.json`.
Cards never share a name, so recordings of several can lie in one folder, as they do in data/recordings.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from gpututor import __version__, timeline_file
from gpututor.errors import MeasurementDamaged, RecordingsNotKept
from gpututor.recordings.course import LessonExperiment, timelines_of
from gpututor.results import StoredResult, write_at_once
from gpututor.timeline import Origin, Timeline

FORMAT, VERSION = "gpututor-recording", 1
TIMELINE, DESCRIPTION = ".timeline.json.gz", ".recording.json"
MOST_BYTES = 300_000  # our choice: ten cards add 15 MB to the course at most, and a page opens one in a blink
NO_DRIVER = "the driver's own library did not say; gpututor doctor says why"


@dataclass(frozen=True, slots=True)
class LessonRecording:
    """What an experiment left on a real GPU, and on which; `folder` holds its files.

    `told` is what the experiment handed back, with the names of the files here. `at` is when it ended (UTC, ISO 8601).
    Where `card`, `host` or `driver` is None, `reasons` says why.
    """

    folder: Path
    lesson: int
    name: str
    experiment: str
    params: Mapping[str, Any]
    state: str
    at: str
    gpu: str
    card: str | None
    host: str | None
    driver: str | None
    torch: str
    gpututor: str
    told: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def timelines(self) -> dict[str, Path]:
        """Files of timelines by workload; the name is empty where there is one alone."""
        return {name: self.folder / file for name, file in timelines_of(self.told).items()}

    @property
    def description(self) -> Path:
        """The file that says all of this."""
        return self.folder / f"{self.name}.{slug(self.card or self.gpu)}{DESCRIPTION}"

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that belongs to it."""
        return (*self.timelines.values(), self.description)

    @property
    def n_bytes(self) -> int:
        """Size of its files together."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def result(self) -> StoredResult:
        """The same as a run that a lesson can draw, as if it had been measured there."""
        n = len(self.timelines)
        told, params = dict(self.told), dict(self.params)
        return StoredResult(self.folder, self.state, self.experiment, params, told, "", self.at, n, n)

    def as_fields(self) -> dict[str, Any]:
        """All but the folder, as plain data."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "folder"}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def slug(card: str) -> str:
    """A card's name as part of a file's.

    >>> slug("NVIDIA H200"), slug("V100-SXM2-16GB")
    ('nvidia-h200', 'v100-sxm2-16gb')
    """
    return re.sub(r"[^a-z0-9]+", "-", card.casefold()).strip("-") or "gpu"


def keep(
    experiment: LessonExperiment, told: Mapping[str, Any], state: str, at: str, measured: Path, folder: Path
) -> LessonRecording:
    """Write what an experiment left in the folder `measured` into `folder`, small and labelled "recorded".

    Raises:
        RecordingsNotKept: the folder can't be written.
        TimelineError: a timeline of the run can't be read.
    """
    card = slug(told.get("card") or told["gpu"])
    renamed: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    versions: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for workload, file in timelines_of(told).items():
            timeline = timeline_file.load(measured / file)
            versions |= dict(timeline.label.versions)
            renamed[workload] = f"{file.removesuffix(TIMELINE)}.{card}{TIMELINE}"
            said = _written(recorded(timeline, at), folder / renamed[workload])
            notes[workload] = [*_notes(told, workload), *said]
        kept = _described(experiment, _retold(told, renamed, notes), versions, state, at, folder)
        document = {"format": FORMAT, "version": VERSION, **kept.as_fields()}
        write_at_once(kept.description, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        shutil.copymode(next(iter(kept.timelines.values())), kept.description)  # it was a temporary file, ours alone
    except OSError as error:
        raise RecordingsNotKept(
            f"{folder} can't be written ({error.strerror or error}); name another folder with --to"
        ) from error
    return kept


def recorded(timeline: Timeline, at: str) -> Timeline:
    """The timeline as others will see it: recorded, and on which day."""
    versions = (*timeline.label.versions, ("recorded", at[:10]))
    return replace(timeline, label=replace(timeline.label, origin=Origin.RECORDED, versions=versions))


def _written(timeline: Timeline, path: Path) -> tuple[str, ...]:
    """Write the timeline's last steps, as many as `MOST_BYTES` hold; gives what a reader must know of that."""
    n_steps, data = len(timeline.steps), timeline_file.to_bytes(timeline)
    while len(gzip.compress(data, mtime=0)) > MOST_BYTES and len(timeline.steps) > 1:
        n_left = len(timeline.steps) // 2
        timeline = timeline.looked_at(timeline.steps[-n_left].start_ns, timeline.window_ns[1])
        data = timeline_file.to_bytes(timeline)
    timeline_file.write(data, path)
    n_left = len(timeline.steps)
    return () if n_left == n_steps else (f"of {n_steps} recorded steps the last {n_left} are kept, for a small file",)


def _notes(told: Mapping[str, Any], workload: str) -> list[str]:
    notes = told.get("notes", {})
    return list(notes.get(workload, ()) if isinstance(notes, Mapping) else notes)


def _retold(told: Mapping[str, Any], files: dict[str, str], notes: dict[str, list[str]]) -> dict[str, Any]:
    if "timelines" in told:
        return {**told, "timelines": files, "notes": notes}
    return {**told, "timeline": files[""], "notes": notes[""]}


def _described(
    experiment: LessonExperiment,
    told: dict[str, Any],
    versions: dict[str, str],
    state: str,
    at: str,
    folder: Path,
) -> LessonRecording:
    driver, card, host = versions.get("driver"), told.get("card"), told.get("host")
    reasons = {
        "driver": None if driver else NO_DRIVER,
        "card": None if card else "the trace doesn't name it",
        "host": None if host else "this system doesn't name its processor",
    }
    return LessonRecording(
        folder,
        experiment.lesson,
        experiment.name,
        experiment.measured,
        dict(experiment.params),
        state,
        at,
        told["gpu"],
        card,
        host,
        driver,
        told["torch"],
        __version__,
        told,
        versions,
        {name: why for name, why in reasons.items() if why},
    )


def read(folder: Path) -> tuple[LessonRecording, ...]:
    """The recordings in this folder, by lesson and card; none where there is no such folder.

    Raises:
        MeasurementDamaged: a description can't be read, or a timeline that it names isn't there.
    """
    return _in_order(_read(path) for path in folder.glob(f"*{DESCRIPTION}"))


def read_of(folder: Path, experiment: LessonExperiment) -> tuple[tuple[LessonRecording, ...], tuple[str, ...]]:
    """The recordings of one experiment in this folder, by card, and a sentence for each that can't be read."""
    found, sentences = [], []
    for path in sorted(folder.glob(f"{experiment.name}.*{DESCRIPTION}")):
        try:
            found.append(_read(path))
        except MeasurementDamaged as error:
            sentences.append(str(error))
    return _in_order(found), tuple(sentences)


def _in_order(found: Iterable[LessonRecording]) -> tuple[LessonRecording, ...]:
    return tuple(sorted(found, key=lambda each: (each.lesson, each.name, each.card or each.gpu)))


def _read(path: Path) -> LessonRecording:
    try:
        document = json.loads(path.read_text("utf-8"))
        if (document.pop("format"), document.pop("version")) != (FORMAT, VERSION):
            raise MeasurementDamaged(f"{path} is no recording of version {VERSION}; record it again")
        found = LessonRecording(path.parent, **document)
        missing = next((file.name for file in found.timelines.values() if not file.is_file()), None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, MeasurementDamaged):
            raise
        raise MeasurementDamaged(
            f"{path} can't be read as a recording ({type(error).__name__}: {error}); record it again"
        ) from error
    if missing is not None:
        raise MeasurementDamaged(f"{path} names {missing}, which is not beside it; copy it too, or record it again")
    return found
