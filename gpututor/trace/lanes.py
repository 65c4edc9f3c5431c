"""Rows of the timeline for threads, streams and copy engines of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpututor.timeline import Activity, Lane, LaneKind


@dataclass(slots=True)
class Lanes:
    """Rows of the timeline: threads first, then those of the GPUs as spans need them."""

    rows: list[Lane] = field(default_factory=list)
    _index: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add_threads(self, threads: Iterable[tuple[str, str]], names: Mapping[tuple[str, str], str]) -> None:
        """Lanes of these threads, in their order; a thread is told by the texts of its pid and tid."""
        for thread in threads:
            self.rows.append(Lane(LaneKind.HOST, names.get(thread) or f"thread {thread[1]}"))

    def stream(self, device: int | None, name: str) -> int:
        """The lane of a GPU stream."""
        lane = self._index.get((device, name))
        return self._add((device, name), Lane(LaneKind.STREAM, f"stream {name}", device)) if lane is None else lane

    def copies(self, device: int | None, activity: Activity) -> int:
        """The lane of one direction of copies, or of transfers between GPUs."""
        lane = self._index.get((device, activity))
        if lane is not None:
            return lane
        names = {
            Activity.COPY_TO_GPU: (LaneKind.COPY, "copies to the GPU"),
            Activity.COPY_TO_HOST: (LaneKind.COPY, "copies to the host"),
            Activity.TRANSFER: (LaneKind.LINK, "transfers between GPUs"),
        }
        kind, name = names[activity]
        return self._add((device, activity), Lane(kind, name, device))

    def _add(self, key: tuple[object, ...], lane: Lane) -> int:
        self._index[key] = len(self.rows)
        self.rows.append(lane)
        return self._index[key]
