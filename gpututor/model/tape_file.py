"""A tape as a file: JSON, each op once, the run as a list of numbers. Gzipped when the name ends in .gz.

Layout of version 1::

    {"format": "gpututor-tape", "version": 1, "what": text,
     "ops":     [{"name", "host", "phase", "kernels": [{"kind", …}, …]}, …],
     "entries": [op index, or [kind, field, …] for everything else],
     "losses":  [number or null, …], "n_cards": number}
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

from gpututor.errors import KernelSpecError, TimelineError
from gpututor.model.spec import HostKind, from_dict, to_dict
from gpututor.model.tape import (
    PHASES,
    BeginStep,
    CopyCall,
    EndRun,
    Entry,
    HostWork,
    RecordEvent,
    Sync,
    Tape,
    TapeOp,
    UseStream,
    WaitEvent,
)
from gpututor.timeline import Activity

FORMAT, VERSION = "gpututor-tape", 1
KINDS: dict[str, Any] = {
    "copy": CopyCall,
    "sync": Sync,
    "host": HostWork,
    "stream": UseStream,
    "record event": RecordEvent,
    "wait event": WaitEvent,
    "step": BeginStep,
    "end": EndRun,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}


def to_bytes(tape: Tape) -> bytes:
    """The tape as UTF-8 JSON; equal tapes give equal bytes."""
    ops: dict[TapeOp, int] = {}
    by_id: dict[int, int] = {}
    entries: list[Any] = []
    for entry in tape.entries:
        if type(entry) is TapeOp:
            k = by_id.get(id(entry))
            if k is None:
                k = by_id[id(entry)] = ops.setdefault(entry, len(ops))
            entries.append(k)
        else:
            entries.append([KIND_OF[type(entry)], *(_plain(getattr(entry, f.name)) for f in fields(entry))])
    document = {
        "format": FORMAT,
        "version": VERSION,
        "what": tape.what,
        "ops": [
            {"name": op.name, "host": op.host.value, "phase": op.phase, "kernels": [to_dict(k) for k in op.kernels]}
            for op in ops
        ],
        "entries": entries,
        "losses": tape.losses,
        "n_cards": tape.n_cards,
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Activity) else value


def from_bytes(data: bytes, source: str = "the file") -> Tape:
    """The tape that `to_bytes` wrote; `source` names the data in errors.

    Raises:
        TimelineError: the data is not a saved tape, is of another version, or is damaged.
    """
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TimelineError(f"{source} can't be read as JSON ({error}); run the experiment again") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise TimelineError(f"{source} is not a tape of version {VERSION}; run the experiment again to make a new one")
    try:
        ops = [
            TapeOp(o["name"], HostKind(o["host"]), _phase(o["phase"]), tuple(from_dict(k) for k in o["kernels"]))
            for o in document["ops"]
        ]
        entries: list[Entry] = [ops[e] if isinstance(e, int) else _entry(e) for e in document["entries"]]
        return Tape(document["what"], entries, document["losses"], document.get("n_cards", 1))
    except (KeyError, IndexError, TypeError, ValueError, KernelSpecError) as error:
        raise TimelineError(f"{source} has a damaged part ({type(error).__name__}: {error})") from error


def _phase(name: str) -> str:
    if name not in PHASES:
        raise ValueError(f"phase {name!r} is not one of {', '.join(PHASES)}")
    return name


def _entry(row: list[Any]) -> Entry:
    kind, *values = row
    if kind == "host":
        values[0] = Activity(values[0])
    if kind == "sync" and isinstance(values[1], list):
        values[1] = tuple(values[1])
    entry: Entry = KINDS[kind](*values)
    return entry


def save(tape: Tape, path: str | Path) -> None:
    """Write the tape to `path`, gzipped when the name ends in .gz."""
    data = to_bytes(tape)
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith(".gz") else data)


def load(path: str | Path) -> Tape:
    """The tape that `save` wrote.

    Raises:
        TimelineError: the file can't be read or is not a saved tape.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TimelineError(f"{path} can't be read ({error.strerror}); run the experiment again") from error
    return from_bytes(data, str(path))
