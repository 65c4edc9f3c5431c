"""What was recorded beside what the model expects of the same card, each with its band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpututor import timeline_file
from gpututor.cards import Machine
from gpututor.expect import Band, Difference, compare
from gpututor.expect.accuracy import band_for, regime_of, util_band
from gpututor.ledger import Ledger, charge
from gpututor.own_gpu import not_listed, standing_in, step_band
from gpututor.recordings.kept import LessonRecording
from gpututor.replay import Played, play_file, read_tape
from gpututor.text import duration, percent

KERNEL, STEP, UNWATCHED, BUSY = "one kernel", "a step", "a step, not recorded", "busy"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of an experiment, in nanoseconds or as a share.

    Where nothing is expected `reason` says why; else `note` says whose host the model has, where that matters.
    """

    lesson: int
    experiment: str
    what: str
    unit: Literal["ns", "share"]
    seen: float | None
    band: Band | None
    reason: str = ""
    note: str = ""

    @property
    def difference(self) -> Difference | None:
        """Both side by side, or None where nothing is expected."""
        return None if self.band is None else compare(self.band, self.seen)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Measured, expected, the band and the verdict, as text."""
        say = duration if self.unit == "ns" else percent
        difference = self.difference
        if difference is None:
            return say(self.seen), "not known", "", ""
        band = difference.band
        return say(self.seen), say(band.expected), f"{say(band.low)} to {say(band.high)}", difference.verdict

    def as_fields(self) -> dict[str, Any]:
        """The row as plain data."""
        band, difference = self.band, self.difference
        return {
            "lesson": self.lesson,
            "experiment": self.experiment,
            "what": self.what,
            "unit": self.unit,
            "measured": self.seen,
            "expected": band.expected if band else None,
            "low": band.low if band else None,
            "high": band.high if band else None,
            "source": band.source if band else None,
            "verdict": difference.verdict if difference else "not known",
            "reason": self.reason or None,
            "note": self.note or None,
        }


def rows_of(recording: LessonRecording, tapes: Mapping[str, Path], unit: str, why_no_tape: str = "") -> tuple[Row, ...]:
    """The figures of a recording; `tapes` are those of the simulated runs by workload.

    A workload without a tape has no expectation, and `why_no_tape` is the reason. `unit` is that of its experiment.

    Raises:
        TimelineError: a file of either run is gone or damaged.
    """
    found: list[Row] = []
    for workload, path in recording.timelines.items():
        timeline = timeline_file.load(path)
        stand_in = standing_in(timeline.label)
        tape = tapes.get(workload)
        if stand_in is None:
            reason = not_listed(timeline.label)
        else:
            reason = "" if tape else why_no_tape or "no simulated run of it is here"
        machine = stand_in.machine if stand_in and tape else None
        note = stand_in.words if stand_in and unit == "step" else ""
        bands = _bands(tape, machine, unit) if tape and machine else {}
        for what, seen in _seen(recording.told, charge(timeline), unit).items():
            name = workload or recording.name
            row_unit: Literal["ns", "share"] = "share" if what == BUSY else "ns"
            found.append(Row(recording.lesson, name, what, row_unit, seen, bands.get(what), reason, note))
    return tuple(found)


def _seen(told: Mapping[str, Any], ledger: Ledger, unit: str) -> dict[str, float | None]:
    if unit == "kernel":
        length_ns = ledger.busy_ns / ledger.n_kernels if ledger.n_kernels else None
        return {KERNEL: length_ns, BUSY: ledger.gpu_util_share}
    figures: dict[str, float | None] = {STEP: ledger.step_ns}
    if (unwatched_ns := steady_ns(told)) is not None:
        figures[UNWATCHED] = unwatched_ns
    return figures | {BUSY: ledger.gpu_util_share}


def steady_ns(told: Mapping[str, Any]) -> float | None:
    """The mean time of a step before the recorded ones, in nanoseconds: what it takes without a profiler.

    The second half of them is taken, since the first ones still load kernels. None without any.
    """
    before = [row[0] for row in told.get("steps", ())[: -told["n_kept"] or None]] if told.get("n_kept") else []
    steady = before[len(before) // 2 :]
    return sum(steady) / len(steady) if steady else None


def _bands(tape: Path, machine: Machine, unit: str) -> dict[str, Band]:
    played = play_file(tape, machine)
    if unit == "kernel":
        regime = regime_of(played.timeline, played.ledger)
        return {KERNEL: band_for(played.kernel_ns, "ns", regime), BUSY: _util(played)}
    step = step_band(read_tape(tape), machine)
    return {STEP: step, UNWATCHED: step, BUSY: _util(played)}


def _util(played: Played) -> Band:
    return util_band(played.timeline, played.ledger, played.machine.host.costs_error_share)
