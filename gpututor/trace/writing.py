"""A `Timeline` → a trace in Kineto's form, which this reader, Perfetto, HTA and others open.

What that form has no field for is written beside it, in names of our own that others pass over: a kernel's FLOP, bytes
and number format, and where the timeline comes from. So a simulated run stays labelled as one.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import structs

from gpututor import timeline_file
from gpututor.cards import Card, find_card
from gpututor.ledger.interruptions import OVERHEADS, activity_of, interruption
from gpututor.timeline import Activity, KernelWork, LaneKind, Span, Timeline
from gpututor.trace.categories import (
    COLLECTIVE,
    INPUT_MARKS,
    PAUSE_MARK,
    START_UP_MARK,
    WAIT_MARK,
    copy_activity,
    is_input_mark,
)
from gpututor.trace.records import OURS

HOST_PID = 100_000  # beyond all numbers of GPUs, whose own processes these are
OVERHEAD_PLACE = -1, 0  # of no thread; source: Kineto, which writes CUPTI's overhead so
FIRST_CORRELATION = 100_000
"""Added to launch numbers: a driver's are as large, and HTA chooses too small a type for smaller ones (pandas 3)."""

LARGEST_BLOCK = 1024  # threads; source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
WARP = 32
CALLS = {
    Activity.LAUNCH: ("cuda_runtime", "cudaLaunchKernel"),
    Activity.SYNC: ("cuda_runtime", "cudaStreamSynchronize"),
    Activity.COPY_CALL: ("cuda_runtime", "cudaMemcpyAsync"),
}
COPIES = {
    Activity.COPY_TO_GPU: "Memcpy HtoD (Pageable -> Device)",
    Activity.COPY_TO_HOST: "Memcpy DtoH (Device -> Pageable)",
    Activity.COPY_ON_GPU: "Memcpy DtoD (Device -> Device)",
    Activity.TRANSFER: "Memcpy PtoP (Device -> Device)",
}
MARKS = {
    Activity.INPUT: INPUT_MARKS[-1],
    Activity.PAUSE: PAUSE_MARK,
    Activity.STARTUP: START_UP_MARK,
    Activity.COMM_WAIT: WAIT_MARK,
}


NAMED_A_TRACE = re.compile(r"(^|[._-])trace\.json(\.gz)?$", re.IGNORECASE)
"""Names that say that a file is a trace: those that torch's own handler gives, such as worker0.pt.trace.json."""


def save(timeline: Timeline, path: Path) -> None:
    """Write a timeline: as a trace where the file's name says so, else in our own form (`timeline_file`).

    Raises:
        OSError: the disk is full or read-only.
    """
    if NAMED_A_TRACE.search(path.name):
        write(timeline, path)
    else:
        timeline_file.save(timeline, path)


def write(timeline: Timeline, path: str | os.PathLike[str], *, ours: bool = True) -> None:
    """Write the timeline as a trace; packed where the name ends in .gz.

    Without `ours` the trace says no more than a profiler's would, and is read as a recording.

    Raises:
        OSError: the disk is full or read-only.
    """
    place = Path(path)
    pieces = (piece.encode("ascii") for piece in _text(timeline, place.name, ours=ours))
    if place.suffix == ".gz":
        with place.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
            packed.writelines(pieces)
    else:
        with place.open("wb") as file:
            file.writelines(pieces)


def _text(timeline: Timeline, name: str, *, ours: bool) -> Iterator[str]:
    label = timeline.label
    card = find_card(label.card) if label.card else None
    devices = sorted({lane.device or 0 for lane in timeline.lanes if lane.kind is not LaneKind.HOST})
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [_properties(k, label.card, card, label.n_sms) for k in devices],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        "traceName": name,
    }
    if ours:
        steps = [[step.n_samples, step.loss] for step in timeline.steps]
        fields = timeline_file.label_fields(label)
        head[OURS] = {"label": fields, "window_ns": timeline.window_ns, "steps": steps}
    yield json.dumps(head)[:-1] + ', "traceEvents": ['
    between = "\n"
    for event in _events(timeline, card):
        if not ours and "args" in event:
            event["args"].pop(OURS, None)
        yield between + json.dumps(event, separators=(",", ":"))
        between = ",\n"
    yield "\n]}\n"


def _properties(number: int, name: str | None, card: Card | None, n_sms: int | None) -> dict[str, Any]:
    told: dict[str, Any] = {"id": number, "name": name or "unknown"}
    if card is None:
        return told | ({"numSms": n_sms} if n_sms else {})
    major, _, minor = card.compute_capability.partition(".")
    known = {"totalGlobalMem": card.memory_bytes, "numSms": card.n_sms, "warpSize": WARP}
    known |= {"maxThreadsPerMultiprocessor": WARP * card.max_warps_per_sm, "maxThreadsPerBlock": LARGEST_BLOCK}
    known["sharedMemPerMultiprocessor"] = card.smem_bytes_per_sm
    return told | known | ({"computeMajor": int(major), "computeMinor": int(minor)} if minor else {})


