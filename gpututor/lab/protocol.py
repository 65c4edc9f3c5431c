"""What a page's process and a worker process say to each other: one JSON line a message, bounded and versioned.

The wire is a socket pair that nothing else writes to, so prints of a library or a learner can't garble it.
Only data crosses it; nothing is ever unpickled.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from dataclasses import dataclass, fields
from typing import Any

VERSION = 1
MAX_MESSAGE_BYTES = 16 * 2**20  # 16 MiB: a recording of some 100,000 spans; bigger results are files
MAX_PARTIAL_BYTES = 2**20  # 1 MiB: sent up to five times a second
MAX_NOTE_CHARACTERS = 300


class WireClosed(Exception):
    """The other side is gone."""


class WireError(Exception):
    """The other side said something that is not a message of this version."""


class NotData(Exception):
    """A value that isn't plain data; the message says where and what."""


@dataclass(frozen=True, slots=True)
class Run:
    """Page to worker: run this experiment."""

    job: str
    experiment: str
    params: dict[str, Any]
    results_dir: str | None
    seed: int
    wall_limit_s: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Page to worker: let this job end at its next tick."""

    job: str


@dataclass(frozen=True, slots=True)
class Started:
    """Worker to page: the job's time begins now (torch is imported, the worker was free)."""

    job: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Worker to page: k of n."""

    job: str
    k: int
    n: int
    note: str
    partial: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """Worker to page: the job is over. `state` is done, stopped or failed."""

    job: str
    state: str
    data: Any
    sentence: str
    log: str


Message = Run | Stop | Started | Ticked | Ended
_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Run, Stop, Started, Ticked, Ended)}


def encode(message: Message) -> bytes:
    """The message as one line of bytes.

    Raises:
        NotData: a field holds something that JSON can't carry.
    """
    values = {f.name: getattr(message, f.name) for f in fields(message)}
    return to_json({"v": VERSION, "kind": type(message).__name__, **values}) + b"\n"


def decode(line: bytes) -> Message:
    """The message in one line.

    Raises:
        WireError: no message of this version.
    """
    try:
        values = json.loads(line)
        version, kind = values.pop("v"), _KINDS[values.pop("kind")]
        if version != VERSION:
            raise WireError(f"version {version} of the lab's protocol where version {VERSION} is spoken")
        if set(values) != {f.name for f in fields(kind)}:
            raise WireError(f"a {kind.__name__} message with the fields {', '.join(map(str, values))}")
        return kind(**values)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"not a message: {line[:80]!r}") from error


def to_json(value: object) -> bytes:
    """The value as JSON on one line.

    Raises:
        NotData: names the place of the first part that JSON can't carry.
    """
    try:
        return json.dumps(value, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise NotData(_first_fault(value) or f"it can't be written as JSON ({error})") from error


def _first_fault(value: object, place: str = "", depth: int = 0) -> str | None:
    """Where in `value` the first part lies that isn't data, in words; None if there is none within 50 levels."""
    if value is None or isinstance(value, bool | int | float | str) or depth > 50:
        return None
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str | int | float | bool | None):
                return f"a key of {place or 'it'} is a {type(key).__name__}"
            if fault := _first_fault(part, f"{place}[{key!r}]", depth + 1):
                return fault
        return None
    if isinstance(value, list | tuple):
        faults = (_first_fault(part, f"{place}[{k}]", depth + 1) for k, part in enumerate(value))
        return next((fault for fault in faults if fault), None)
    return f"{place or 'it'} is a {type(value).__name__}"


class Wire:
    """One end of the line between page and worker. Sending is safe from several threads, receiving from one."""

    def __init__(self, end: socket.socket) -> None:
        self._end, self._received, self._sending = end, bytearray(), threading.Lock()
        self._scanned = 0
        self._ready = selectors.DefaultSelector()
        self._ready.register(end, selectors.EVENT_READ)

    def send(self, message: Message) -> None:
        """Hand over one message.

        Raises:
            NotData: a field isn't data, or the message is longer than MAX_MESSAGE_BYTES; nothing was sent.
            WireClosed: the other side is gone.
        """
        line = encode(message)
        if len(line) > MAX_MESSAGE_BYTES:
            raise NotData(f"it takes {len(line) / 2**20:.0f} MiB, and {MAX_MESSAGE_BYTES / 2**20:.0f} MiB is the most")
        try:
            with self._sending:
                self._end.sendall(line)
        except OSError as error:
            raise WireClosed from error

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """The next message; None when none came within `timeout_s`.

        Raises:
            WireClosed: the other side is gone.
            WireError: what came is not a message.
        """
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            if (line := self._take_line()) is not None:
                return decode(line)
            if len(self._received) > MAX_MESSAGE_BYTES:
                raise WireError("a message without an end")
            left_s = None if until_s is None else until_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            self._read(left_s)

    def _take_line(self) -> bytes | None:
        at = self._received.find(b"\n", self._scanned)
        if at < 0:
            self._scanned = len(self._received)
            return None
        line = bytes(self._received[:at])
        del self._received[: at + 1]
        self._scanned = 0
        return line

    def _read(self, timeout_s: float | None) -> None:
        try:
            if not self._ready.select(timeout_s):
                return
            some = self._end.recv(2**16)
        except (OSError, ValueError) as error:  # ValueError: this end was closed meanwhile
            raise WireClosed from error
        if not some:
            raise WireClosed
        self._received += some

    def close(self) -> None:
        """Hang up; the other side notices."""
        self._ready.close()
        self._end.close()
