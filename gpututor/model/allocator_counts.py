"""What a caching allocator counts: now, at most, and in all, under the names that CUDA's statistics have.

Requests and returns are only written into a log, since they come with every tensor; here it is counted up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

LOG_COLUMNS = 5
"""Of each request or return: change of the bytes in use, of the bytes asked for, of the number and bytes of rests
(cached pieces of segments that are in use elsewhere), and of the bytes given back that wait for a stream."""


@dataclass(slots=True)
class Counts:
    """Counts of one pool, or of both together. Sizes are bytes."""

    n: int = 0  # requests in use
    n_peak: int = 0
    n_total: int = 0
    size: int = 0
    size_peak: int = 0
    size_total: int = 0
    asked: int = 0  # before rounding
    asked_peak: int = 0
    asked_total: int = 0
    rest_n: int = 0
    rest_n_peak: int = 0
    rest_n_total: int = 0
    rest: int = 0
    rest_peak: int = 0
    rest_total: int = 0
    segments: int = 0
    segments_peak: int = 0
    segments_total: int = 0
    reserved: int = 0
    reserved_peak: int = 0
    reserved_total: int = 0
    active_n: int = 0  # in use, or given back while other streams still work on it
    active_n_peak: int = 0
    active_n_total: int = 0
    active: int = 0
    active_peak: int = 0
    active_total: int = 0
    kept: dict[str, int] = field(default_factory=dict)  # what was in use when the totals last became 0

    def reserve(self, size: int) -> None:
        """A segment came from the driver."""
        self.segments += 1
        self.segments_total += 1
        self.segments_peak = max(self.segments_peak, self.segments)
        self.reserved += size
        self.reserved_total += size
        self.reserved_peak = max(self.reserved_peak, self.reserved)

    def release(self, size: int) -> None:
        """A segment went back to the driver."""
        self.segments -= 1
        self.reserved -= size

    def add(self, name: str, changes: Any) -> None:
        """Follow one quantity through its changes, an array in the order in which they came."""
        now, start = changes.cumsum(), getattr(self, name)
        setattr(self, f"{name}_peak", max(getattr(self, f"{name}_peak"), start + int(now.max(initial=0))))
        setattr(self, f"{name}_total", getattr(self, f"{name}_total") + int(changes[changes > 0].sum()))
        setattr(self, name, start + int(now[-1]))

    def reset_peaks(self) -> None:
        """Let every peak begin anew from what is in use."""
        for f in fields(self):
            if f.name.endswith("_peak"):
                setattr(self, f.name, getattr(self, f.name.removesuffix("_peak")))

    def reset_totals(self) -> None:
        """Let every total begin anew from 0."""
        for f in fields(self):
            if f.name.endswith("_total"):
                now = f.name.removesuffix("_total")
                self.kept[now] = getattr(self, now)
                setattr(self, f.name, 0)

    def by_name(self) -> dict[str, tuple[int, int, int, int]]:
        """Now, at most, taken in all and given back in all, for each of CUDA's quantities."""

        def four(name: str) -> tuple[int, int, int, int]:
            now, total = getattr(self, name), getattr(self, f"{name}_total")
            return now, getattr(self, f"{name}_peak"), total, self.kept.get(name, 0) + total - now

        return {
            "allocation": four("n"),
            "segment": four("segments"),
            "active": four("active_n"),
            "inactive_split": four("rest_n"),
            "allocated_bytes": four("size"),
            "reserved_bytes": four("reserved"),
            "active_bytes": four("active"),
            "inactive_split_bytes": four("rest"),
            "requested_bytes": four("asked"),
        }


def count(log: list[int], small: Counts, large: Counts, both: Counts, small_bytes: int = 1 << 20) -> None:
    """Count a log up: pieces of at most `small_bytes` belong to the small pool, others to the large one."""
    if not log:
        return
    import numpy as np

    rows = np.array(log, dtype=np.int64).reshape(-1, LOG_COLUMNS)
    size, asked, rest_n, rest, waiting = rows.T
    is_small = np.maximum(abs(size), abs(waiting)) <= small_bytes
    for counts, mine in ((both, None), (small, is_small), (large, ~is_small)):
        changes = {
            "size": size,
            "n": np.sign(size),
            "asked": asked,
            "rest_n": rest_n,
            "rest": rest,
            "active": size + waiting,
            "active_n": np.sign(size) + np.sign(waiting),
        }
        for name, values in changes.items():
            found = values if mine is None else values[mine]
            if len(found):
                counts.add(name, found)
