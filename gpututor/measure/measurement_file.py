"""A measurement as a file: JSON, gzipped when the name ends in .gz. The same measurement always gives the same bytes.

Layout of version 1::

    {"format": "gpututor-measurement", "version": 1, "measured_at": text, "usd_per_hour": number,
     "configuration": {name: plain data},
     "label": {"origin", "card", "host", "what", "versions", "n_sms"},
     "n_samples", "n_left_out", "n_dropped": integers,
     "parts": [[part, …], …],                         # each sequence of parts once
     "steps": [[index into parts, [gpu_ns, …], [host_ns, …]], …],   # one time more than parts
     "pauses": [[start_ns, end_ns], …],
     "readings": {name: number}, "reasons": {name: text},
     "series": {name: [[time_ns, …], [number, …]]}, "notes": [text, …],
     "window": the text of a timeline's file, or null}
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from gpututor import timeline_file
from gpututor.errors import MeasurementDamaged, TimelineError
from gpututor.measure.measurement import Measurement
from gpututor.measure.parts import Part, SplitStep
from gpututor.timeline_file import label_fields, label_of

FORMAT, VERSION = "gpututor-measurement", 1


def to_bytes(found: Measurement) -> bytes:
    """The measurement as UTF-8 JSON; equal ones give equal bytes."""
    kinds: dict[tuple[Part, ...], int] = {}
    steps = [[kinds.setdefault(s.parts, len(kinds)), list(s.gpu_ns), list(s.host_ns)] for s in found.steps]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "measured_at": found.measured_at,
        "usd_per_hour": found.usd_per_hour,
        "configuration": dict(found.configuration),
        "label": label_fields(found.label),
        "n_samples": found.n_samples,
        "n_left_out": found.n_left_out,
        "n_dropped": found.n_dropped,
        "parts": [[part.value for part in kind] for kind in kinds],
        "steps": steps,
        "pauses": [list(pause) for pause in found.pauses],
        "readings": dict(found.readings),
        "reasons": dict(found.reasons),
        "series": {name: [list(times), list(values)] for name, (times, values) in found.series.items()},
        "notes": list(found.notes),
        "window": None if found.window is None else timeline_file.to_bytes(found.window).decode(),
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=str).encode()


def from_bytes(data: bytes, source: str = "the file") -> Measurement:
    """The measurement that `to_bytes` wrote; `source` names the data in errors.

    Raises:
        MeasurementDamaged: the data is not such a file, is of another version, or contradicts itself.
    """
    try:
        told = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise MeasurementDamaged(f"{source} is no saved measurement; Measurement.save writes one")
        if told["version"] != VERSION:
            raise MeasurementDamaged(
                f"{source} has version {told['version']!r} of the format and this gpututor reads {VERSION}; "
                "it was written by another gpututor, so read it with that one"
            )
        return _build(told)
    except MeasurementDamaged:
        raise
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, TimelineError) as error:
        raise MeasurementDamaged(
            f"{source} is a damaged measurement ({type(error).__name__}: {error}); copy it or measure again"
        ) from error


def _build(told: dict[str, Any]) -> Measurement:
    kinds = [tuple(Part(name) for name in kind) for kind in told["parts"]]
    steps = tuple(SplitStep(kinds[kind], tuple(gpu), tuple(host)) for kind, gpu, host in told["steps"])
    if not steps or any(len(s.parts) + 1 != len(s.gpu_ns) or len(s.gpu_ns) != len(s.host_ns) for s in steps):
        raise MeasurementDamaged("a step lacks a time at one of its borders, or there is no step; measure again")
    window = told["window"]
    return Measurement(
        label=label_of(told["label"]),
        steps=steps,
        pauses=tuple((a, b) for a, b in told["pauses"]),
        n_samples=told["n_samples"],
        n_left_out=told["n_left_out"],
        n_dropped=told["n_dropped"],
        readings=told["readings"],
        reasons=told["reasons"],
        series={name: (tuple(times), tuple(values)) for name, (times, values) in told["series"].items()},
        notes=tuple(told["notes"]),
        window=None if window is None else timeline_file.from_bytes(window.encode(), "its window"),
        measured_at=told["measured_at"],
        usd_per_hour=told["usd_per_hour"],
        configuration=told["configuration"],
    )


def save(found: Measurement, path: str | Path) -> None:
    """Write the measurement to `path`, gzipped when the name ends in .gz.

    Raises:
        OSError: the disk is full or read-only.
    """
    timeline_file.write(to_bytes(found), path)


def load(path: str | Path) -> Measurement:
    """The measurement that `save` wrote.

    Raises:
        MeasurementDamaged: the file can't be read or is no saved measurement.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise MeasurementDamaged(f"{path} can't be read ({error.strerror}); check the name") from error
    return from_bytes(data, str(path))
