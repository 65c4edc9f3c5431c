"""Work on GPUs as a trace holds it, and the spans that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from gpututor.timeline import Activity, KernelWork, Span
from gpututor.trace.categories import COLLECTIVE, Role, copy_activity
from gpututor.trace.graphs import is_of_graph
from gpututor.trace.kernels import Part, Sm, work_of
from gpututor.trace.lanes import Lanes
from gpututor.trace.own import work_in
from gpututor.trace.records import Args


class Place(NamedTuple):
    """A stream: the number of its GPU, its name, and what the record itself calls the GPU."""

    device: int | None
    stream: str
    told: str


class GpuEvent(msgspec.Struct, gc=False):
    """A kernel, copy or memset. `correlation` is the launch number that it shares with the call that started it."""

    role: Role
    name: str
    start_ns: int
    end_ns: int
    place: Place
    pid: Any
    tid: Any
    args: Args
    correlation: int | None = None


def place_of(pid: object, tid: object, device: object, stream: object) -> Place:
    """GPU and stream: by the record's own word, or else its process and thread, which Kineto uses for them."""
    number = next((n for n in (device, pid) if type(n) is int and 0 <= n < 1024), None)
    name = str(tid if stream is None else stream).removeprefix("stream ")
    return Place(number, name, str(pid if device is None else device))


@dataclass(slots=True)
class GpuSpans:
    """Makes spans of a trace's work. What kernels that are told alike do is worked out once.

    `sms` holds what the trace says of each GPU, `parts` the kernels' FLOP by `id` of their event, and `graphs` launch
    numbers of graphs.
    """

    lanes: Lanes
    sms: Mapping[int | None, Sm]
    parts: Mapping[int, Part]
    graphs: frozenset[int]
    base_ns: int
    _streams: dict[Place, int] = field(default_factory=dict)
    _works: dict[tuple[object, ...], tuple[Activity, KernelWork]] = field(default_factory=dict)

    def spans(self, events: Sequence[GpuEvent]) -> list[Span]:
        """The spans, in the order of the events; times count from `base_ns`."""
        return [self._kernel(e) if e.role is Role.KERNEL else self._other(e) for e in events]

    def _kernel(self, e: GpuEvent) -> Span:
        args, device = e.args, e.place.device
        part, from_graph = self.parts.get(id(e)), is_of_graph(e.correlation, args, self.graphs)
        told = "" if args.ours is None else str(args.ours)
        key: tuple[object, ...] = ()
        try:
            sizes = (*(args.grid or ()), None, *(args.block or ()), None, args.registers, args.smem_bytes)
            key = (e.name, device, sizes, from_graph, part, told, args.collective, args.group, args.group_ranks)
            known = self._works.get(key)
        except TypeError:  # a number where a list belongs, or a list in place of a number
            key, known = (), None
        if known is None:
            talks = bool(COLLECTIVE.search(e.name)) or (isinstance(args.collective, str) and args.collective != "")
            work = work_in(args) or work_of(e.name, args, self.sms.get(device, Sm()), part, from_graph)
            known = Activity.COLLECTIVE if talks else Activity.KERNEL, work
            if key:
                self._works[key] = known
        lane = self._streams.get(e.place)
        if lane is None:
            lane = self._streams[e.place] = self.lanes.stream(device, e.place.stream)
        return Span(lane, known[0], e.name, e.start_ns - self.base_ns, e.end_ns - self.base_ns, e.correlation, known[1])

    def _other(self, e: GpuEvent) -> Span:
        copied = e.role is Role.COPY
        activity = copy_activity(e.name, e.args.kind) if copied else Activity.MEMSET
        on_stream = activity in (Activity.MEMSET, Activity.COPY_ON_GPU)
        lane = (
            self.lanes.stream(e.place.device, e.place.stream)
            if on_stream
            else self.lanes.copies(e.place.device, activity)
        )
        n_bytes, from_graph = e.args.n_bytes, is_of_graph(e.correlation, e.args, self.graphs)
        moved_bytes = float(n_bytes) if type(n_bytes) is int and n_bytes >= 0 else None
        work = None
        if moved_bytes is not None or from_graph:
            work = KernelWork("copy" if copied else "memset", None, moved_bytes, from_graph=from_graph)
        return Span(lane, activity, e.name, e.start_ns - self.base_ns, e.end_ns - self.base_ns, e.correlation, work)
