"""A timeline as a file: JSON, columns instead of objects, gzipped when the name ends in .gz.

The same timeline always gives the same bytes. Layout of version 1::

    {"format": "gpututor-timeline", "version": 1,
     "label":  {"origin", "card", "host", "what", "versions", "n_sms"},
     "window_ns": [start, end],
     "lanes":  [[kind, name, device], …],
     "names":  [name, …],                      # each text once
     "works":  [[kind, flop, moved_bytes, n_blocks, blocks_per_sm, number_format, tensor_core, useful_flop,
                flop_unknown, from_graph], …],       # the last two only where one of them is known
     "spans":  [[lane, activity, name, start_ns, duration_ns, launch, work], …],
     "steps":  [[start_ns, end_ns, n_samples, loss], …],
     "losses": [text, …]}                      # what was lost while reading

`lane`, `name` and `work` are indexes into the lists above; `null` means that it isn't known.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from gpututor.errors import TimelineError
from gpututor.timeline import Activity, KernelWork, Label, Lane, LaneKind, Origin, Span, Step, Timeline

FORMAT, VERSION = "gpututor-timeline", 1


def label_fields(label: Label) -> dict[str, Any]:
    """A label as plain data for JSON."""
    return {
        "origin": label.origin.value,
        "card": label.card,
        "host": label.host,
        "what": label.what,
        "versions": [list(pair) for pair in label.versions],
        "n_sms": label.n_sms,
    }


def label_of(told: Any) -> Label:
    """The label that `label_fields` wrote; a KeyError, TypeError or ValueError where it is damaged."""
    return Label(
        Origin(told["origin"]),
        told["card"],
        told["host"],
        told["what"],
        tuple((k, v) for k, v in told["versions"]),
        told["n_sms"],
    )


def to_bytes(timeline: Timeline) -> bytes:
    """The timeline as UTF-8 JSON; equal timelines give equal bytes."""
    names: dict[str, int] = {}
    works: dict[KernelWork, int] = {}
    spans = [
        [
            s.lane,
            s.activity.value,
            names.setdefault(s.name, len(names)),
            s.start_ns,
            s.end_ns - s.start_ns,
            s.launch,
            None if s.work is None else works.setdefault(s.work, len(works)),
        ]
        for s in timeline.spans
    ]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "label": label_fields(timeline.label),
        "window_ns": list(timeline.window_ns),
        "lanes": [[lane.kind.value, lane.name, lane.device] for lane in timeline.lanes],
        "names": list(names),
        "works": [
            [
                w.kind,
                w.flop,
                w.moved_bytes,
                w.n_blocks,
                w.blocks_per_sm,
                w.number_format,
                w.tensor_core,
                w.useful_flop,
                *_told_last(w),
            ]
            for w in works
        ],
        "spans": spans,
        "steps": [[s.start_ns, s.end_ns, s.n_samples, s.loss] for s in timeline.steps],
        "losses": list(timeline.losses),
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _told_last(work: KernelWork) -> list[object]:
    """The fields that few kernels have, up to the last one that this one has."""
    fields: list[object] = [work.flop_unknown, work.from_graph, work.group]
    while fields and fields[-1] is None:
        fields.pop()
    return fields


def is_one(path: Path) -> bool:
    """Whether a file begins as a saved timeline does."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            return FORMAT.encode() in file.read(64)
    except (OSError, EOFError, zlib.error):
        return False


def from_bytes(data: bytes, source: str = "the file") -> Timeline:
    """The timeline that `to_bytes` wrote; `source` names the data in errors.

    Raises:
        TimelineError: the data is not such a file, is of a newer version, or contradicts itself.
    """
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TimelineError(f"{source} is a damaged gzip file ({error}); copy or record it again") from error
    try:
        document = json.loads(data)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TimelineError(f"{source} is not JSON ({error}), so it can't be a saved timeline") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise TimelineError(
            f'{source} does not say "format": "{FORMAT}", so it is not a saved timeline; '
            "a trace of torch.profiler is read by gpututor.trace instead"
        )
    if document.get("version") != VERSION:
        raise TimelineError(
            f"{source} has version {document.get('version')!r} of the format and this gpututor reads {VERSION}; "
            "it was written by another gpututor, so read it with that one"
        )
    try:
        return _build(document)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, TimelineError):
            raise
        raise TimelineError(
            f"{source} is a timeline with a damaged part ({type(error).__name__}: {error}); record it again"
        ) from error


def _build(document: dict[str, Any]) -> Timeline:
    names, works = document["names"], [KernelWork(*row) for row in document["works"]]
    activities = {a.value: a for a in Activity}
    start, end = document["window_ns"]
    return Timeline(
        lanes=tuple(Lane(LaneKind(kind), name, device) for kind, name, device in document["lanes"]),
        spans=tuple(
            Span(
                lane,
                activities[activity],
                names[name],
                at,
                at + long,
                launch,
                None if work is None else works[work],
            )
            for lane, activity, name, at, long, launch, work in document["spans"]
        ),
        window_ns=(start, end),
        label=label_of(document["label"]),
        steps=tuple(Step(*row) for row in document["steps"]),
        losses=tuple(document["losses"]),
    )


def save(timeline: Timeline, path: str | Path) -> None:
    """Write the timeline to `path`, gzipped when the name ends in .gz."""
    write(to_bytes(timeline), path)


def write(data: bytes, path: str | Path) -> None:
    """Put `data` into a file, gzipped when the name ends in .gz; the same data always give the same bytes."""
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def load(path: str | Path) -> Timeline:
    """The timeline that `save` wrote.

    Raises:
        TimelineError: the file can't be read or is not a saved timeline.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TimelineError(f"{path} can't be read ({error.strerror}); check the name") from error
    return from_bytes(data, str(path))
