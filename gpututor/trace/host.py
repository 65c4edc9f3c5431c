"""What the threads of the host did, column by column.

A trace has hundreds of thousands of such events, of some hundred names. So what a name means is found out once, and an
event is a place in four lists until it becomes a span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from gpututor.timeline import Activity, Span
from gpututor.trace.categories import Role
from gpututor.trace.on_gpu import GpuEvent
from gpututor.trace.records import Asked
from gpututor.trace.told import Names, Told


class Threads(dict[tuple[object, object], int]):
    """Numbers of threads by pid and tid as they are written, where the same text is the same thread."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[tuple[str, str], int] = {}

    def __missing__(self, place: tuple[object, object]) -> int:
        number = self[place] = self.texts.setdefault((str(place[0]), str(place[1])), len(self.texts))
        return number


class HostEvent(NamedTuple):
    """One event, and its place in the columns."""

    start_ns: int
    end_ns: int
    told: Told
    at: int


@dataclass(slots=True)
class HostEvents:
    """Events in stored order; `thread` is a number of `threads`.

    `call_at` and `call_number` are places and correlations of driver's calls that have one; `asked_at`, `asked` and
    `external` places, shapes and own numbers of operators whose shapes were recorded.
    """

    known: dict[Role, Names] = field(default_factory=lambda: {role: Names(role) for role in Role})
    threads: Threads = field(default_factory=Threads)
    thread: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    end_ns: list[int] = field(default_factory=list)
    call_at: list[int] = field(default_factory=list)
    call_number: list[int] = field(default_factory=list)
    asked_at: list[int] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    external: list[object] = field(default_factory=list)
    caller: dict[int, int] = field(default_factory=dict)  # numbers given to what had none, by place

    def add_number(self, number: object) -> None:
        """The correlation of the call that is added next."""
        if type(number) is int and number > 0:
            self.call_at.append(len(self.told))
            self.call_number.append(number)

    def numbers_of(self, calls: re.Pattern[str]) -> frozenset[int]:
        """Launch numbers of the driver's calls whose names fit."""
        names = {name for name in self.known[Role.CALL] if calls.match(name)}
        if not names:
            return frozenset()
        numbered = zip(self.call_at, self.call_number, strict=True)
        return frozenset(number for k, number in numbered if self.told[k].name in names)

    def by_thread(self, *roles: Role) -> Iterator[list[HostEvent]]:
        """Events of these roles, thread by thread, by their start and the longer one first."""
        threads: list[list[HostEvent]] = [[] for _ in self.threads.texts]
        rows = zip(self.thread, self.start_ns, self.end_ns, self.told, range(len(self.told)), strict=True)
        for thread, start, end, told, k in rows:
            if told.role in roles:
                threads[thread].append(HostEvent(start, end, told, k))
        for events in threads:
            events.sort(key=attrgetter("end_ns"), reverse=True)
            events.sort(key=attrgetter("start_ns"))
            yield events

    def numbers(self) -> Iterator[tuple[int, int]]:
        """Place and launch number of every event that has one."""
        yield from zip(self.call_at, self.call_number, strict=True)
        yield from self.caller.items()

    def without(self, unwanted: set[int]) -> HostEvents:
        """The events at all other places."""
        kept = [k for k in range(len(self.told)) if k not in unwanted]
        now = {k: at for at, k in enumerate(kept)}
        calls = [(now[k], number) for k, number in zip(self.call_at, self.call_number, strict=True) if k in now]
        rows = zip(self.asked_at, self.asked, self.external, strict=True)
        told = [(now[k], asked, number) for k, asked, number in rows if k in now]
        return HostEvents(
            self.known,
            self.threads,
            [self.thread[k] for k in kept],
            [self.told[k] for k in kept],
            [self.start_ns[k] for k in kept],
            [self.end_ns[k] for k in kept],
            [k for k, _ in calls],
            [number for _, number in calls],
            [k for k, _, _ in told],
            [asked for _, asked, _ in told],
            [number for _, _, number in told],
        )

    def spans(self, started: Mapping[int, GpuEvent], base_ns: int) -> list[Span]:
        """The spans, on lanes with the numbers of their threads; times count from `base_ns`.

        `started` is the work on the GPU by launch number.
        """
        activities = [told.activity or Activity.DISPATCH for told in self.told]  # without one they aren't kept
        launches: list[int | None] = [None] * len(activities)
        for k, number in self.numbers():
            work = started.get(number)
            if work is not None:
                launches[k] = number
                if self.told[k].role is Role.CALL and activities[k] is not Activity.SYNC:
                    activities[k] = _doing(self.end_ns[k], work)
        starts = [ns - base_ns for ns in self.start_ns]
        ends = [ns - base_ns for ns in self.end_ns]
        return list(map(Span, self.thread, activities, [told.name for told in self.told], starts, ends, launches))


def _doing(call_end_ns: int, work: GpuEvent) -> Activity:
    """What a call does to the host that started this: it copies, or launches.

    A copy call held the host if it came back no sooner than the copy was done, unless the memory
    was pinned: then the copy was short and the call didn't wait for it.
    """
    waited = work.role is Role.COPY and call_end_ns >= work.end_ns and "Pinned" not in work.name
    return Activity.COPY_CALL if waited else Activity.LAUNCH
