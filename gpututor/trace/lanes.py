"""Rows of the timeline for threads, streams and copy engines of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpututor.timeline import Activity, Lane, LaneKind
from gpututor.trace.events import Event


@dataclass(slots=True)
class Lanes:
    """Rows of the timeline, made as spans need them."""

    thread_names: Mapping[tuple[str, str], str]
    rows: list[Lane] = field(default_factory=list)
    _index: dict[tuple[object, ...], int] = field(default_factory=dict)
    _threads: dict[tuple[int, int], int] = field(default_factory=dict)  # those with plain numbers, looked up quicker

    def host(self, e: Event) -> int:
        """The lane of a host thread."""
        plain = (e.pid, e.tid) if type(e.pid) is int and type(e.tid) is int else None
        known = None if plain is None else self._threads.get(plain)
        if known is not None:
            return known
        key = ("host", str(e.pid), str(e.tid))
        if key not in self._index:
            name = self.thread_names.get((key[1], key[2])) or f"thread {key[2]}"
            self._add(key, Lane(LaneKind.HOST, name))
        if plain is not None:
            self._threads[plain] = self._index[key]
        return self._index[key]

    def stream(self, e: Event) -> int:
        """The lane of a GPU stream."""
        device, stream = device_of(e), e.args.stream
        number = str(e.tid if stream is None else stream).removeprefix("stream ")
        key = ("stream", device, number)
        if key not in self._index:
            self._add(key, Lane(LaneKind.STREAM, f"stream {number}", device))
        return self._index[key]

    def copies(self, e: Event, activity: Activity) -> int:
        """The lane of one direction of copies, or of transfers between GPUs."""
        device = device_of(e)
        key = ("copies", device, activity)
        if key not in self._index:
            names = {
                Activity.COPY_TO_GPU: (LaneKind.COPY, "copies to the GPU"),
                Activity.COPY_TO_HOST: (LaneKind.COPY, "copies to the host"),
                Activity.TRANSFER: (LaneKind.LINK, "transfers between GPUs"),
            }
            kind, name = names[activity]
            self._add(key, Lane(kind, name, device))
        return self._index[key]

    def _add(self, key: tuple[object, ...], lane: Lane) -> None:
        self._index[key] = len(self.rows)
        self.rows.append(lane)


def device_of(e: Event) -> int | None:
    """The GPU's index, by the record's own word or else its process number, which Kineto uses for it."""
    for number in (e.args.device, e.pid):
        if type(number) is int and 0 <= number < 1024:
            return number
    return None
