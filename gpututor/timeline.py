"""What host, GPU and links did, and when: measured, recorded or simulated alike.

A `Timeline` is the one thing that every later stage reads. All times are whole
nanoseconds since the timeline's own origin, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

import msgspec

from gpututor.errors import TimelineError

NS_PER_S = 1_000_000_000


class LaneKind(Enum):
    """Where a span can lie."""

    __hash__ = object.__hash__  # one object each, so its own hash will do; that of Enum is slow

    HOST = "host"  # one thread of the host
    STREAM = "stream"  # one stream of one GPU
    COPY = "copy"  # one copy engine of one GPU
    LINK = "link"  # one link between GPUs or nodes


class Activity(Enum):
    """What a span does. The first group lies on streams, copy engines and links; the second on host threads."""

    __hash__ = object.__hash__  # one object each, so its own hash will do; that of Enum is slow

    KERNEL = "kernel"
    COLLECTIVE = "collective"  # a kernel that moves data between GPUs (NCCL, RCCL)
    MEMSET = "memset"
    COPY_TO_GPU = "copy to GPU"
    COPY_TO_HOST = "copy to host"
    COPY_ON_GPU = "copy on GPU"
    TRANSFER = "transfer"

    PYTHON = "python"  # the interpreter between two framework calls
    DISPATCH = "dispatch"  # inside a framework operator, before or after its launch
    LAUNCH = "launch"  # inside the driver's launch call
    SYNC = "sync"  # blocked until the GPU has finished (item, synchronize, print of a tensor)
    COPY_CALL = "copy call"  # blocked in a copy: the call returns when the copy is done
    INPUT = "input"  # preparing or awaiting the next batch
    PAUSE = "pause"  # evaluation, checkpoint, logging, garbage collection
    STARTUP = "start-up"  # compilation, autotuning, allocator, first-call work
    COMM_WAIT = "communication wait"  # waiting for other ranks


ON_HOST = frozenset(
    {
        Activity.PYTHON,
        Activity.DISPATCH,
        Activity.LAUNCH,
        Activity.SYNC,
        Activity.COPY_CALL,
        Activity.INPUT,
        Activity.PAUSE,
        Activity.STARTUP,
        Activity.COMM_WAIT,
    }
)
COMPUTING = frozenset({Activity.KERNEL, Activity.MEMSET})
COPYING = frozenset({Activity.COPY_TO_GPU, Activity.COPY_TO_HOST, Activity.COPY_ON_GPU})


class Origin(Enum):
    """Where a timeline comes from; written on every chart."""

    MEASURED = "measured"  # on this machine's own GPU, by us
    RECORDED = "recorded"  # read from a trace file
    SIMULATED = "simulated"  # a card that is not there


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the timeline."""

    kind: LaneKind
    name: str
    device: int | None = None  # GPU index; None for host threads, unless they drive one GPU alone


class KernelWork(msgspec.Struct, frozen=True, gc=False):
    """What one kernel had to do. A field is None where the source can't tell.

    `flop` counts a multiply-add as two. `moved_bytes` is traffic to and from GPU
    memory. `n_blocks` thread blocks were launched, of which at most
    `blocks_per_sm` are resident on one SM. `useful_flop` leaves out recomputation and padding. `flop_unknown` says why
    `flop` is None, where the source says it. `from_graph` is True where a CUDA or HIP graph ran it. `group` tells the
    process group of a collective from others.
    """

    kind: str = "kernel"
    flop: float | None = None
    moved_bytes: float | None = None
    n_blocks: int | None = None
    blocks_per_sm: int | None = None
    number_format: str | None = None  # "fp64", "fp32", "tf32", "fp16", "bf16", "int8"
    tensor_core: bool | None = None
    useful_flop: float | None = None
    flop_unknown: str | None = None
    from_graph: bool | None = None
    group: str | None = None


