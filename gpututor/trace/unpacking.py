"""A file as blocks of bytes, unpacked where it is gzip: never more than a block of it in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gpututor.errors import TimelineError

LARGEST_BYTES = 2 * 1024**3
"""Our limit on the unpacked size, against files made to fill the memory. A traced step takes some megabytes."""

BLOCK_BYTES = 128 * 1024
"""Our choice: records of a block stay in the processor's cache until they are sorted out."""
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


def blocks_of(path: Path, losses: list[str]) -> Iterator[bytes]:
    """The file's text in blocks; gzip is recognised by content, whatever the file is called.

    A packed file that ends in the middle, or is damaged there, gives what stands before that, and a sentence in
    `losses`.

    Raises:
        TimelineError: the file can't be read, is damaged at its beginning, or unpacks to more than `LARGEST_BYTES`.
    """
    n_bytes = 0
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            for block in _unpacked(path.name, file, losses) if packed else _plain(file):
                n_bytes += len(block)
                if n_bytes > LARGEST_BYTES:
                    raise TimelineError(
                        f"{path.name} holds more than {LARGEST_BYTES:,} bytes of text; record fewer steps"
                    )
                yield block
    except OSError as error:
        raise TimelineError(f"{path} can't be read: {error.strerror or error}") from None


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block


def _unpacked(name: str, file: BinaryIO, losses: list[str]) -> Iterator[bytes]:
    """What the gzip stream holds, several members in a row included."""
    n_bytes, waiting = 0, b""
    unpacker = zlib.decompressobj(wbits=31)  # 31: a gzip header with the largest window; source: zlib manual
    while True:
        waiting = waiting or file.read(BLOCK_BYTES)
        if not waiting:
            if not unpacker.eof:
                losses.append("the gzip file ends in the middle; what comes after is lost")
            return
        try:
            block = unpacker.decompress(waiting, BLOCK_BYTES)
        except zlib.error as error:
            if not n_bytes:
                raise TimelineError(f"{name} is a damaged gzip file ({error}); copy or record it again") from None
            losses.append("the gzip file is damaged in the middle; what comes after is lost")
            return
        n_bytes += len(block)
        if block:
            yield block
        waiting = unpacker.unconsumed_tail
        if unpacker.eof:
            waiting = (unpacker.unused_data + file.read(BLOCK_BYTES)).lstrip(b"\0")
            if not waiting:
                return
            unpacker = zlib.decompressobj(wbits=31)
