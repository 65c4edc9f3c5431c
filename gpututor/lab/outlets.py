"""What comes out of a learner's process while it runs: prints and the answer, each read only up to its limit."""

from __future__ import annotations

import os
import selectors
import time
from dataclasses import dataclass, field

from gpututor.lab.limits import MAX_ANSWER_BYTES, MAX_PRINTED_BYTES, PRINTED_BYTES, Cut


@dataclass(slots=True)
class Watched:
    """What came out of the process so far, why it was cut off if it was, and how it ended if it did."""

    printed: bytearray = field(default_factory=bytearray)
    answer: bytearray = field(default_factory=bytearray)
    printed_bytes: int = 0
    cut: Cut | None = None
    returncode: int | None = None

    def text(self) -> str:
        """The beginning of what was printed."""
        return bytes(self.printed).decode("utf-8", "replace")


def read_some(outlets: selectors.BaseSelector, watched: Watched, wait_s: float) -> bool:
    """Read one piece from every outlet that has one; whether there was any.

    An outlet is registered with True for the answer, False for prints, None for something that the caller reads.
    """
    if not outlets.get_map():
        time.sleep(wait_s)
        return False
    some = False
    for key, _ in outlets.select(wait_s):
        if key.data is None:
            continue
        piece = os.read(key.fd, 2**16)
        if not piece:
            outlets.unregister(key.fileobj)
            continue
        some = True
        if key.data:
            watched.answer += piece
        else:
            watched.printed_bytes += len(piece)
            watched.printed += piece[: PRINTED_BYTES - len(watched.printed)]
    if watched.printed_bytes > MAX_PRINTED_BYTES:
        watched.cut = "output"
    if len(watched.answer) > MAX_ANSWER_BYTES:
        watched.cut = "answer"
    return some
