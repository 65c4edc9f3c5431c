"""What can be recorded: one entry for each experiment that a lesson measures on a real GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from gpututor.errors import NotKnown


@dataclass(frozen=True, slots=True)
class LessonExperiment:
    """An experiment as it is recorded, and the simulated run that says what to expect of it.

    `name` begins the names of its files. `measured` and `simulated` are "module:function", as the lab runs them.
    `unit` says what is compared: the mean length of one kernel, or the time of one step.
    """

    lesson: int
    name: str
    what: str
    measured: str
    simulated: str
    unit: Literal["kernel", "step"]
    params: Mapping[str, Any] = field(default_factory=dict)
    simulated_params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The experiment in a line of progress."""
        return f"lesson {self.lesson}, {self.name}"


# As data/recordings/seq2seq.tape.gz, so that the two hold the same sentences and one says what to expect of the other.
_SENTENCES = MappingProxyType({"n_steps": 100, "n_kept": 3})

# The extension point. In the order in which they run; tests/test_record_command.py holds it against the lessons.
EXPERIMENTS = (
    LessonExperiment(
        1,
        "gauge",
        "four workloads that keep a card busy, a quarter second of each on a V100",
        "gpututor.experiments.measured:gauge",
        "gpututor.experiments.gauge:run",
        "kernel",
        simulated_params=MappingProxyType({"thinned": 50}),  # each launch is priced alike, so a few of each are enough
    ),
    LessonExperiment(
        2,
        "seq2seq",
        "the translator, 100 sentences, of which the last 3 are recorded",
        "gpututor.experiments.measured:seq2seq",
        "gpututor.experiments.seq2seq:train",
        "step",
        params=_SENTENCES,
        simulated_params=_SENTENCES,
    ),
    *(
        LessonExperiment(
            lesson,
            name,
            what,
            f"gpututor.experiments.{measured or module}:measure",
            f"gpututor.experiments.{module}:run",
            "step",
        )
        for lesson, name, what, module, measured in (
            (3, "batches", "ResNet-50 with one picture a step to 32", "batches", ""),
            (4, "one-after-another", "recurrent networks and a Transformer by length", "one_after_another", ""),
            (5, "wider-or-deeper", "a translator, wider and deeper", "wider_or_deeper", ""),
            (6, "feeding", "JPEG files and workers of a loader", "feeding", "feeding_here"),
            (7, "in-memory", "rows of a table, one by one and together", "data_in_memory", ""),
            (8, "preparing", "pictures prepared by host and card, and ways to copy them", "preparing", ""),
            (9, "answers", "ways to watch the loss", "answers", ""),
            (10, "tiny-kernels", "ResNet-50 eager, compiled and as a graph", "tiny_kernels", ""),
            (11, "fewer-bits", "three networks in fp32, TF32, fp16 and bf16", "fewer_bits", ""),
            (12, "optimizers", "updates in three ways, rows of a table, and ResNet-50", "optimizers", ""),
            (13, "efficient", "four networks by batch, format and order of channels", "efficient", ""),
            (14, "ragged", "an LSTM and GPT-2 on texts of many lengths", "ragged", ""),
            (15, "pauses", "a training step with each switch that was left on", "pauses", ""),
            (16, "several-cards", "a small network in one process and in two", "several_cards", ""),
            (17, "machine-itself", "four jobs, from much arithmetic to a tiny network", "machine_itself", ""),
        )
    ),
    LessonExperiment(
        18,
        "nightly",
        "one job in three forms, the usual one five times over",
        "gpututor.experiments.watching_over_time:measure",
        "gpututor.experiments.watching_over_time:run",
        "step",
        simulated_params=MappingProxyType({"watch_s": 0, "n_learned": 4}),
    ),
    LessonExperiment(
        19,
        "capstone",
        "the mystery job, and with more sentences a step",
        "gpututor.experiments.capstone:measure",
        "gpututor.experiments.capstone:run",
        "step",
    ),
)


class LessonNotRecorded(NotKnown):
    """A lesson of this number has no experiment that is measured."""


def of_lessons(numbers: Sequence[int] = ()) -> tuple[LessonExperiment, ...]:
    """The experiments of these lessons; without numbers those of all.

    Raises:
        LessonNotRecorded: a lesson has none.
    """
    known = {each.lesson for each in EXPERIMENTS}
    for number in numbers:
        if number not in known:
            raise LessonNotRecorded("lesson with an experiment to record", str(number), map(str, sorted(known)))
    return tuple(each for each in EXPERIMENTS if not numbers or each.lesson in numbers)


def timelines_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Files of timelines by workload in what a measured run handed back; the name is empty where there is one alone."""
    return _files(told, "timelines", "timeline")


def tapes_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Files of tapes by workload in what a simulated run handed back, as `timelines_of`."""
    return _files(told, "tapes", "tape")


def _files(told: Mapping[str, Any], several: str, one: str) -> dict[str, str]:
    if several in told:
        return dict(told[several])
    return {"": told[one]} if told.get(one) else {}
