"""What other machines measured of a lesson's experiment, beside what the model expects of the same card.

`gpututor record` writes the files. Those in data/recordings come with the course; a reader's own go into the folder
`recordings` of GPUTUTOR_HOME, whichever machine they were made on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import marimo as mo

from gpututor import timeline_file
from gpututor.errors import GpututorError
from gpututor.ledger import Ledger, charge
from gpututor.own_gpu import beside, standing_in
from gpututor.page.expected import expected_table
from gpututor.page.figures import figure, gauge_table, source_line
from gpututor.page.measured import NO_FLOP, accounts_table
from gpututor.page.parts import escape, html, shown
from gpututor.paths import data_dir, recordings_dirs
from gpututor.recordings import EXPERIMENTS, LessonExperiment, LessonRecording, Row, read_of, rows_of
from gpututor.recordings.compared import BUSY, UNWATCHED
from gpututor.replay import play_file, read_tape
from gpututor.timeline import Label, Origin, Timeline

OTHER_SETTINGS = "it was recorded with other settings than this lesson's, so no simulated run is the same work"


def recorded(lesson: int, tapes: Mapping[str, Path] | None = None) -> mo.Html | None:
    """Each recording of this lesson's experiments, the reader's own first; None where there is none.

    `tapes` are those of the lesson's simulated runs by workload. An experiment with one workload has its tape in
    data/recordings, which holds the same work as its recordings. A damaged file is one sentence.
    """
    parts: list[str] = []
    damaged: list[str] = []
    for experiment in (each for each in EXPERIMENTS if each.lesson == lesson):
        for folder in recordings_dirs():
            found, sentences = read_of(folder, experiment)
            damaged += map(_failed, sentences)
            for recording in found:
                parts.append(_folded(recording, _guarded(recording, experiment, tapes or {}), first=not parts))
    return html('<div class="gt gt-findings">', *parts, *damaged, "</div>") if parts or damaged else None


def _failed(sentence: str) -> str:
    said = f"A recording can't be shown: {sentence.rstrip('.')}."
    return f'<p class="gt gt-failed" role="alert">{escape(said)}</p>'


def _folded(recording: LessonRecording, inside: object, *, first: bool) -> str:
    """The first recording open, every other one behind a line with its card and date."""
    text = mo.as_html(inside).text
    if first:
        return text
    name = f"The same on {recording.card or recording.gpu}, {recording.at[:10]}"
    return f'<details class="gt"><summary>{escape(name)}</summary>{text}</details>'


def _guarded(recording: LessonRecording, experiment: LessonExperiment, tapes: Mapping[str, Path]) -> object:
    def told() -> object:
        try:
            return _drawn(recording, experiment, tapes)
        except GpututorError as error:
            return html(_failed(str(error)))

    return shown(told)


def tapes_for(recording: LessonRecording, experiment: LessonExperiment, tapes: Mapping[str, Path]) -> dict[str, Path]:
    """The simulated runs of the same work by workload; none where the recording's settings are others."""
    if not _same_work(recording, experiment):
        return {}
    ours = data_dir() / "recordings" / f"{experiment.name}.tape.gz"
    alone = {"": ours} if ours.is_file() else {}
    return {name: path for name, path in {**alone, **tapes}.items() if name in recording.timelines}


def _same_work(recording: LessonRecording, experiment: LessonExperiment) -> bool:
    return dict(recording.params) == dict(experiment.params)


def _drawn(recording: LessonRecording, experiment: LessonExperiment, tapes: Mapping[str, Path]) -> mo.Html:
    """Gauges measured and simulated, each figure beside its band, and the accounts of a step that differ.

    Raises:
        GpututorError: a file of the recording or a tape can't be read.
    """
    fitting = tapes_for(recording, experiment, tapes)
    timelines = {name: timeline_file.load(path) for name, path in recording.timelines.items()}
    rows = rows_of(recording, fitting, experiment.unit, "" if _same_work(recording, experiment) else OTHER_SETTINGS)
    measured = {name: charge(timeline) for name, timeline in timelines.items()}
    simulated: dict[str, Ledger] = {}
    source, words = source_of(recording), ""
    stand_in = standing_in(next(iter(timelines.values())).label)
    if stand_in is not None and fitting:
        machine, words = stand_in.machine, stand_in.words
        source += f", beside {source_line(Label(Origin.SIMULATED, machine.card.name, machine.name))}"
        simulated = {name: play_file(path, machine).ledger for name, path in fitting.items()}
    return figure(
        f"Measured on {recording.card or recording.gpu}",
        source,
        gauge_table(_gauges(measured, simulated)),
        *_beside(rows, timelines, fitting, experiment),
        note=" ".join(_notes(recording, rows, measured, words)),
        wide=True,
    )


def _beside(
    rows: Sequence[Row], timelines: Mapping[str, Timeline], tapes: Mapping[str, Path], experiment: LessonExperiment
) -> Iterator[str]:
    """Each figure beside its band, then the accounts of a step; nothing where nothing is expected.

    Of several workloads the gauges say enough about busy, and a table of twice the length is nobody's reading.
    """
    several = len(timelines) > 1
    shown_rows = [row for row in rows if not (several and row.what == BUSY)]
    found = [(_title(row, several=several), row.difference) for row in shown_rows]
    compared = [(title, difference) for title, difference in found if difference is not None]
    if not compared:
        return
    yield expected_table(compared)
    if experiment.unit == "step":
        both = (beside(timelines[name], read_tape(path)).comparison for name, path in tapes.items())
        yield from (accounts_table(each.accounts) for each in both if each is not None)


def source_of(recording: LessonRecording) -> str:
    """Measured, on which card and host, with which driver and torch, and when; as HTML."""
    driver = f"driver {recording.driver}" if recording.driver else "driver not known"
    parts = (recording.card or recording.gpu, recording.host, driver, f"torch {recording.torch}", recording.at[:10])
    return f'<span class="gt-tag gt-measured">Measured</span> {escape(" · ".join(filter(None, parts)))}'


def _title(row: Row, *, several: bool) -> str:
    """What a figure is of; the workload stands before it where there are several."""
    what = "a step without the profiler" if row.what == UNWATCHED else row.what
    return f"{row.experiment}: {what}" if several else what[:1].upper() + what[1:]


def _gauges(measured: Mapping[str, Ledger], simulated: Mapping[str, Ledger]) -> Sequence[tuple[str, Ledger]]:
    """Each workload measured and, right below it, simulated."""
    pairs = (
        (_named(name, word), ledgers[name])
        for name in measured
        for word, ledgers in (("measured", measured), ("simulated", simulated))
        if name in ledgers
    )
    return list(pairs)


def _named(workload: str, word: str) -> str:
    return f"{workload}, {word}" if workload else word.capitalize()


def _notes(recording: LessonRecording, rows: Sequence[Row], measured: Mapping[str, Ledger], words: str) -> list[str]:
    """What a reader must know to judge the figures, in sentences."""
    told = recording.told.get("notes", ())
    notes = chain.from_iterable(told.values()) if isinstance(told, Mapping) else told
    left_out = (f"{name} is left out: {why}" for name, why in recording.told.get("left_out", {}).items())
    nothing = (f"Nothing is expected: {row.reason}" for row in rows if row.reason)
    flop = [NO_FLOP] if any(each.mfu is None for each in measured.values()) else []
    lines = dict.fromkeys(chain(flop, [words] if words else [], nothing, left_out, notes))
    return [f"{line[:1].upper()}{line[1:].rstrip('.')}." for line in lines]
