"""What one GPU was doing at every instant: computing, in a collective, copying or idle.

Of things that run at the same time the first in that order counts, because taking away the others
would not shorten the step: a copy under a kernel is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

import msgspec

from gpututor.errors import TimelineError
from gpututor.timeline import Activity, LaneKind, Span, Timeline, covered_ns


class State(IntEnum):
    """What the GPU does; the lowest that applies at an instant counts."""

    COMPUTING = 0
    COMMUNICATING = 1
    COPYING_IN = 2
    COPYING_OUT = 3
    IDLE = 4


STATE_OF = {
    Activity.KERNEL: State.COMPUTING,
    Activity.MEMSET: State.COMPUTING,
    # A copy within the GPU's memory keeps that memory busy and stands between kernels like a kernel.
    Activity.COPY_ON_GPU: State.COMPUTING,
    Activity.COLLECTIVE: State.COMMUNICATING,
    Activity.TRANSFER: State.COMMUNICATING,
    Activity.COPY_TO_GPU: State.COPYING_IN,
    Activity.COPY_TO_HOST: State.COPYING_OUT,
}
SHOWN_BY_NVIDIA_SMI = frozenset({Activity.KERNEL, Activity.MEMSET, Activity.COLLECTIVE})
"""Kernels, also those that only wait for other GPUs or fill memory. Source: NVML, `nvmlUtilization_t.gpu`."""


class Stretch(msgspec.Struct, frozen=True, gc=False):
    """Part of the window with one state; `running` are the indices of the computing spans, in stored order."""

    start_ns: int
    end_ns: int
    state: State
    running: tuple[int, ...] = ()


def devices(timeline: Timeline) -> list[int]:
    """Numbers of the GPUs that have spans, in order; lanes without a number belong to every GPU."""
    used = {lane.device for lane, spans in zip(timeline.lanes, timeline.by_lane, strict=True) if spans}
    return sorted(d for d in used if d is not None)


def spans_of(timeline: Timeline, device: int | None) -> list[Span]:
    """The spans on one GPU's streams, copy engines and links, lane by lane.

    Raises:
        TimelineError: the timeline has several GPUs and none was chosen, or lacks the one that was.
    """
    present = devices(timeline)
    if device is None and len(present) > 1:
        names = " and ".join(map(str, present))
        raise TimelineError(f"the timeline has GPUs {names}; a ledger is about one of them, so say device={present[0]}")
    if device is not None and present and device not in present:
        raise TimelineError(f"GPU {device} was asked for, but the timeline has spans of {', '.join(map(str, present))}")
    lanes = zip(timeline.lanes, timeline.by_lane, strict=True)
    own = [
        v for lane, v in lanes if lane.kind is not LaneKind.HOST and (device is None or lane.device in (None, device))
    ]
    return [span for spans in own for span in spans]


def stretches(spans: Sequence[Span], window_ns: tuple[int, int]) -> list[Stretch]:
    """The window cut wherever the GPU's state or its running kernels change; no gaps, no overlap."""
    lo, hi = window_ns
    states = [STATE_OF[span.activity] for span in spans]
    active: dict[int, None] = {}
    n_open = [0] * len(State)
    out: list[Stretch] = []
    began, now = lo, State.IDLE  # of the stretch that isn't over yet
    running: tuple[int, ...] = ()
    at = lo
    for when, index, begins in _edges(spans, lo, hi):
        if when > at:
            state = State.COMPUTING if active else _state(n_open)
            computing = tuple(active) if len(active) < 2 else tuple(sorted(active))
            if state is not now or computing != running:
                if at > began:
                    out.append(Stretch(began, at, now, running))
                began, now, running = at, state, computing
            at = when
        if states[index] is not State.COMPUTING:
            n_open[states[index]] += 1 if begins else -1
        elif begins:
            active[index] = None
        else:
            del active[index]
    if now is State.IDLE:
        at = began
    elif at > began:
        out.append(Stretch(began, at, now, running))
    if hi > at:
        out.append(Stretch(at, hi, State.IDLE))
    return out


def covered_by(spans: Sequence[Span], window_ns: tuple[int, int], counts: Callable[[Span], bool]) -> int:
    """Nanoseconds of the window with at least one span for which `counts` holds."""
    return covered_ns([s for s in spans if counts(s)], window_ns)


def _edges(spans: Sequence[Span], lo: int, hi: int) -> list[tuple[int, int, bool]]:
    """Begin and end of every span that has time in the window, clipped to it, by time."""
    edges: list[tuple[int, int, bool]] = []
    for index, span in enumerate(spans):
        start, end = max(span.start_ns, lo), min(span.end_ns, hi)
        if end > start:
            edges.append((start, index, True))
            edges.append((end, index, False))
    edges.sort()
    return edges


def _state(n_open: list[int]) -> State:
    """What the GPU does while no kernel computes."""
    for state in (State.COMMUNICATING, State.COPYING_IN, State.COPYING_OUT):
        if n_open[state]:
            return state
    return State.IDLE
