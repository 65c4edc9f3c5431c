"""A trace of torch.profiler (Kineto, Chrome format) → `Timeline`.

Copies between host and GPU go on lanes of their own, one for each direction, since they run
on copy engines; copies within the GPU stay on their stream. A host call is tied to what it
started by their correlation number. The window is that of the steps where
the program marked some (`ProfilerStep#k`), else from the first to the last GPU event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpututor.cards import find_card
from gpututor.errors import NoKernels, TimelineError
from gpututor.ledger.interruptions import OVERHEADS, activity_of, interruption
from gpututor.timeline import Activity, KernelWork, Label, Origin, Span, Step, Timeline
from gpututor.trace.categories import (
    COLLECTIVE,
    ON_GPU,
    OPTIMIZER,
    PREPARES,
    STEP,
    WAITS,
    Role,
    copy_activity,
    is_input_mark,
)
from gpututor.trace.events import Event, Events, in_stream_order, sorted_out
from gpututor.trace.flows import link
from gpututor.trace.graphs import graph_numbers, is_of_graph
from gpututor.trace.kernels import Part, Sm, sm_of, work_of
from gpututor.trace.lanes import Lanes, device_of
from gpututor.trace.opening import Document, Source, opened
from gpututor.trace.own import activity_of_mark, told_in, work_in

Works = dict[tuple[object, ...], tuple[Activity, KernelWork]]
"""What kernels that are told alike are, each worked out once."""

HEADER_VERSIONS = (("cuda_driver_version", "CUDA driver"), ("cuda_runtime_version", "CUDA runtime"))


def read(
    source: Source,
    *,
    origin: Origin = Origin.RECORDED,
    what: str = "",
    host: str | None = None,
    versions: tuple[tuple[str, str], ...] = (),
) -> Timeline:
    """The trace at a path (.json or gzipped), or already loaded, as a timeline that begins at 0.

    `what` describes the job, the file's name where left out. What had to be left
    out is in the timeline's `losses`.

    Raises:
        NoKernels: the program launched nothing on a GPU.
        TimelineError: the file is damaged, or no trace of a GPU; one sentence says which.
    """
    document = opened(source)
    found = sorted_out(document.events)
    _refuse_without_kernels(document, found)
    link(found.events, found.arrows)
    in_stream_order(found.events, found.dropped)
    steps = _steps(found.events)
    window_ns = (steps[0].start_ns, steps[-1].end_ns) if steps else _device_window_ns(found.events)
    base_ns = min(window_ns[0], *(e.start_ns for e in found.events))
    lanes = Lanes(found.thread_names)
    devices = _devices(document.header)
    spans = _spans(found, lanes, {k: sm_of(d) for k, d in devices.items()}, base_ns)
    busiest = _busiest(found.events)
    label = _label(devices.get(busiest, {}), origin, what or document.name, host, versions, document.header)
    window_ns = window_ns[0] - base_ns, window_ns[1] - base_ns
    from_begin = tuple(Step(s.start_ns - base_ns, s.end_ns - base_ns) for s in steps)
    ours = told_in(document.header)
    if ours is not None and origin is Origin.RECORDED:
        label, from_begin = ours.label, ours.fitted(from_begin)
        window_ns = ours.window_ns[0] - base_ns, ours.window_ns[1] - base_ns
    return Timeline(tuple(lanes.rows), tuple(spans), window_ns, label, from_begin, (*document.losses, *found.losses()))


def _refuse_without_kernels(document: Document, found: Events) -> None:
    if any(e.role is Role.KERNEL and e.end_ns > e.start_ns for e in found.events):
        return
    name = document.name
    if document.notes:  # then what is missing may just be lost
        raise TimelineError(f"{name} has no kernel left: {'; '.join(document.notes)}; copy or record it again")
    if found.another_accelerator:
        raise TimelineError(
            f"{name} was recorded on {found.another_accelerator} accelerator; "
            "only traces of CUDA and ROCm GPUs can be read here"
        )
    n = Counter(e.role for e in found.events)
    if n[Role.KERNEL]:
        raise TimelineError(f"the {n[Role.KERNEL]:,} kernels in {name} take no time at all; record the trace again")
    if not found.events:
        raise TimelineError(
            f"{name} has none of the events that torch.profiler writes for operators and kernels; "
            "was it made by another tool?"
        )
    n_launches = sum(e.role is Role.CALL and "Launch" in e.name for e in found.events)
    if n_launches:
        raise TimelineError(
            f"{name} has {n_launches:,} launch calls but not one kernel: the profiler was not let at the GPU's own "
            "records (CUPTI); look for its warning on the terminal, and for missing rights in a container"
        )
    raise NoKernels(
        f"{name} has {n[Role.OPERATOR]:,} framework operators but no kernel, so it says nothing about a GPU; "
        "record with ProfilerActivity.CUDA in activities, and check that model and batch are on the GPU"
    )


def _steps(events: Sequence[Event]) -> list[Step]:
    """Marked steps by start; one lasts until the next begins where that is the next in number."""
    marks: dict[int, Event] = {}
    numbers: dict[str, int | None] = {}  # few names, many events
    for e in events:
        if e.role is not Role.MARK and e.role is not Role.OPERATOR:
            continue
        if e.name not in numbers:
            match = STEP.match(e.name)
            numbers[e.name] = int(match[1][:18]) if match else None
        number = numbers[e.name]
        if number is None or e.end_ns <= e.start_ns:
            continue
        if number not in marks or e.start_ns < marks[number].start_ns:
            marks[number] = e
    ordered = sorted(marks.items(), key=lambda item: item[1].start_ns)
    following = {number: e.start_ns for number, e in ordered}
    return [Step(e.start_ns, max(e.end_ns, following.get(number + 1, 0))) for number, e in ordered]


def _device_window_ns(events: Sequence[Event]) -> tuple[int, int]:
    on_gpu = [e for e in events if e.role in ON_GPU]
    return min(e.start_ns for e in on_gpu), max(e.end_ns for e in on_gpu)


def _busiest(events: Sequence[Event]) -> int | None:
    counts = Counter(device_of(e) for e in events if e.role is Role.KERNEL)
    return counts.most_common(1)[0][0]


def _spans(found: Events, lanes: Lanes, sms: Mapping[int | None, Sm], base_ns: int) -> list[Span]:
    events = found.events
    started = {e.correlation: e for e in events if e.role in ON_GPU and e.correlation is not None}
    works: Works = {}
    by_name: dict[tuple[Role, str], Activity | None] = {}  # all but a driver's calls are told by it
    unknown, spans = Sm(), []
    graphs = graph_numbers(found)
    parts: Mapping[int, Part] = {}
    if found.asked:
        from gpututor.trace.operators import parts_of  # here, because it loads the model's operators

        parts = parts_of(events, graphs)
    for e in events:
        if e.role in ON_GPU:
            span = _on_gpu(
                e, lanes, sms.get(device_of(e), unknown), works, base_ns, parts.get(id(e)), is_of_graph(e, graphs)
            )
            spans.append(span)
            continue
        number = e.correlation
        work = None if number is None else started.get(number)
        if e.role is Role.CALL:
            activity: Activity | None = _call_activity(e, work)
        elif (e.role, e.name) in by_name:
            activity = by_name[e.role, e.name]
        else:
            activity = by_name[e.role, e.name] = _host_activity(e)
        if activity is not None:
            launch = None if work is None else number
            spans.append(Span(lanes.host(e), activity, e.name, e.start_ns - base_ns, e.end_ns - base_ns, launch))
    return spans


def _on_gpu(
    e: Event, lanes: Lanes, sm: Sm, works: Works, base_ns: int, part: Part | None, from_graph: bool | None
) -> Span:
    work: KernelWork | None
    if e.role is Role.KERNEL:
        args = e.args
        told = () if args.ours is None else (str(args.ours),)
        shape = (str(args.grid), str(args.block), str(args.registers), str(args.smem_bytes))
        key = (e.name, *shape, sm, from_graph, part, *told)
        if key not in works:
            activity = Activity.COLLECTIVE if COLLECTIVE.search(e.name) else Activity.KERNEL
            works[key] = activity, work_in(args) or work_of(e.name, args, sm, part, from_graph)
        activity, work = works[key]
        lane = lanes.stream(e)
    else:
        copied = e.role is Role.COPY
        activity = copy_activity(e.name, e.args.kind) if copied else Activity.MEMSET
        on_stream = activity in (Activity.MEMSET, Activity.COPY_ON_GPU)
        lane = lanes.stream(e) if on_stream else lanes.copies(e, activity)
        n_bytes = e.args.n_bytes
        known = type(n_bytes) is int and n_bytes >= 0
        moved_bytes = float(str(n_bytes)) if known else None
        told_of = known or from_graph
        work = KernelWork("copy" if copied else "memset", None, moved_bytes, from_graph=from_graph) if told_of else None
    return Span(lane, activity, e.name, e.start_ns - base_ns, e.end_ns - base_ns, e.correlation, work)


def _host_activity(e: Event) -> Activity | None:
    if is_input_mark(e.name):
        return Activity.INPUT
    overhead = e.role is Role.OVERHEAD
    told = activity_of(OVERHEADS.get(e.name) if overhead else interruption(e.name))
    if told is not None or overhead:
        return told
    if e.role is Role.PYTHON:
        return Activity.PYTHON
    if e.name.startswith(OPTIMIZER):
        return Activity.DISPATCH
    if e.role is Role.MARK or STEP.match(e.name):
        return activity_of_mark(e.name)
    return Activity.DISPATCH


def _call_activity(call: Event, work: Event | None) -> Activity:
    """What a driver call does to the host: waits, copies, allocates, launches, or just takes its time.

    A copy call held the host if it came back no sooner than the copy was done, unless the memory
    was pinned: then the copy was short and the call didn't wait for it.
    """
    if WAITS.match(call.name):
        return Activity.SYNC
    if work is not None:
        waited = work.role is Role.COPY and call.end_ns >= work.end_ns and "Pinned" not in work.name
        return Activity.COPY_CALL if waited else Activity.LAUNCH
    if PREPARES.match(call.name):
        return Activity.STARTUP
    return Activity.LAUNCH if "Launch" in call.name else Activity.DISPATCH


def _devices(header: Mapping[str, object]) -> dict[int | None, Mapping[str, object]]:
    listed = header.get("deviceProperties")
    if not isinstance(listed, Sequence):
        return {}
    devices: dict[int | None, Mapping[str, object]] = {}
    for device in listed:
        if isinstance(device, Mapping) and type(device.get("id")) is int:
            devices[int(str(device["id"]))] = device
    return devices


def _label(
    device: Mapping[str, object],
    origin: Origin,
    what: str,
    host: str | None,
    versions: tuple[tuple[str, str], ...],
    header: Mapping[str, object],
) -> Label:
    name = device.get("name")
    card = None
    if isinstance(name, str) and name:
        listed = find_card(name)
        card = listed.name if listed else name
    known = {k for k, _ in versions}
    noted = tuple(
        (words, f"{number // 1000}.{number % 1000 // 10}")  # 12040 is 12.4; source: CUDA Runtime API
        for key, words in HEADER_VERSIONS
        if type(number := header.get(key)) is int and words not in known
    )
    return Label(origin, card, host, what, versions + noted, sm_of(device).n_sms)
