"""Trace events in our terms: role, place and exact times; damaged ones are left out and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from gpututor.errors import TimelineError
from gpututor.trace.categories import ANOTHER_ACCELERATOR, ARROWS, ON_GPU, ROLE_OF_CATEGORY, Role
from gpututor.trace.exact import FURTHEST_NS, whole_ns
from gpututor.trace.records import NO_ARGS, Args, Asked, Record, record_of

LONG_BEFORE_NS = 3_600 * 10**9
"""Our limit: a record that stands at 0 while all others begin an hour later or more has no time of its own."""

FURTHEST_US = FURTHEST_NS // 1000
SPEAKING = ON_GPU | {Role.CALL}  # whose arguments say something that we read
MOST_EVENTS = 12_000_000
"""Our limit, against files made to fill the memory: they take some 5 GB. A traced step has thousands."""


class Event(msgspec.Struct, gc=False):
    """One complete event. `correlation` is the launch number, shared by a call and what it started, if it has one.

    `asked` are an operator's shapes where they were recorded.
    """

    role: Role
    name: str
    start_ns: int
    end_ns: int
    pid: Any
    tid: Any
    args: Args
    correlation: int | None = None
    asked: Asked | None = None

    @property
    def place(self) -> tuple[str, str]:
        """Device and stream of GPU work."""
        device, stream = self.args.device, self.args.stream
        return str(self.pid if device is None else device), str(self.tid if stream is None else stream)


@dataclass(slots=True)
class Events:
    """What a trace holds, sorted out."""

    events: list[Event] = field(default_factory=list)
    thread_names: dict[tuple[str, str], str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)  # each text once, however often it is written
    arrows: list[Record] = field(default_factory=list)
    asked: dict[tuple[str, bytes, bytes, bytes, bytes], Asked] = field(default_factory=dict)
    another_accelerator: str | None = None

    def losses(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return tuple(f"{what}: {n:,}" for what, n in self.dropped.items())


def sorted_out(raw: Iterable[object]) -> Events:
    """The events that mean something to us, in stored order.

    Raises:
        TimelineError: there are more than `MOST_EVENTS`.
    """
    out = Events()
    names = out.names
    for item in raw:
        if type(item) is Record:
            record = item
        elif isinstance(item, Mapping):
            record = record_of(item)
        else:
            out.dropped["records that are no trace event left out"] += 1
            continue
        if record.ph == "X":
            _complete(out, record, names)
        elif record.ph == "M" and record.name == "thread_name" and record.args and isinstance(record.args.name, str):
            out.thread_names[str(record.pid), str(record.tid)] = record.args.name
        elif type(record.name) is str and record.name in ARROWS:
            out.arrows.append(record)
    out.events = _without_doubles(_with_times(out.events, out.dropped), out.dropped)
    return out


def _complete(out: Events, record: Record, names: dict[str, str]) -> None:
    category, name = record.cat, record.name
    role = ROLE_OF_CATEGORY.get(category) if type(category) is str else None
    if role is None:
        for start, words in ANOTHER_ACCELERATOR.items():
            if isinstance(category, str) and category.startswith(start):
                out.another_accelerator = words
        return
    at, long = record.ts, record.dur
    start_ns = 1000 * at if type(at) is int and abs(at) < FURTHEST_US else whole_ns(at)
    long_ns = 1000 * long if type(long) is int and abs(long) < FURTHEST_US else whole_ns(long)
    if start_ns is None or long_ns is None:
        out.dropped[f"{role.value} records without a usable time left out"] += 1
    elif long_ns < 0:
        out.dropped[f"{role.value} records that last less than nothing left out"] += 1
    elif len(out.events) >= MOST_EVENTS:
        raise TimelineError(f"there are more than {MOST_EVENTS:,} events in this trace; record fewer steps")
    else:
        name = names.setdefault(name, name) if type(name) is str else "(no name)"
        args, number = record.args, None
        if args is None:
            args = NO_ARGS
        elif role in SPEAKING:
            number = args.correlation
            number = number if type(number) is int and number > 0 else None
        elif args.dims and role is Role.OPERATOR:
            event = Event(role, name, start_ns, start_ns + long_ns, record.pid, record.tid, NO_ARGS)
            _with_shapes(event, args, out.asked)
            out.events.append(event)
            return
        else:
            args = NO_ARGS
        out.events.append(Event(role, name, start_ns, start_ns + long_ns, record.pid, record.tid, args, number))


def _with_shapes(event: Event, args: Args, known: dict[tuple[str, bytes, bytes, bytes, bytes], Asked]) -> None:
    """Keep an operator's number and its shapes, the same ones once."""
    event.args = Args(external=args.external)
    texts: tuple[object, ...] = (args.dims, args.types, args.strides, args.concrete)
    dims, types, strides, concrete = (bytes(t) if type(t) is msgspec.Raw else _text(t) for t in texts)
    key = (event.name, dims, types, strides, concrete)
    event.asked = known.get(key) or known.setdefault(key, Asked(*key))


def _text(value: object) -> bytes:
    """What was loaded by somebody else, as text again."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return b"?"


def _with_times(events: list[Event], dropped: Counter[str]) -> list[Event]:
    """Without records at time 0 where all others are much later."""
    later = min((e.start_ns for e in events if e.start_ns > 0), default=0)
    if later < LONG_BEFORE_NS:
        return events
    kept = [e for e in events if e.start_ns > 0]
    if len(kept) < len(events):
        dropped["records at time 0, where the profiler lost the time, left out"] = len(events) - len(kept)
    return kept


def _without_doubles(events: list[Event], dropped: Counter[str]) -> list[Event]:
    """GPU work that is written twice counts once."""
    seen: set[tuple[object, ...]] = set()
    kept = []
    for e in events:
        if e.role in ON_GPU:
            key = (e.name, e.start_ns, e.end_ns, e.place, e.correlation)
            if key in seen:
                dropped["GPU records written twice counted once"] += 1
                continue
            seen.add(key)
        kept.append(e)
    return kept


def in_stream_order(events: Sequence[Event], dropped: Counter[str]) -> None:
    """Cut kernels that would still run when the next one of their stream has long begun.

    A stream runs its kernels one after the other, so such a duration is damage
    (a wrapped or missing end); up to 1 ms is let pass as clock jitter or early start.
    """
    streams: dict[tuple[str, str], list[Event]] = {}
    for e in events:
        if e.role is Role.KERNEL:
            streams.setdefault(e.place, []).append(e)
    for kernels in streams.values():
        kernels.sort(key=lambda e: e.start_ns)
        for now, after in pairwise(kernels):
            if now.end_ns > after.end_ns + 1_000_000:
                now.end_ns = max(now.start_ns, after.start_ns)
                dropped["kernels that outlast the next one of their stream cut at its start"] += 1
