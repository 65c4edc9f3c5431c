"""What a reader may choose to raise the mystery job: names and choices only, no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from gpututor.errors import ExperimentError
from gpututor.jobs.rules import Rule, Way
from gpututor.jobs.tutorial import LEARNING_RATE


class Lengths(Enum):
    """Which sentences share a batch; the value is what a reader sees."""

    MIXED = "as they come, filled up"
    ALIKE = "of one length"


class Layers(Enum):
    """How the model is called."""

    WORDS = "word by word"
    WHOLE = "whole sentences"


class Launch(Enum):
    """How a step's kernels are launched."""

    EAGER = "one by one"
    GRAPH = "as one graph"


class Bits(Enum):
    """The format of products."""

    FP32 = "fp32"
    FP16 = "fp16, with a scaler"


class Schedule(Enum):
    """What becomes of the rate."""

    CONSTANT = "stays"
    FALLING = "warms up, then falls"


class Reading(Enum):
    """How often the loss is read, which waits for the card."""

    ALWAYS = "after every step"
    RARELY = "every twenty steps"


BATCHES = (1, 4, 8, 16, 32, 64, 128, 256)
MOST = (2_500, 5_000, 10_000)  # sentences after which an attempt is given up
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
RULES = (Rule.SGD, Rule.ADAM)
READ_EVERY = 20
WARM_UP_STEPS = 20


@dataclass(frozen=True, slots=True)
class Choices:
    """One way to train the translator, and the sentences after which it is given up; as usual, the tutorial's."""

    batch: int = 1
    lengths: Lengths = Lengths.MIXED
    layers: Layers = Layers.WORDS
    launch: Launch = Launch.EAGER
    rule: Rule = Rule.SGD
    update: Way = Way.FOREACH
    rate: float = LEARNING_RATE
    schedule: Schedule = Schedule.CONSTANT
    reading: Reading = Reading.ALWAYS
    bits: Bits = Bits.FP32
    most: int = MOST[0]

    def as_data(self) -> dict[str, Any]:
        """As JSON data: the names of what was chosen."""
        return {name: each.name if isinstance(each, Enum) else each for name, each in asdict(self).items()}

    @staticmethod
    def from_data(told: Mapping[str, Any]) -> Choices:
        """The choices that `as_data` told; what it leaves out stays as usual.

        Raises:
            ExperimentError: there is no such choice.
        """
        usual = Choices()
        try:
            read = {name: _read(getattr(usual, name), each) for name, each in told.items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            known = ", ".join(each.name for each in fields(Choices))
            raise ExperimentError(f"{error} is no choice of this job; choose among {known}") from error
        return Choices(**read)

    def rate_at(self, k: int) -> float:
        """The rate of step k. Source of the falling one: Vaswani and others 2017, section 5.3."""
        if self.schedule is Schedule.CONSTANT:
            return self.rate
        return self.rate * min((k + 1) / WARM_UP_STEPS, math.sqrt(WARM_UP_STEPS / (k + 1)))

    @property
    def clash(self) -> str:
        """Why these choices can't go together, as one sentence; empty where they can."""
        if self.launch is Launch.GRAPH and self.layers is Layers.WORDS:
            return (
                "Word by word, the program reads each word that it guessed from the card, to see whether it is the "
                "end. What waits for the card can't be part of a graph: call the model with whole sentences."
            )
        if self.launch is Launch.GRAPH and self.schedule is Schedule.FALLING and self.update is not Way.FUSED:
            return (
                "A graph repeats the rate that it was captured with. One that changes must be a tensor on the card, "
                "which only the fused update reads: take it, or let the rate stay."
            )
        if self.launch is Launch.GRAPH and self.bits is Bits.FP16 and self.update is not Way.FUSED:
            return (
                "The scaler asks the card after each step whether a gradient overflowed, and no graph may wait. The "
                "fused update asks on the card: take it, or stay with fp32."
            )
        return ""


def _read(usual: Any, told: Any) -> Any:
    if isinstance(usual, Enum):
        return type(usual)[told]
    return type(usual)(told)
