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
from gpututor.timeline import Label, Origin, Span, Step, Timeline
from gpututor.trace.categories import Role
from gpututor.trace.events import Events, Mark, in_stream_order, sorted_out
from gpututor.trace.flows import link
from gpututor.trace.graphs import GRAPH_LAUNCHES
from gpututor.trace.kernels import Part, Sm, sm_of
from gpututor.trace.lanes import Lanes
from gpututor.trace.on_gpu import GpuEvent, GpuSpans
from gpututor.trace.opening import Document, Source, opened
from gpututor.trace.own import told_in

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
    link(found.host, found.gpu, found.arrows)
    in_stream_order(found.gpu, found.dropped)
    steps = _steps(found.marks)
    window_ns = (steps[0].start_ns, steps[-1].end_ns) if steps else _device_window_ns(found.gpu)
    base_ns = min([window_ns[0], *found.starts_ns()])
    lanes = Lanes()
    devices = _devices(document.header)
    spans = _spans(found, lanes, {k: sm_of(d) for k, d in devices.items()}, base_ns)
    busiest = _busiest(found.gpu)
    label = _label(devices.get(busiest, {}), origin, what or document.name, host, versions, document.header)
    window_ns = window_ns[0] - base_ns, window_ns[1] - base_ns
    from_begin = tuple(Step(s.start_ns - base_ns, s.end_ns - base_ns) for s in steps)
    ours = told_in(document.header)
    if ours is not None and origin is Origin.RECORDED:
        label, from_begin = ours.label, ours.fitted(from_begin)
        window_ns = ours.window_ns[0] - base_ns, ours.window_ns[1] - base_ns
    return Timeline(tuple(lanes.rows), tuple(spans), window_ns, label, from_begin, (*document.losses, *found.losses()))


def _refuse_without_kernels(document: Document, found: Events) -> None:
    if any(e.role is Role.KERNEL and e.end_ns > e.start_ns for e in found.gpu):
        return
    name = document.name
    if document.notes:  # then what is missing may just be lost
        raise TimelineError(f"{name} has no kernel left: {'; '.join(document.notes)}; copy or record it again")
    if found.another_accelerator:
        raise TimelineError(
            f"{name} was recorded on {found.another_accelerator} accelerator; "
            "only traces of CUDA and ROCm GPUs can be read here"
        )
    n_kernels = sum(e.role is Role.KERNEL for e in found.gpu)
    if n_kernels:
        raise TimelineError(f"the {n_kernels:,} kernels in {name} take no time at all; record the trace again")
    if not (found.host.told or found.gpu or found.marks):
        raise TimelineError(
            f"{name} has none of the events that torch.profiler writes for operators and kernels; "
            "was it made by another tool?"
        )
    n_launches = sum(told.role is Role.CALL and "Launch" in told.name for told in found.host.told)
    if n_launches:
        raise TimelineError(
            f"{name} has {n_launches:,} launch calls but not one kernel: the profiler was not let at the GPU's own "
            "records (CUPTI); look for its warning on the terminal, and for missing rights in a container"
        )
    n_operators = sum(told.role is Role.OPERATOR for told in found.host.told)
    raise NoKernels(
        f"{name} has {n_operators:,} framework operators but no kernel, so it says nothing about a GPU; "
        "record with ProfilerActivity.CUDA in activities, and check that model and batch are on the GPU"
    )


def _steps(marks: Sequence[Mark]) -> list[Step]:
    """Marked steps by start; one lasts until the next begins where that is the next in number."""
    first: dict[int, Mark] = {}
    for mark in sorted(marks, key=lambda m: m.start_ns):
        if mark.step is not None and mark.end_ns > mark.start_ns:
            first.setdefault(mark.step, mark)
    next_ns = {step - 1: mark.start_ns for step, mark in first.items()}
    return [Step(m.start_ns, max(m.end_ns, next_ns.get(step, 0))) for step, m in first.items()]


def _device_window_ns(events: Sequence[GpuEvent]) -> tuple[int, int]:
    return min(e.start_ns for e in events), max(e.end_ns for e in events)


def _busiest(events: Sequence[GpuEvent]) -> int | None:
    counts = Counter(e.place.device for e in events if e.role is Role.KERNEL)
    return counts.most_common(1)[0][0]


def _spans(found: Events, lanes: Lanes, sms: Mapping[int | None, Sm], base_ns: int) -> list[Span]:
    host, work = found.host, found.gpu
    lanes.add_threads(host.threads.texts, found.thread_names)
    started = {e.correlation: e for e in work if e.correlation is not None}
    graphs = host.numbers_of(GRAPH_LAUNCHES)
    parts: Mapping[int, Part] = {}
    if host.asked:
        from gpututor.trace.operators import parts_of  # here, because it loads the model's operators

        parts = parts_of(host, work, graphs)
    return [*host.spans(started, base_ns), *GpuSpans(lanes, sms, parts, graphs, base_ns).spans(work)]


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
