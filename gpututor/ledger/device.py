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
    inside = [k for k, s in enumerate(spans) if s.end_ns > lo and s.start_ns < hi and s.end_ns > s.start_ns]
    inside.sort(key=lambda k: spans[k].start_ns)
    out: list[Stretch] = []
    at, first = lo, 0
    while first < len(inside):
        k = inside[first]
        start, end = max(spans[k].start_ns, lo), spans[k].end_ns
        last = first + 1
        while last < len(inside) and (after := spans[inside[last]]).start_ns < end:
            end, last = max(end, after.end_ns), last + 1
        if start > at:
            out.append(Stretch(at, start, State.IDLE))
        at = min(end, hi)
        state = STATE_OF[spans[k].activity]
        if last - first > 1:
            for each in _overlapping(spans, inside[first:last], (start, at)):
                _add(out, each)
        elif state is State.COMPUTING:
            out.append(Stretch(start, at, state, (k,)))
        else:
            _add(out, Stretch(start, at, state))
        first = last
    if hi > at:
        out.append(Stretch(at, hi, State.IDLE))
    return out


def _overlapping(spans: Sequence[Span], group: Sequence[int], window_ns: tuple[int, int]) -> list[Stretch]:
    """The same for a group of spans, given by their places, of which one at least runs at every instant."""
    lo, hi = window_ns
    edges = [(max(spans[k].start_ns, lo), k, True) for k in group]
    edges += [(min(spans[k].end_ns, hi), k, False) for k in group]
    edges.sort()
    active: dict[int, None] = {}
    n_open = [0] * len(State)
    out: list[Stretch] = []
    at = lo
    for when, k, begins in edges:
        if when > at:
            state = State.COMPUTING if active else _state(n_open)
            _add(out, Stretch(at, when, state, tuple(active) if len(active) < 2 else tuple(sorted(active))))
            at = when
        state = STATE_OF[spans[k].activity]
        if state is not State.COMPUTING:
            n_open[state] += 1 if begins else -1
        elif begins:
            active[k] = None
        else:
            del active[k]
    return out


def _add(out: list[Stretch], new: Stretch) -> None:
    """Append, joining neighbours that differ in nothing."""
    last = out[-1] if out else None
    if last is not None and last.state is new.state and last.running == new.running:
        out[-1] = Stretch(last.start_ns, new.end_ns, new.state, new.running)
    else:
        out.append(new)


def covered_by(spans: Sequence[Span], window_ns: tuple[int, int], counts: Callable[[Span], bool]) -> int:
    """Nanoseconds of the window with at least one span for which `counts` holds."""
    return covered_ns([s for s in spans if counts(s)], window_ns)


def _state(n_open: list[int]) -> State:
    """What the GPU does while no kernel computes."""
    for state in (State.COMMUNICATING, State.COPYING_IN, State.COPYING_OUT):
        if n_open[state]:
            return state
    return State.IDLE
