"""The errors a reader can meet. Each says what was seen, why it can't be, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class GpututorError(Exception):
    """Base of every error raised on purpose by gpututor."""


class TimelineError(GpututorError, ValueError):
    """A span, step or window that contradicts itself, or a file that is not a timeline."""


class NoKernels(TimelineError):
    """A trace in which the program launched nothing on a GPU."""


class NotKnown(GpututorError, LookupError):
    """A name that is not in one of our tables; the message lists near matches."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        folded = {k.casefold(): k for k in known}
        close = [folded[k] for k in get_close_matches(name.casefold(), folded, n=3, cutoff=0.4)]
        tail = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(known)}."
        super().__init__(f'no {kind} is called "{name}". {tail}')
        self.kind, self.name, self.close = kind, name, close


class CardNotKnown(NotKnown):
    """The card's name is not in data/cards.toml."""


class HostNotKnown(NotKnown):
    """The host's name is not in data/hosts.toml."""


class MachineNotKnown(NotKnown):
    """The machine's or instance's name is not in data/machines.toml."""


class LinkNotKnown(NotKnown):
    """The link's name is not in data/links.toml."""


class DeviceNotKnown(NotKnown):
    """Steps can't be recorded on a device of this name."""


class MetricNotKnown(NotKnown):
    """The driver is asked for no metric of this name."""


class GpuNotKnown(NotKnown):
    """No GPU of this machine has this UUID or place among those that are sampled."""


class ExerciseNotKnown(NotKnown):
    """No exercise has this number."""


class RunNeeded(GpututorError, LookupError):
    """An exercise asks about the learner's own run, and none is kept."""


class NotJudged(GpututorError, RuntimeError):
    """An answer can't be judged, by no fault of the answer."""


class SubmissionRefused(GpututorError, ValueError):
    """A file that holds no submission of ours, or one that was changed after it was saved."""


class NothingToSubmit(GpututorError, LookupError):
    """A submission is asked for, and no answer is kept."""


class RosterDamaged(GpututorError, ValueError):
    """A table of learners, files or points that can't be read; names the file and line."""


class DeadlineUnclear(GpututorError, ValueError):
    """A deadline that no clock shows, or shows twice, or a rule for late work that can't be read."""


class ClassDamaged(GpututorError, ValueError):
    """A class's folder that lacks something, or holds something else; or one that is there already."""


class OverrideRefused(GpututorError, ValueError):
    """Points given by hand for a learner or an exercise that the class doesn't have, or too many."""


class GradingStopped(GpututorError, RuntimeError):
    """Grading ended before its end; what was judged is kept."""


class GradesRefused(GpututorError, ValueError):
    """A file that holds no grades of ours, or none of this learner."""


class GradingNotPossible(GpututorError, RuntimeError):
    """Grading can't begin or go on: another one is at work, a package or a cluster is missing."""


class RecordDamaged(GpututorError, ValueError):
    """A file of sampled readings that can't be read; names the file and line."""


class ClockNotKnown(NotKnown):
    """A simulated machine has no clock of this name."""


class DataFileError(GpututorError, ValueError):
    """One of our own tables in data/ is damaged; names the file, entry and field."""


class KernelSpecError(GpututorError, ValueError):
    """A described kernel or operator that contradicts itself, or a file that holds none."""


class WrongDevice(GpututorError, RuntimeError):
    """A model or batch lies on another device than the step is recorded on."""


class StepFailed(GpututorError, RuntimeError):
    """The reader's training step raised; the original exception is the cause."""


class NoSteps(GpututorError, ValueError):
    """Nothing to record: an empty loader, or fewer steps than were asked for."""


class CorpusTooSmall(GpututorError, ValueError):
    """More different sentences were asked for than our grammar makes."""


class ExperimentError(GpututorError, RuntimeError):
    """An experiment in the lab ended without a result: crash, stop, time budget or a raised error."""


class MachineBusy(GpututorError, RuntimeError):
    """Another measurement of real time holds the machine's lock."""


class ProgressDamaged(GpututorError, ValueError):
    """A learner's progress file can't be read; it was kept aside under another name."""


class MeasurementDamaged(GpututorError, ValueError):
    """A file that holds no measurement of ours, or a damaged one."""


class HistoryError(GpututorError, RuntimeError):
    """The history of runs can't be opened, read or written."""


class RunNotKnown(NotKnown):
    """The history has no run of this number."""


class SessionRunning(GpututorError, RuntimeError):
    """A second simulated GPU was started in a process that has one at work."""


class GraphBreak(GpututorError, RuntimeError):
    """A function that was to be compiled as one graph does something that no graph can hold."""


class NumericsOff(GpututorError, RuntimeError):
    """A program needs a value that a simulated GPU without numerics does not compute."""


class LedgerError(GpututorError, ValueError):
    """A ledger whose accounts don't add up, or a question it can't answer."""


class SettingNotPossible(GpututorError, ValueError):
    """A workload is asked to run in a way that it doesn't know."""


class WorkloadNotKnown(NotKnown):
    """No workload has this name."""


class PointsDamaged(GpututorError, ValueError):
    """A file of measured points that can't be read; names the file, line and column."""


class NotCalibrated(GpututorError, LookupError):
    """The reader's own machine is asked for, and `gpututor calibrate` has not measured it."""


class CalibrationDamaged(GpututorError, ValueError):
    """The file that `gpututor calibrate` left can't be read."""


class CalibrationFailed(GpututorError, RuntimeError):
    """Nothing usable could be measured on this machine."""


class ExpectationError(GpututorError, ValueError):
    """A band whose ends are swapped, or two results that can't be compared."""


class CardFull(GpututorError, MemoryError):
    """A simulated card has no room for a request; the simulated GPU turns it into torch's own error."""

    def __init__(
        self, wanted_bytes: int, capacity_bytes: int, free_bytes: int, used_bytes: int, cached_bytes: int
    ) -> None:
        gib = 2**30
        super().__init__(
            f"{wanted_bytes / gib:.2f} GiB were asked for, but of the card's {capacity_bytes / gib:.2f} GiB only "
            f"{free_bytes / gib:.2f} GiB are free; take a smaller batch or a card with more memory"
        )
        self.wanted_bytes, self.capacity_bytes, self.free_bytes = wanted_bytes, capacity_bytes, free_bytes
        self.used_bytes, self.cached_bytes = used_bytes, cached_bytes


class RanksDisagree(GpututorError, RuntimeError):
    """Ranks of one process group call different collectives, or one waits for another that has ended."""


class RankFailed(GpututorError, RuntimeError):
    """One of several simulated processes raised; the original exception is the cause."""


class TorchNotSupported(GpututorError, RuntimeError):
    """The installed torch is not one whose inner seams the simulated GPU knows."""


class WatchNotKept(GpututorError, OSError):
    """A file or folder in which a watch was to be kept can't be written, or holds something already."""


class RecordingsNotKept(GpututorError, OSError):
    """The folder for the recordings of a GPU can't be written."""


class BoardNotOpened(GpututorError, RuntimeError):
    """TensorBoard is not installed, or ended before it listened."""


class PageNotServed(GpututorError, OSError):
    """The page of a watch can't be served: its port is taken or not ours."""


class IsolationMissing(GpututorError, RuntimeError):
    """Learners' code can't be shut in here: bubblewrap is missing or the system doesn't let it work."""


class SandboxFailed(GpututorError, OSError):
    """A sandbox that has worked before could not be started, or never answered."""


class CardsFailed(GpututorError, OSError):
    """The server of simulated cards could not be started, or is gone."""
