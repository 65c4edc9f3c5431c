"""Frames on a socket: two lengths, a text, and raw bytes. Without torch, as judges read them too."""

from __future__ import annotations

import socket
import struct

from gpututor.errors import GpututorError

HEAD = struct.Struct("<II")
MIB = 1 << 20
MAX_TEXT_BYTES = 8 * MIB
MAX_RAW_BYTES = 256 * MIB


class Foul(GpututorError):
    """The other side sent what no program sends."""


def foul(what: str) -> Foul:
    """The error for one kind of nonsense."""
    return Foul(f"your code's process sent its simulated card {what}, which torch never does; leave its socket alone")


def send(sock: socket.socket, text: bytes, raw: list[bytes] | tuple[bytes, ...] = ()) -> None:
    """One frame."""
    sock.sendall(b"".join((HEAD.pack(len(text), sum(map(len, raw))), text, *raw)))


def receive(sock: socket.socket) -> tuple[bytes, memoryview] | None:
    """The next frame's text and raw bytes; None where the other side has closed.

    Raises:
        Foul: the frame is longer than any may be, or ends in the middle.
    """
    head = _exactly(sock, HEAD.size, or_end=True)
    if not head:
        return None
    n_text, n_raw = HEAD.unpack(head)
    if n_text > MAX_TEXT_BYTES or n_raw > MAX_RAW_BYTES:
        raise foul(f"a frame of {(n_text + n_raw) // MIB:,} MiB")
    return bytes(_exactly(sock, n_text)), memoryview(_exactly(sock, n_raw))


def _exactly(sock: socket.socket, n: int, or_end: bool = False) -> bytearray:
    got = bytearray(n)
    view, at = memoryview(got), 0
    while at < n:
        some = sock.recv_into(view[at:])
        if not some:
            if or_end and not at:
                return bytearray()
            raise foul("half a frame")
        at += some
    return got
