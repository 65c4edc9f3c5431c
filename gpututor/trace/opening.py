"""A path, an open document or a list of events → the records of one trace, block by block.

A file is read in blocks, and only one is held at a time: records are decoded from each up to a place between two of
them. So memory doesn't grow with the file. A block that isn't JSON is read record by record (`mending`).
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec

from gpututor.errors import TimelineError
from gpututor.trace.exact import load_json
from gpututor.trace.mending import one_by_one, text_of
from gpututor.trace.records import Record
from gpututor.trace.unpacking import BOM, blocks_of

Source = str | os.PathLike[str] | Mapping[str, object] | Sequence[object]

EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
MOST_HEADER_BYTES = 64 * 1024**2
LONGEST_RECORD_BYTES = 128 * 1024**2  # our limit, against files made to fill the memory
MEND_FROM_BYTES = 32 * 1024**2
BEHIND_A_LIST = re.compile(rb'\s*(?:,\s*"|\}\s*$)')
MOST_BRACKETS = 5_000  # in what stands behind the events, such as the profiler's own log
MOST_TRIES = 16
"""How many places are tried as the end of a record, where one within a record looks the same."""

_RECORDS = msgspec.json.Decoder(list[Record], float_hook=str)
_SPACE = b" \t\r\n"


@dataclass(slots=True)
class Document:
    """The events of a trace, what it says about itself, and what was lost while reading.

    Header and losses are whole once `events` has been read, which can be done once where it comes from a file.
    """

    name: str
    events: Iterable[object]
    header: dict[str, object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    mended: Counter[str] = field(default_factory=Counter)

    @property
    def losses(self) -> tuple[str, ...]:
        """What was lost or mended, in words."""
        return (*self.notes, *(f"{what}: {n:,}" for what, n in self.mended.items() if n))


def opened(source: Source) -> Document:
    """The trace as a document; gzip is recognised by content, whatever the file is called.

    Raises:
        TimelineError: the file is missing, empty, no JSON, or no trace.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        document = Document(path.name, ())
        document.events = _begun(document, blocks_of(path, document.notes))
        return document
    return _loaded("the trace", source)


def _loaded(name: str, found: object) -> Document:
    header: dict[str, object] = {}
    events = found
    if isinstance(found, Mapping):
        header, events = dict(found), found.get("traceEvents")
        if events is None:
            raise TimelineError(
                f"{name} has no traceEvents, so it is no trace of torch.profiler; "
                "export one with prof.export_chrome_trace(path)"
            )
    if not isinstance(events, Sequence) or isinstance(events, (str, bytes)):
        raise TimelineError(f"{name} holds a {type(events).__name__} where a list of trace events belongs")
    if not events:
        raise TimelineError(f"{name} holds no event at all; did the profiler's active steps ever run?")
    return Document(name, events, header)


def _begun(document: Document, blocks: Iterator[bytes]) -> Iterable[object]:
    """The records that follow the head, which is read here."""
    buffer = next(blocks, b"").removeprefix(BOM).lstrip(_SPACE)
    while buffer[:1] == b"{" and EVENTS.search(buffer) is None and len(buffer) < MOST_HEADER_BYTES:
        more = _at_least(blocks, len(buffer))
        if not more:
            break
        buffer += more
    if not buffer:
        raise TimelineError(
            f"{document.name} is empty; the profiler writes a trace when it is stopped, so let it finish"
        )
    at = EVENTS.search(buffer) if buffer[:1] == b"{" else None
    if at is None and buffer[:1] != b"[":
        return _loaded(document.name, _whole(document, buffer)).events
    if at is not None:
        document.header.update(_members(buffer[1 : at.start()].rstrip(_SPACE).rstrip(b",")) or {})
    first, rest = _cut(document, buffer[at.end() if at else 1 :], blocks, in_object=at is not None)
    if not first and (first := next(rest, [])) == []:
        if document.notes or document.mended:
            raise TimelineError(f"{document.name} has no whole record in it: {'; '.join(document.losses)}")
        raise TimelineError(f"{document.name} holds no event at all; did the profiler's active steps ever run?")
    return chain(first, chain.from_iterable(rest))


def _cut(
    document: Document, buffer: bytes, blocks: Iterator[bytes], *, in_object: bool
) -> tuple[Sequence[object], Iterator[Sequence[object]]]:
    batches = _batches(document, buffer, blocks, in_object=in_object)
    return next(batches, []), batches


def _batches(
    document: Document, buffer: bytes, blocks: Iterator[bytes], *, in_object: bool
) -> Iterator[Sequence[object]]:
    """The records of the list that `buffer` begins with, a block at a time; what comes behind goes to the header."""
    n_bytes = 1
    while more := _at_least(blocks, n_bytes):
        records, n_read = _whole_ones(document, buffer)
        if records:
            yield records
            buffer = buffer[n_read:].lstrip(_SPACE).removeprefix(b",")
        n_bytes = 1 if records else len(buffer)  # so a long record is looked at a few times, not once a block
        buffer += more
        if len(buffer) > LONGEST_RECORD_BYTES:
            raise TimelineError(
                f"{document.name} has no two records in {len(buffer):,} bytes, so it is no trace of torch.profiler"
            )
    yield _last(document, buffer, in_object=in_object)


