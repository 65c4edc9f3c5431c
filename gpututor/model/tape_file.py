"""A tape as a file: JSON, each op once, the run as a list of numbers. Gzipped when the name ends in .gz.

Layout of version 1::

    {"format": "gpututor-tape", "version": 1, "what": text,
     "ops":     [{"name", "host", "phase", "kernels": [{"kind", …}, …]}, …],
     "entries": [op index, or [kind, field, …] for everything else],
     "graphs":  [[number, [op index or ["copy", field, …], …]], …],
     "losses":  [number or null, …], "n_cards": number, "clock": "virtual" or "paced", "n_ranks": number}

A replay is ["replay", index of its graph]. Files without graphs, clock or ranks have none, are virtual, are of one.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from gpututor.errors import KernelSpecError, TimelineError
from gpututor.model.exchange import CardsExchange, PeerCopy, RanksExchange, Threads, WaitExchange
from gpututor.model.host import PHASES
from gpututor.model.marks import BeginPause, EndPause, LaunchBlocking
from gpututor.model.spec import HostKind, from_dict, to_dict
from gpututor.model.tape import (
    CLOCKS,
    BeginStep,
    CopyCall,
    EndRun,
    Entry,
    GraphReplay,
    HostWork,
    ModuleCall,
    RecordEvent,
    Sync,
    Tape,
    TapeOp,
    UseStream,
    WaitEvent,
)
from gpututor.timeline import Activity
from gpututor.timeline_file import write

FORMAT, VERSION = "gpututor-tape", 1
KINDS: dict[str, Any] = {
    "copy": CopyCall,
    "module": ModuleCall,
    "sync": Sync,
    "host": HostWork,
    "stream": UseStream,
    "record event": RecordEvent,
    "wait event": WaitEvent,
    "step": BeginStep,
    "end": EndRun,
    "peer copy": PeerCopy,
    "cards exchange": CardsExchange,
    "ranks exchange": RanksExchange,
    "wait exchange": WaitExchange,
    "threads": Threads,
    "pause": BeginPause,
    "pause end": EndPause,
    "launch blocking": LaunchBlocking,
}
KIND_OF = {kind: name for name, kind in KINDS.items()}


class _Written:
    """Ops and graphs that entries refer to by number."""

    def __init__(self) -> None:
        self.ops: dict[TapeOp, int] = {}
        self.graphs: list[Any] = []
        self._known: dict[int, int] = {}  # by identity: hashing costs more than looking

    def op(self, op: TapeOp) -> int:
        k = self._known.get(id(op))
        if k is None:
            k = self._known[id(op)] = self.ops.setdefault(op, len(self.ops))
        return k

    def row(self, entry: Entry) -> Any:
        if type(entry) is TapeOp:
            return self.op(entry)
        if type(entry) is GraphReplay:
            return ["replay", self.graph(entry)]
        return [KIND_OF[type(entry)], *(_plain(getattr(entry, f.name)) for f in fields(entry))]

    def graph(self, replay: GraphReplay) -> int:
        k = self._known.get(id(replay))
        if k is None:
            k = self._known[id(replay)] = len(self.graphs)
            self.graphs.append([replay.graph, [self.row(node) for node in replay.nodes]])
        return k


def to_bytes(tape: Tape) -> bytes:
    """The tape as UTF-8 JSON; equal tapes give equal bytes."""
    written = _Written()
    entries = [written.row(entry) for entry in tape.entries]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "what": tape.what,
        "ops": [
            {"name": op.name, "host": op.host.value, "phase": op.phase, "kernels": [to_dict(k) for k in op.kernels]}
            for op in written.ops
        ],
        "graphs": written.graphs,
        "entries": entries,
        "losses": tape.losses,
        "n_cards": tape.n_cards,
        "clock": tape.clock,
        "n_ranks": tape.n_ranks,
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
            TapeOp(
                o["name"], HostKind(o["host"]), _one_of(PHASES, o["phase"]), tuple(from_dict(k) for k in o["kernels"])
            )
            for o in document["ops"]
        ]
        graphs = [_graph(ops, number, nodes) for number, nodes in document.get("graphs", ())]
        entries = [_entry(ops, graphs, e) for e in document["entries"]]
        clock = _one_of(CLOCKS, document.get("clock", CLOCKS[0]))
        n_cards, n_ranks = document.get("n_cards", 1), document.get("n_ranks", 1)
        return Tape(document["what"], entries, document["losses"], n_cards, clock, n_ranks)
    except (KeyError, IndexError, TypeError, ValueError, KernelSpecError) as error:
        raise TimelineError(f"{source} has a damaged part ({type(error).__name__}: {error})") from error


def _one_of(known: tuple[str, ...], name: str) -> str:
    if name not in known:
        raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    return name


def _graph(ops: list[TapeOp], number: int, nodes: list[Any]) -> GraphReplay:
    return GraphReplay(number, tuple(ops[n] if isinstance(n, int) else CopyCall(*n[1:]) for n in nodes))


def _entry(ops: list[TapeOp], graphs: list[GraphReplay], row: Any) -> Entry:
    if isinstance(row, int):
        return ops[row]
    kind, *values = row
    if kind == "replay":
        return graphs[int(values[0])]
    if kind == "host":
        values[0] = Activity(values[0])
    return cast("Entry", KINDS[kind](*[tuple(v) if isinstance(v, list) else v for v in values]))


def save(tape: Tape, path: str | Path) -> None:
    """Write the tape to `path`, gzipped when the name ends in .gz."""
    write(to_bytes(tape), path)


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
