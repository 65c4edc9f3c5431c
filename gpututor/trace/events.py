"""The records of a trace in our terms: role, place and exact times; damaged ones are left out and counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice, pairwise

import msgspec

from gpututor.errors import TimelineError
from gpututor.trace.categories import ANOTHER_ACCELERATOR, ARROWS, ON_GPU, ROLE_OF_CATEGORY, Role
from gpututor.trace.exact import FURTHEST_NS, Lengths, whole_ns
from gpututor.trace.host import HostEvents
from gpututor.trace.on_gpu import GpuEvent, Place, place_of
from gpututor.trace.records import NO_ARGS, UNSAID, Args, Asked, Record, record_of

LONG_BEFORE_NS = 3_600 * 10**9
"""Our limit: a record that stands at 0 while all others begin an hour later or more has no time of its own."""

MOST_EVENTS = 12_000_000
"""Our limit, against files made to fill the memory: they take some 5 GB. A traced step has thousands."""

AT_A_TIME = 512
"""Our choice: so many records stay in the processor's cache while they are sorted."""


Shapes = tuple[bytes, bytes, bytes, bytes]
"""The texts that stand for an operator's arguments."""


@dataclass(slots=True)
class Mark:
    """What a program marked; `step` is a step's number, None for what says nothing to us."""

    step: int | None
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Events:
    """What a trace holds, sorted out, each part in stored order."""

    host: HostEvents = field(default_factory=HostEvents)
    gpu: list[GpuEvent] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    arrows: list[Record] = field(default_factory=list)
    thread_names: dict[tuple[str, str], str] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    another_accelerator: str | None = None
    _places: dict[tuple[object, ...], Place] = field(default_factory=dict)
    _lengths: Lengths = field(default_factory=Lengths)
    _names: dict[str, str] = field(default_factory=dict)  # of work, each once, however often it is written
    _asked: defaultdict[str, dict[Shapes, Asked]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def n_kept(self) -> int:
        """How many records are in memory in some form."""
        kinds: tuple[Sized, ...] = (self.host.told, self.gpu, self.marks, self.arrows, self.thread_names)
        return sum(len(each) for each in kinds)

    def losses(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return tuple(f"{what}: {n:,}" for what, n in self.dropped.items())

    def starts_ns(self) -> list[int]:
        """When each of them begins."""
        return [*self.host.start_ns, *(e.start_ns for e in self.gpu), *(mark.start_ns for mark in self.marks)]


def sorted_out(raw: Iterable[object]) -> Events:
    """The events that mean something to us.

    Raises:
        TimelineError: there are more than `MOST_EVENTS`.
    """
    out = Events()
    records = iter(raw)
    while some := list(islice(records, AT_A_TIME)):
        _sort(out, some)
        if out.n_kept > MOST_EVENTS:
            raise TimelineError(f"there are more than {MOST_EVENTS:,} events in this trace; record fewer steps")
    _without_lost_times(out)
    _without_doubles(out)
    return out


def _sort(out: Events, some: Sequence[object]) -> None:
    """Put records where they belong. A trace has hundreds of thousands, so most of it is done in place."""
    host, threads, asked, lengths = out.host, out.host.threads, out._asked, out._lengths
    kinds = {category: (role, host.known[role], role in ON_GPU) for category, role in ROLE_OF_CATEGORY.items()}
    add_thread, add_told = host.thread.append, host.told.append
    add_start, add_end = host.start_ns.append, host.end_ns.append
    for item in some:
        record = item if type(item) is Record else _record(out, item)
        category = record.cat
        kind = kinds.get(category) if record.ph == "X" and type(category) is str else None
        if kind is None:
            _beside(out, record)
            continue
        role, known, on_gpu = kind
        at, long = record.ts, record.dur
        start_ns = 1000 * at if type(at) is int else whole_ns(at)
        long_ns = 1000 * long if type(long) is int else lengths[long] if type(long) is str else whole_ns(long)
        if start_ns is None or long_ns is None or not -FURTHEST_NS < start_ns <= start_ns + long_ns < FURTHEST_NS:
            _count(out, role, start_ns, long_ns)
            continue
        if on_gpu:
            _add_work(out, role, start_ns, start_ns + long_ns, record)
            continue
        name = record.name
        told = known[name if type(name) is str else "(no name)"]
        if told.activity is None:
            out.marks.append(Mark(told.step, start_ns, start_ns + long_ns))
            continue
        try:
            thread = threads[record.pid, record.tid]
        except TypeError:  # a list or an object where a number belongs
            thread = threads[str(record.pid), str(record.tid)]
        args = record.args
        if args is not None:
            if role is Role.CALL:
                host.add_number(args.correlation)
            elif role is Role.OPERATOR and args.dims:
                _add_shapes(host, told.name, args, asked[told.name])
        add_thread(thread)
        add_told(told)
        add_start(start_ns)
        add_end(start_ns + long_ns)


def _count(out: Events, role: Role, start_ns: int | None, long_ns: int | None) -> None:
    """A record that takes no time that could be."""
    backwards = start_ns is not None and long_ns is not None and -FURTHEST_NS < long_ns < 0
    when = "that last less than nothing" if backwards else "without a usable time"
    out.dropped[f"{role.value} records {when} left out"] += 1


def _record(out: Events, item: object) -> Record:
    """What somebody else loaded; where it is no record, an empty one, and it is counted."""
    if isinstance(item, Mapping):
        return record_of(item)
    out.dropped["records that are no trace event left out"] += 1
    return Record()


def _beside(out: Events, record: Record) -> None:
    """What isn't an event of ours with a duration: a thread's name, one end of an arrow, or of another accelerator."""
    name, category = record.name, record.cat
    if record.ph == "X":
        for start, words in ANOTHER_ACCELERATOR.items():
            if isinstance(category, str) and category.startswith(start):
                out.another_accelerator = words
    elif type(name) is str and name in ARROWS:
        out.arrows.append(record)
    elif record.ph == "M" and name == "thread_name" and record.args and isinstance(record.args.name, str):
        out.thread_names[str(record.pid), str(record.tid)] = record.args.name


def _add_work(out: Events, role: Role, start_ns: int, end_ns: int, record: Record) -> None:
    args = NO_ARGS if record.args is None else record.args
    name = record.name if type(record.name) is str else "(no name)"
    number = args.correlation
    key = (record.pid, record.tid, args.device, args.stream)
    try:
        place = out._places.get(key) or out._places.setdefault(key, place_of(*key))
    except TypeError:
        place = place_of(*key)
    correlation = number if type(number) is int and number > 0 else None
    name = out._names.setdefault(name, name)
    out.gpu.append(GpuEvent(role, name, start_ns, end_ns, place, record.pid, record.tid, args, correlation))


def _add_shapes(host: HostEvents, name: str, args: Args, known: dict[Shapes, Asked]) -> None:
    """Keep the shapes, the same ones once, and the own number of the operator that is added next."""
    dims: object = args.dims
    if type(dims) is not msgspec.Raw:  # not from a file
        key = (_text(args.dims), _text(args.types), _text(args.strides), _text(args.concrete))
    elif args.strides is UNSAID and args.concrete is UNSAID:  # before torch 2.0
        key = (bytes(dims), bytes(args.types), b"", b"")
    else:
        key = (bytes(dims), bytes(args.types), bytes(args.strides), bytes(args.concrete))
    asked = known.get(key)
    if asked is None:
        asked = known[key] = Asked(name, *key)
    host.asked_at.append(len(host.told))
    host.asked.append(asked)
    host.external.append(args.external)


def _text(value: object) -> bytes:
    """What was loaded by somebody else, as text again."""
    if type(value) is msgspec.Raw:  # where nothing is said
        return bytes(value)
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return b"?"


def _without_lost_times(out: Events) -> None:
    """Leave out what begins at time 0 where all others begin much later."""
    starts = out.starts_ns()
    if not starts or min(starts) > 0 or min((ns for ns in starts if ns > 0), default=0) < LONG_BEFORE_NS:
        return
    lost = {k for k, ns in enumerate(out.host.start_ns) if ns <= 0}
    out.host = out.host.without(lost)
    out.gpu = [e for e in out.gpu if e.start_ns > 0]
    out.marks = [mark for mark in out.marks if mark.start_ns > 0]
    n_lost = sum(ns <= 0 for ns in starts)
    out.dropped["records at time 0, where the profiler lost the time, left out"] = n_lost


def _without_doubles(out: Events) -> None:
    """Work that is written twice counts once."""
    at_once = Counter([e.start_ns for e in out.gpu])
    if len(at_once) == len(out.gpu):
        return
    seen: set[tuple[object, ...]] = set()
    kept = []
    for e in out.gpu:
        if at_once[e.start_ns] > 1:
            key = (e.name, e.start_ns, e.end_ns, e.place, e.correlation)
            if key in seen:
                out.dropped["GPU records written twice counted once"] += 1
                continue
            seen.add(key)
        kept.append(e)
    out.gpu = kept


def in_stream_order(events: Sequence[GpuEvent], dropped: Counter[str]) -> None:
    """Cut kernels that would still run when the next one of their stream has long begun.

    A stream runs its kernels one after the other, so such a duration is damage
    (a wrapped or missing end); up to 1 ms is let pass as clock jitter or early start.
    """
    streams: dict[Place, list[GpuEvent]] = {}
    for e in events:
        if e.role is Role.KERNEL:
            streams.setdefault(e.place, []).append(e)
    for kernels in streams.values():
        kernels.sort(key=lambda e: e.start_ns)
        for now, after in pairwise(kernels):
            if now.end_ns > after.end_ns + 1_000_000:
                now.end_ns = max(now.start_ns, after.start_ns)
                dropped["kernels that outlast the next one of their stream cut at its start"] += 1
