"""A path, an open document or a list of events → the document of one trace."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path

from gpututor.errors import TimelineError
from gpututor.trace.exact import load_json

LARGEST_BYTES = 2 * 1024**3
"""Our limit on the unpacked size, against files made to fill the memory. A traced step takes some megabytes."""

GZIP_MAGIC = b"\x1f\x8b"

Source = str | os.PathLike[str] | Mapping[str, object] | Sequence[object]


@dataclass(frozen=True, slots=True)
class Document:
    """The events of a trace, what it says about itself, and what was lost while reading."""

    name: str
    events: Sequence[object]
    header: Mapping[str, object]
    losses: tuple[str, ...] = ()


def opened(source: Source) -> Document:
    """The trace as a document; gzip is recognised by content, whatever the file is called.

    Raises:
        TimelineError: the file is missing, empty, cut off, no JSON, or no trace.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        text, losses = _text(path)
        try:
            found = load_json(text)
        except JSONDecodeError as error:
            raise TimelineError(
                f"{path.name} stops being JSON at line {error.lineno}, column {error.colno} ({error.msg}); "
                "was the recording cut short, or the file edited?"
            ) from None
        except (ValueError, RecursionError):
            raise TimelineError(
                f"{path.name} nests too deeply or holds a number of thousands of digits, "
                "which no profiler writes; record it again"
            ) from None
        return _document(path.name, found, losses)
    return _document("the trace", source, ())


def _document(name: str, found: object, losses: tuple[str, ...]) -> Document:
    header: Mapping[str, object] = {}
    events = found
    if isinstance(found, Mapping):
        header, events = found, found.get("traceEvents")
        if events is None:
            raise TimelineError(
                f"{name} has no traceEvents, so it is no trace of torch.profiler; "
                "export one with prof.export_chrome_trace(path)"
            )
    if not isinstance(events, Sequence) or isinstance(events, (str, bytes)):
        raise TimelineError(f"{name} holds a {type(events).__name__} where a list of trace events belongs")
    if not events:
        raise TimelineError(f"{name} holds no event at all; did the profiler's active steps ever run?")
    return Document(name, events, header, losses)


def _text(path: Path) -> tuple[str, tuple[str, ...]]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise TimelineError(f"{path} can't be read: {error.strerror or error}") from None
    if raw.startswith(GZIP_MAGIC):
        raw = _unpacked(path.name, raw)
    if not raw.strip():
        raise TimelineError(f"{path.name} is empty; the profiler writes a trace when it is stopped, so let it finish")
    try:
        return raw.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        repaired = raw.decode("utf-8-sig", errors="replace")
        return repaired, ("letters that were not UTF-8 show as \N{REPLACEMENT CHARACTER}",)


def _unpacked(name: str, raw: bytes) -> bytes:
    """What the gzip stream holds, several members in a row included."""
    parts: list[bytes] = []
    n_bytes = 0
    while raw:
        unpacker = zlib.decompressobj(wbits=31)  # 31: a gzip header with the largest window; source: zlib manual
        try:
            part = unpacker.decompress(raw, LARGEST_BYTES - n_bytes + 1)
        except zlib.error as error:
            raise TimelineError(f"{name} is a damaged gzip file ({error}); copy or record it again") from None
        n_bytes += len(part)
        if n_bytes > LARGEST_BYTES:
            raise TimelineError(f"{name} unpacks to more than {LARGEST_BYTES:,} bytes; record fewer steps")
        if not unpacker.eof:
            raise TimelineError(f"{name} is a gzip file that ends in the middle; was the copy cut short?")
        parts.append(part)
        raw = unpacker.unused_data.lstrip(b"\0")
    return b"".join(parts)
