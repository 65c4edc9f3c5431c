"""A timeline as a few bands from top to bottom: host, links, copies, GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpututor.charts.segments import Segment, clipped, fitting, flattened, with_idle
from gpututor.ledger import Piece
from gpututor.timeline import LaneKind, Span, Timeline, covered_ns

Idle = Sequence[Piece]
"""What `ledger.waits` gives: the stretches in which no kernel computes, each with its account."""

GPU_HEIGHT, HOST_HEIGHT, THIN_HEIGHT = 0.8, 0.7, 0.25
LOW_SHARE = 0.33  # of a GPU band's height: how tall a bar of waiting is
ABOVE, BELOW = 0.45, 0.1  # room for the band's name, and under the lowest band


@dataclass(frozen=True, slots=True)
class Band:
    """A row of the chart; `bottom` and `top` in the chart's own units, growing upwards."""

    title: str
    kind: LaneKind
    bottom: float
    top: float
    segments: tuple[Segment, ...]

    def ceiling(self, segment: Segment) -> float:
        """The upper edge of one segment: waiting lies low, so that the picture reads without colour."""
        if self.kind is LaneKind.STREAM and segment.activity is None:
            return self.bottom + LOW_SHARE * (self.top - self.bottom)
        return self.top


def bands(timeline: Timeline, idle: Idle, window_ns: tuple[int, int], pixel_ns: float, most: int) -> list[Band]:
    """The bands of what lies in a window, the GPU's lowest, with at most `most` segments in all."""
    rows = [(title, kind, clipped(all_of_it, window_ns)) for title, kind, all_of_it in _rows(Drawn(timeline, idle))]
    out: list[Band] = []
    bottom = BELOW
    thin = fitting([segments for _, _, segments in rows], pixel_ns, most)
    for (title, kind, _), segments in reversed(list(zip(rows, thin, strict=True))):
        height = {LaneKind.STREAM: GPU_HEIGHT, LaneKind.HOST: HOST_HEIGHT}.get(kind, THIN_HEIGHT)
        out.append(Band(title, kind, round(bottom, 3), round(bottom + height, 3), tuple(segments)))
        bottom += height + ABOVE
    return out[::-1]


class Drawn:
    """A timeline and its waits as a cache tells them apart: by what they are, not by what is in them."""

    __slots__ = ("idle", "timeline")

    def __init__(self, timeline: Timeline, idle: Idle) -> None:
        self.timeline, self.idle = timeline, idle

    def __hash__(self) -> int:
        return hash((id(self.timeline), id(self.idle)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawn) and self.timeline is other.timeline and self.idle is other.idle


@lru_cache(maxsize=8)  # a reader moves a window over a timeline, and only the window changes
def _rows(drawn: Drawn) -> list[tuple[str, LaneKind, list[Segment]]]:
    """Title, kind and segments of each band, from top to bottom; lanes that are never used have none."""
    timeline = drawn.timeline
    spans_of: dict[int, list[Span]] = {}
    for span in timeline.spans:
        spans_of.setdefault(span.lane, []).append(span)
    out = []
    idle_left = list(drawn.idle)
    for title, kind, lanes in _groups(timeline, spans_of):
        segments = flattened([s for k in lanes for s in spans_of[k]])
        if kind is LaneKind.STREAM:
            segments = with_idle(segments, idle_left, timeline.window_ns)
            idle_left = []  # the ledger looks at one GPU; waits are drawn once
        out.append((title, kind, segments))
    return out


def _groups(timeline: Timeline, spans_of: dict[int, list[Span]]) -> list[tuple[str, LaneKind, list[int]]]:
    """Which lanes share a band: host threads that take turns, all copy engines and all streams of a GPU, all links."""
    used = {kind: [k for k in spans_of if timeline.lanes[k].kind is kind] for kind in LaneKind}
    hosts = sorted(used[LaneKind.HOST])
    groups: list[tuple[str, LaneKind, list[int]]] = []
    if take_turns([spans_of[k] for k in hosts], timeline.window_ns):
        groups += [("Host", LaneKind.HOST, hosts)] if hosts else []
    else:
        groups += [(f"Host, {timeline.lanes[k].name}", LaneKind.HOST, [k]) for k in hosts]
    if used[LaneKind.LINK]:
        groups.append(("Links", LaneKind.LINK, sorted(used[LaneKind.LINK])))
    devices = sorted({lane.device or 0 for lane in timeline.lanes if lane.kind is not LaneKind.HOST} or {0})
    for device in devices:
        number = f" {device}" if len(devices) > 1 else ""
        copies = [k for k in used[LaneKind.COPY] if (timeline.lanes[k].device or 0) == device]
        streams = [k for k in used[LaneKind.STREAM] if (timeline.lanes[k].device or 0) == device]
        if copies:
            groups.append((f"Copy{number}", LaneKind.COPY, sorted(copies)))
        groups.append((f"GPU{number}", LaneKind.STREAM, sorted(streams)))
    return groups


def take_turns(lanes: Iterable[Sequence[Span]], window_ns: tuple[int, int]) -> bool:
    """Whether no two of these lanes are ever occupied at the same time."""
    lanes = list(lanes)
    apart_ns = sum(covered_ns(lane, window_ns) for lane in lanes)
    return apart_ns == covered_ns([span for lane in lanes for span in lane], window_ns)
