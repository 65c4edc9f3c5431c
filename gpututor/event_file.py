"""Event files for TensorBoard, written without it: TFRecords of `Event` messages with one scalar each value.

A record is its length (8 bytes), the checksum of these 8 bytes, the message, and the message's checksum, all little
endian. A checksum is CRC-32C, turned by 15 bits and moved, so that a record within a record is told apart. Sources:
TensorFlow, `core/lib/io/record_writer.cc` and `core/util/event.proto`, `core/framework/summary.proto`.
"""

from __future__ import annotations

import os
import platform
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpututor.errors import WatchNotKept

VERSION = b"brain.Event:2"  # what a reader expects of the first record
CASTAGNOLI = 0x82F63B78  # CRC-32C's polynomial, bits reversed; source: RFC 3720, section 12.1
MASK = 0xA282EAD8  # source: TensorFlow, core/lib/hash/crc32c.h
VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5  # wire types of protocol buffers


def _table() -> Iterator[int]:
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (CASTAGNOLI if crc & 1 else 0)
        yield crc


TABLE = tuple(_table())


def crc32c(data: bytes) -> int:
    """CRC-32C of the bytes.

    >>> hex(crc32c(b"123456789"))  # the check value that the catalogue of CRCs gives
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """A checksum as it stands in a record."""
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF


def record(message: bytes) -> bytes:
    """One record of the file."""
    length = struct.pack("<Q", len(message))
    sums = (struct.pack("<I", masked(crc32c(part))) for part in (length, message))
    return length + next(sums) + message + next(sums)


def _field(number: int, wire: int, content: bytes) -> bytes:
    size = _varint(len(content)) if wire == BYTES else b""
    return _varint(number << 3 | wire) + size + content


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes((*out, n))


def event(wall_time_s: float, step: int, values: Mapping[str, float]) -> bytes:
    """One `Event`: these values at this step."""
    summary = b"".join(
        _field(1, BYTES, _field(1, BYTES, tag.encode()) + _field(2, FLOAT, struct.pack("<f", value)))
        for tag, value in values.items()
    )
    return (
        _field(1, DOUBLE, struct.pack("<d", wall_time_s)) + _field(2, VARINT, _varint(step)) + _field(5, BYTES, summary)
    )


class EventFile:
    """A new event file in a folder, which may hold others; each event is on disk when `put` returns."""

    def __init__(self, folder: Path, now_s: float | None = None) -> None:
        now_s = time.time() if now_s is None else now_s
        self.path = folder / f"events.out.tfevents.{int(now_s)}.{platform.node() or 'host'}.{os.getpid()}.gpututor"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except OSError as error:
            raise WatchNotKept(f"{folder} takes no event file ({error.strerror}); choose another folder") from error
        self._write(_field(1, DOUBLE, struct.pack("<d", now_s)) + _field(3, BYTES, VERSION))

    def put(self, wall_time_s: float, step: int, values: Mapping[str, float]) -> None:
        """Write these values, by tag, as one event."""
        self._write(event(wall_time_s, step, values))

    def close(self) -> None:
        """No more is kept."""
        self._file.close()

    def _write(self, message: bytes) -> None:
        self._file.write(record(message))
        self._file.flush()