def _at_least(blocks: Iterator[bytes], n_bytes: int) -> bytes:
    """The next blocks, one at least and as many as it takes to have so much; b"" at the end."""
    parts, left = [], max(1, n_bytes)
    while left > 0 and (block := next(blocks, b"")):
        parts.append(block)
        left -= len(block)
    return b"".join(parts)


def _whole_ones(document: Document, buffer: bytes) -> tuple[Sequence[object], int]:
    """The records that are whole in a text that goes on, and how many bytes they are.

    None where no place between two records is found. If it is damage that hides them, more text won't help, and from
    `MEND_FROM_BYTES` on it is read record by record.
    """
    for n in _ends(buffer):
        records = _decoded(buffer[:n])
        if records is not None:
            return records, n
    if len(buffer) < MEND_FROM_BYTES:
        return (), 0
    ends = list(_ends(buffer))
    balanced = [n for n in ends if buffer.count(b"{", 0, n) == buffer.count(b"}", 0, n)]
    for n in (balanced or ends)[:1]:
        return _mended(document, buffer[:n]), n
    return (), 0


def _last(document: Document, buffer: bytes, *, in_object: bool) -> Sequence[object]:
    """The records of the last block, up to the end of the list."""
    end, members = -1, dict[str, object]()
    for end, members in _list_ends(buffer, in_object=in_object):
        records = _decoded(buffer[:end])
        if records is not None:
            document.header.update(members)
            return records
    if end < 0:
        return _cut_short(document, buffer)
    document.header.update(members)  # of the first place from which all the rest can be read
    return _mended(document, buffer[:end])


def _list_ends(buffer: bytes, *, in_object: bool) -> Iterator[tuple[int, dict[str, object]]]:
    """Where the list may end, from the last place on, with the members of the document that then come behind it."""
    end = len(buffer)
    for _ in range(MOST_BRACKETS):
        end = buffer.rfind(b"]", 0, end)
        if end < 0:
            return
        if in_object and not BEHIND_A_LIST.match(buffer, end + 1):
            continue
        tail = buffer[end + 1 :].strip(_SPACE)
        members = _members(tail.removesuffix(b"}").removeprefix(b",")) if in_object else {}
        if members is not None and tail.endswith(b"}") == in_object == bool(tail):
            yield end, members


def _cut_short(document: Document, buffer: bytes) -> Sequence[object]:
    """The whole records of a list that has no end."""
    if not any("in the middle" in note for note in document.notes):
        document.notes.append("the file ends in the middle; what comes after is lost")
    end = len(buffer)
    for _ in range(MOST_TRIES):
        end = buffer.rfind(b"}", 0, end)
        if end < 0:
            return []
        records = _decoded(buffer[: end + 1])
        if records is not None:
            return records
    return _mended(document, buffer[: buffer.rfind(b"}") + 1])


def _ends(buffer: bytes) -> Iterator[int]:
    """Places where a record may end and the next begin, from the last one on, `MOST_TRIES` at most."""
    at = len(buffer)
    for _ in range(MOST_TRIES):
        at = buffer.rfind(b"{", 0, at)
        if at < 0:
            return
        before = buffer[max(0, at - 64) : at].rstrip(_SPACE)
        if before.endswith(b",") and (before := before[:-1].rstrip(_SPACE)).endswith(b"}"):
            yield max(0, at - 64) + len(before)


def _decoded(text: bytes) -> Sequence[object] | None:
    """The records with commas between them in a text of JSON; None where it is none."""
    try:
        return _RECORDS.decode(b"[" + text + b"]")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _mended(document: Document, text: bytes) -> Sequence[object]:
    """As `_decoded`, of a text that isn't JSON to the letter, or whose records aren't like others'."""
    letters = text_of(text, document.mended)
    try:
        found = load_json(f"[{letters}]")
    except RecursionError:
        raise TimelineError(_too_deep(document.name)) from None
    except ValueError:
        return one_by_one(letters, document.mended)
    assert isinstance(found, list)
    return found


def _members(text: bytes) -> dict[str, object] | None:
    """The members of an object, without its braces; None where they can't be read."""
    try:
        found = json.loads(b"{" + text + b"}")
    except (ValueError, RecursionError):
        return None
    return dict(found)


def _whole(document: Document, text: bytes) -> object:
    """A text without a list of events, as JSON, for a sentence on what it is.

    Raises:
        TimelineError: it is no JSON.
    """
    try:
        return load_json(text_of(text, document.mended))
    except json.JSONDecodeError as error:
        raise TimelineError(
            f"{document.name} stops being JSON at line {error.lineno}, column {error.colno} ({error.msg}); "
            "was the recording cut short, or the file edited?"
        ) from None
    except (ValueError, RecursionError):
        raise TimelineError(_too_deep(document.name)) from None


def _too_deep(name: str) -> str:
    return f"{name} nests too deeply or holds a number of thousands of digits, which no profiler writes; record again"
