"""The program's end of the socket: messages out, replies in, and the numbers by which both sides name tensors."""

from __future__ import annotations

import json
import socket
from typing import Any

import torch

from gpututor.simgpu.forms import Form
from gpututor.simgpu.remote import wire
from gpututor.simgpu.remote.told import error_heard
from gpututor.simgpu.streams import card_of
from gpututor.simgpu.tensor import SimTensor, new

ENOUGH_BYTES = 4096  # to be worth a system call, and little enough that the card isn't kept waiting
SEGMENT_BYTES = 20 * wire.MIB  # what the allocator may ask a driver for beyond a tensor's own size


class Handle:
    """A tensor on a card in another process, by its number; the last one to name it lets it go."""

    __slots__ = ("__weakref__", "freed", "lost", "number", "piece")

    def __init__(self, number: int, freed: list[int]) -> None:
        self.number, self.freed, self.lost, self.piece = number, freed, False, None

    def __del__(self) -> None:
        self.freed.append(self.number)


class CardGone(ConnectionError):
    """The card's process has ended, or has closed the socket."""

    def __init__(self) -> None:
        super().__init__("the simulated card has ended the run; what was sent to it made no sense, or took too much")


class Line:
    """One connection to a card."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.freed: list[int] = []
        self.freed_calls: list[int] = []
        self.next_number = 0
        self.next_call = 0
        self.credit_bytes = 0
        """How much surely fits on the card yet: so long an op needn't be waited for to see whether it fits."""
        self.n_modules = 0
        self._texts: list[bytes] = []
        self._raw: list[bytes] = []
        self._n_text = self._n_raw = 0
        self._encoder = json.JSONEncoder(default=self._marked, separators=(",", ":"), check_circular=False)
        self._encode = self._encoder.encode
        self.reply_raw: memoryview = memoryview(b"")

    def _marked(self, value: Any) -> Any:
        if type(value) is SimTensor:
            return {"t": value.block.number}  # type: ignore[attr-defined]  # a Handle, see `made`
        if type(value) is torch.device:
            return {"v": -1 if value.type == "cpu" else card_of(value)}
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu":
                raise NotImplementedError("sparse tensors are not there on a card in another process; make them dense")
            raw: list[bytes] = []
            told = wire.described(value, raw)
            told["h"][0] = self._n_raw
            self._raw += raw
            self._n_raw += len(raw[0])
            return told
        return wire.marked(value)

    # --- messages -------------------------------------------------------------------------------------------------

    def put(self, *message: Any) -> None:
        """Send a message that has no reply; it may lie a while."""
        self._put(0, message)
        if self._n_text > ENOUGH_BYTES or self._n_raw > ENOUGH_BYTES:
            self.flush()

    def ask(self, *message: Any) -> Any:
        """Send a message and wait for what it gives.

        Raises:
            CardGone: the card has closed the socket.
            Exception: whatever the card raised, at this message or at one before it that nobody waited for.
        """
        self._put(1, message)
        self.flush()
        try:
            frame = wire.receive(self.sock)
        except (OSError, wire.Foul):
            frame = None
        if frame is None:
            raise CardGone
        reply = json.loads(frame[0])
        self.reply_raw = frame[1]
        self.credit_bytes = reply.get("m", 0)
        if "e" in reply:
            raise error_heard(*reply["e"])
        return reply["v"]

    def _put(self, waits: int, message: tuple[Any, ...]) -> None:
        if self.freed:
            self._text([0, "x", *self._taken(self.freed)])
        if self.freed_calls:
            self._text([0, "y", *self._taken(self.freed_calls)])
        if self.n_modules:
            n, self.n_modules = self.n_modules, 0
            self._text([0, "q", "modules", [n]])
        self._text((waits, *message))

    def _taken(self, numbers: list[int]) -> list[int]:
        n = len(numbers)  # a destructor may add to the list at any time
        taken = numbers[:n]
        del numbers[:n]
        return taken

    def _text(self, message: Any) -> None:
        text = self._encode(message).encode()
        self._texts.append(text)
        self._n_text += len(text)

    def flush(self) -> None:
        """Send what lies there.

        Raises:
            CardGone: the card has closed the socket.
        """
        if not self._texts:
            return
        texts, raw = self._texts, self._raw
        self._texts, self._raw, self._n_text, self._n_raw = [], [], 0, 0
        try:
            wire.send(self.sock, b"\n".join(texts), raw)
        except OSError:
            raise CardGone from None

    # --- tensors --------------------------------------------------------------------------------------------------

    def made(self, form: Form) -> SimTensor:
        """A tensor that the card has made, or is about to, under the next number."""
        number = self.next_number
        self.next_number = number + 1
        return new(form, None, Handle(number, self.freed))  # type: ignore[arg-type]  # a block, by name only

    def host_tensor(self, told: Any) -> torch.Tensor:
        """A tensor of the CPU that came with the last reply."""
        return wire.tensor_of(told, self.reply_raw)

    def spend(self, n_bytes: int, n_tensors: int) -> bool:
        """Whether so much surely fits on the card, so that nobody need wait to see it."""
        self.credit_bytes -= n_bytes + n_tensors * SEGMENT_BYTES
        return self.credit_bytes > 0
