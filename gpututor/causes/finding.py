"""A finding: a cause by name, how much it explains, what it rests on, what to try.

Data first; the sentence is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from gpututor.ledger import Account
from gpututor.text import duration, percent


class Cause(Enum):
    """A state of the world that keeps a GPU from useful work, or one that keeps us from saying."""

    WAITING_FOR_INPUT = "The GPU waits for input"
    LAUNCH_BOUND = "The GPU waits for the host to launch its next kernel"
    BLOCKING_SYNCS = "The host stops to wait for results"
    EXPOSED_COPY = "The GPU waits for data on its way from the host"
    EXPOSED_COMMUNICATION = "The GPU waits for other GPUs"
    STRAGGLING_RANK = "This GPU comes early and waits for the last one"
    COMPILING = "Code is compiled, tuned or loaded for the GPU"
    START_UP = "Start-up takes a large part of the time"
    GARBAGE_COLLECTION = "Python's garbage collection stops the host"
    PROFILING = "The profiler itself stops the host"
    PAUSES = "Training pauses for something else"
    TOO_SMALL_TO_FILL = "The kernels are too small to fill the card"
    MEMORY_BOUND = "The kernels wait for GPU memory"
    SLOWER_FORMAT = "The arithmetic runs in a slower number format than the card offers"
    RECOMPUTE_AND_PADDING = "Part of the arithmetic is done twice or on padding"
    NONE_FOUND = "Nothing is wrong that we know of"
    CANNOT_TELL = "This timeline is not enough to tell"
    TIMER_SUSPECT = "The timer is not to be trusted"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that a finding rests on, with its unit, and the words for it."""

    name: str
    value: float
    unit: str  # "ns", "share", "FLOP", "1" for a count
    text: str


@dataclass(frozen=True, slots=True)
class Gain:
    """The best that a change could bring: wall time before and after, for one `per`.

    A bound and not a forecast: it is the same ledger with the account emptied, and a wait that
    goes away on one line may come back on another.
    """

    from_ns: float
    to_ns: float
    per: Literal["step", "window"]

    @property
    def speedup(self) -> float:
        """How many times faster at most.

        >>> round(Gain(2_648e6, 260e6, "step").speedup, 1)
        10.2
        """
        return self.from_ns / self.to_ns

    @property
    def text(self) -> str:
        """The gain in words."""
        a = "step" if self.per == "step" else "window"
        return f"from {duration(self.from_ns)} to at best {duration(self.to_ns)} a {a} ({self.speedup:.3g}×)"


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a finding is, and why."""

    words: Literal["sure", "likely", "a guess"]
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause with its share of the window (None where it has none), its evidence and one thing to try.

    `change` is Markdown. `lesson` is the number of the lesson about this cause.
    """

    cause: Cause
    account: Account | None
    share: float | None
    evidence: tuple[Evidence, ...]
    change: str
    gain: Gain | None
    confidence: Confidence
    lesson: int | None = None

    @property
    def sentence(self) -> str:
        """Cause, share and evidence as one line of prose."""
        head = self.cause.value if self.share is None else f"{self.cause.value}: {percent(self.share)} of the time"
        return f"{head} ({'; '.join(e.text for e in self.evidence)})." if self.evidence else f"{head}."

    def __getitem__(self, name: str) -> float:
        """The value of the evidence with this name.

        Raises:
            KeyError: the finding has no such evidence.
        """
        for one in self.evidence:
            if one.name == name:
                return one.value
        raise KeyError(name)


def count(name: str, value: float, text: str) -> Evidence:
    """Evidence that is a number of things; `{}` in `text` becomes the number."""
    whole = value == int(value) or value >= 100
    return Evidence(name, value, "1", text.format(f"{value:,.0f}" if whole else f"{value:.3g}"))


def several(name: str, value: float, thing: str, where: str = "") -> Evidence:
    """Evidence that counts things by the name of one of them: "1 sync a step", "3 syncs a step"."""
    return count(name, value, " ".join(filter(None, ["{}", thing if value == 1 else f"{thing}s", where])))


def time(name: str, value_ns: float, text: str) -> Evidence:
    """Evidence in nanoseconds; `{}` in `text` becomes the time in words."""
    return Evidence(name, value_ns, "ns", text.format(duration(value_ns)))


def part(name: str, share: float, text: str) -> Evidence:
    """Evidence that is a share in 0..1; `{}` in `text` becomes the percentage."""
    return Evidence(name, share, "share", text.format(percent(share)))


def finding_fields(found: Finding) -> dict[str, Any]:
    """A finding as plain data."""
    gain = found.gain
    return {
        "cause": found.cause.name.lower(),
        "account": found.account.name.lower() if found.account else None,
        "share": found.share,
        "evidence": [{"name": e.name, "value": e.value, "unit": e.unit, "text": e.text} for e in found.evidence],
        "change": found.change or None,
        "gain": {"from_ns": gain.from_ns, "to_ns": gain.to_ns, "per": gain.per} if gain else None,
        "confidence": found.confidence.words,
        "lesson": found.lesson,
    }