class Span(msgspec.Struct, frozen=True, gc=False):
    """One stretch of work on one lane (`lane` is an index into `Timeline.lanes`).

    `launch` is the same number on a host call and on what it started, else None. There are hundreds of thousands of
    them in a trace; a dataclass takes eight times as long to make. Changed copies: `msgspec.structs.replace`.
    """

    lane: int
    activity: Activity
    name: str
    start_ns: int
    end_ns: int
    launch: int | None = None
    work: KernelWork | None = None

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise TimelineError(
                f"{self.activity.value} span {self.name!r} ends at {self.end_ns:,} ns, before its "
                f"start at {self.start_ns:,} ns; were the two swapped?"
            )

    @property
    def duration_ns(self) -> int:
        """Length of the span, in nanoseconds."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Step:
    """One training step: the host's time from its begin to the next one's."""

    start_ns: int
    end_ns: int
    n_samples: int | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """What a chart must say about its source."""

    origin: Origin
    card: str | None = None  # name in data/cards.toml, or the driver's name for a card not in it
    host: str | None = None
    what: str = ""  # "seq2seq, batch 1", a file name, …
    versions: tuple[tuple[str, str], ...] = ()  # ("torch", "2.13.0"), ("driver", "550.54"), …
    n_sms: int | None = None  # of the card, where the source says it


class _Sorted(NamedTuple):
    """Spans by activity and by lane, in stored order."""

    activity: dict[Activity, list[Span]]
    lane: list[list[Span]]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Spans on lanes, the window they are looked at in, and a label.

    Spans may be in any order and may stick out of the window; whoever counts clips them.

    Raises:
        TimelineError: a span lies on a lane that isn't there or of the wrong kind, or the window is empty.
    """

    lanes: tuple[Lane, ...]
    spans: tuple[Span, ...]
    window_ns: tuple[int, int]
    label: Label
    steps: tuple[Step, ...] = ()
    losses: tuple[str, ...] = field(default=())  # what was lost while reading, in words
    _sorted: _Sorted | None = field(default=None, init=False, repr=False, compare=False)  # made when it is asked for

    def __post_init__(self) -> None:
        start, end = self.window_ns
        if end <= start:
            raise TimelineError(f"the window runs from {start:,} to {end:,} ns, so it holds no time")
        n = len(self.lanes)
        for lane, activity in {(span.lane, span.activity) for span in self.spans}:
            if 0 <= lane < n and (activity in ON_HOST) == (self.lanes[lane].kind is LaneKind.HOST):
                continue
            wrong = next(s for s in self.spans if s.lane == lane and s.activity is activity)
            if not 0 <= lane < n:
                raise TimelineError(f"span {wrong.name!r} lies on lane {lane}, but there are {n} lanes")
            raise TimelineError(
                f"{activity.value} span {wrong.name!r} lies on the {self.lanes[lane].kind.value} "
                f"lane {self.lanes[lane].name!r}, where such work can't run"
            )

    @property
    def duration_ns(self) -> int:
        """Length of the window, in nanoseconds."""
        return self.window_ns[1] - self.window_ns[0]

    def on(self, *activities: Activity) -> Iterator[Span]:
        """The spans with one of these activities, in stored order."""
        found = [self._by().activity[each] for each in activities]
        if sum(map(bool, found)) <= 1:
            return iter(next(filter(None, found), ()))
        return (span for span in self.spans if span.activity in activities)

    @property
    def by_lane(self) -> Sequence[Sequence[Span]]:
        """The spans of each lane, in stored order."""
        return self._by().lane

    def on_gpus(self) -> list[Span]:
        """What ran on GPUs, their copy engines and links, lane by lane."""
        lanes = zip(self.lanes, self.by_lane, strict=True)
        return [span for lane, spans in lanes if lane.kind is not LaneKind.HOST for span in spans]

    def _by(self) -> _Sorted:
        if self._sorted is None:
            found = _Sorted({activity: [] for activity in Activity}, [[] for _ in self.lanes])
            by_activity, by_lane = found
            for span in self.spans:
                by_activity[span.activity].append(span)
                by_lane[span.lane].append(span)
            object.__setattr__(self, "_sorted", found)
            return found
        return self._sorted

    def device_window_ns(self) -> tuple[int, int] | None:
        """From the first kernel's start to the last one's end, or None without kernels."""
        kernels = [s for s in self.on_gpus() if s.activity in COMPUTING or s.activity is Activity.COLLECTIVE]
        if not kernels:
            return None
        start, end = min(s.start_ns for s in kernels), max(s.end_ns for s in kernels)
        return (start, end) if end > start else None

    def looked_at(self, start_ns: int, end_ns: int) -> Timeline:
        """The same spans seen through another window, those that end before it or start after it left out."""
        out = self._through(start_ns, end_ns)
        spans = tuple([s for s in self.spans if s.end_ns > start_ns and s.start_ns < end_ns])
        object.__setattr__(out, "spans", spans)
        return out

    def through(self, start_ns: int, end_ns: int, steps: Iterable[Step] | None = None) -> Timeline:
        """All the spans seen through another window, for whoever clips them; quicker than `looked_at`.

        The steps are those that reach into the window, or others.
        """
        out = self._through(start_ns, end_ns)
        if steps is not None:
            object.__setattr__(out, "steps", tuple(steps))
        object.__setattr__(out, "spans", self.spans)
        object.__setattr__(out, "_sorted", self._by())
        return out

    def _through(self, start_ns: int, end_ns: int) -> Timeline:
        """Another window without spans yet: they lie on the right lanes there as well, so they aren't checked again."""
        steps = tuple(s for s in self.steps if s.end_ns > start_ns and s.start_ns < end_ns)
        return Timeline(self.lanes, (), (start_ns, end_ns), self.label, steps, self.losses)

    def step(self, k: int) -> Timeline:
        """The timeline of step `k` alone; negative numbers count from the end."""
        if not -len(self.steps) <= k < len(self.steps):
            raise TimelineError(f"step {k} was asked for, but the timeline has {len(self.steps)} steps")
        return self.looked_at(self.steps[k].start_ns, self.steps[k].end_ns)


def covered_ns(spans: Iterable[Span], window_ns: tuple[int, int]) -> int:
    """Nanoseconds of the window during which at least one of `spans` was running."""
    lo, hi = window_ns
    total, reach = 0, lo
    for span in sorted(spans, key=attrgetter("start_ns")):
        end = span.end_ns
        if end > reach:
            start = max(span.start_ns, reach)
            if start >= hi:
                break
            reach = min(end, hi)
            total += reach - start
    return total