def _us(ns: int) -> float:
    """Microseconds; a timeline counts from its own begin, so that a binary fraction has room for every nanosecond."""
    return ns / 1000


def _events(timeline: Timeline, card: Card | None) -> Iterator[dict[str, Any]]:
    places = _places(timeline)
    for k, lane in enumerate(timeline.lanes):
        pid, tid = places[k]
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": lane.name}}
    for pid in sorted({pid for pid, _ in places}):
        words = "python" if pid == HOST_PID else f"GPU {pid}"
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": words}}
    for number, step in enumerate(timeline.steps):
        yield _complete("user_annotation", f"ProfilerStep#{number}", step.start_ns, step.end_ns, HOST_PID, 1)
    for span in timeline.spans:
        pid, tid = places[span.lane]
        lane = timeline.lanes[span.lane]
        if lane.kind is LaneKind.HOST:
            yield _on_host(span, pid, tid)
        else:
            yield _on_gpu(span, pid, tid, lane.device or 0, card)
        if span.launch is not None:
            begins = lane.kind is LaneKind.HOST
            flow = {
                "ph": "s" if begins else "f",
                "id": FIRST_CORRELATION + span.launch,
                "pid": pid,
                "tid": tid,
                "ts": _us(span.start_ns),
            }
            yield flow | {"cat": "ac2g", "name": "ac2g"} | ({} if begins else {"bp": "e"})


def _places(timeline: Timeline) -> list[tuple[int, int]]:
    """Process and thread number of each lane: the host's threads are 1, 2, …; a GPU's lanes count from 7."""
    n_threads, n_streams = 0, dict[int, int]()
    places = []
    for lane in timeline.lanes:
        if lane.kind is LaneKind.HOST:
            n_threads += 1
            places.append((HOST_PID, n_threads))
        else:
            device = lane.device or 0
            n_streams[device] = n_streams.get(device, 6) + 1
            places.append((device, n_streams[device]))
    return places


def _complete(cat: str, name: str, start_ns: int, end_ns: int, pid: int, tid: int) -> dict[str, Any]:
    times = {"ts": _us(start_ns), "dur": _us(end_ns - start_ns)}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid} | times


def _on_host(span: Span, pid: int, tid: int) -> dict[str, Any]:
    if span.activity in CALLS:
        cat, usual = CALLS[span.activity]
        name = span.name if span.name.startswith(("cuda", "cu", "hip")) else usual
    elif span.activity in MARKS:
        mark = MARKS[span.activity]
        overhead = span.name in OVERHEADS
        cat = "overhead" if overhead else "user_annotation"
        known = is_input_mark(span.name) or span.name.startswith(mark) or overhead
        known = known or activity_of(interruption(span.name)) is span.activity
        name = span.name if known else f"{mark}: {span.name}"
    else:
        cat, name = "python_function" if span.activity is Activity.PYTHON else "cpu_op", span.name
    if cat == "overhead":
        pid, tid = OVERHEAD_PLACE
    args = {} if span.launch is None else {"correlation": FIRST_CORRELATION + span.launch}
    return _complete(cat, name, span.start_ns, span.end_ns, pid, tid) | {"args": args}


def _on_gpu(span: Span, pid: int, tid: int, device: int, card: Card | None) -> dict[str, Any]:
    args: dict[str, Any] = {"device": device, "stream": tid}
    if span.launch is not None:
        args["correlation"] = FIRST_CORRELATION + span.launch
    if span.activity in COPIES:
        cat, usual = "gpu_memcpy", COPIES[span.activity]
        name = span.name if copy_activity(span.name, None) is span.activity else usual
        if span.work is not None and span.work.moved_bytes is not None:
            args["bytes"] = int(span.work.moved_bytes)
    else:
        cat = "gpu_memset" if span.activity is Activity.MEMSET else "kernel"
        talks = span.activity is Activity.COLLECTIVE and not COLLECTIVE.search(span.name)
        name = f"ncclDevKernel_{span.name}" if talks else span.name
        if span.work is not None:
            args |= _work(span.work, card)
    return _complete(cat, name, span.start_ns, span.end_ns, pid, tid) | {"args": args}


def _work(work: KernelWork, card: Card | None) -> dict[str, Any]:
    """A kernel's blocks in a profiler's fields, where the card is known, and all that it knows in a field of ours."""
    told: dict[str, Any] = {}
    if work.n_blocks is not None:
        told["grid"] = [work.n_blocks, 1, 1]
        if work.blocks_per_sm and card is not None:
            warps = max(1, card.max_warps_per_sm // work.blocks_per_sm)
            told["block"] = [min(LARGEST_BLOCK, WARP * warps), 1, 1]
    known = {key: value for key, value in structs.asdict(work).items() if value is not None}
    return told | {OURS: known}
