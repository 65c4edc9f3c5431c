"""Streams and events of the simulated device, with CUDA's calls.

Work in one stream runs in order. Streams that a program makes wait for nothing by themselves, not even for the default
stream: torch makes them non-blocking (cudaStreamNonBlocking). So what is computed in one stream and read in
another needs `wait_stream` or an event in between. The numbers are right here even without; on a card they might not
be. A wait for an event that was never recorded is over at once, as on CUDA.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from gpututor.model.spec import HostKind
from gpututor.model.tape import RecordEvent, Sync, TapeOp, WaitEvent
from gpututor.simgpu.forms import device_of
from gpututor.simgpu.session import current, no_such_card, thread

QUERY = TapeOp("query", HostKind.VIEW, "no_grad")  # Python and a short call, like an op that launches nothing


def card_of(device: Any = None) -> int:
    """The number of a card given in any of torch's ways; the current card by default.

    Raises:
        RuntimeError: the machine has no such card, or it is another kind of device.
    """
    if device is None:
        return thread.card
    if isinstance(device, int):
        index = device if device >= 0 else thread.card
    else:
        wanted = torch.device(device)
        if wanted.type not in ("simgpu", "cuda"):
            raise ValueError(f"Expected a simgpu device, but got: {wanted}")
        given: int | None = wanted.index
        index = thread.card if given is None else given
    machine = current.session.machine
    if index >= machine.n_cards:
        raise no_such_card(machine, index)
    return index


class Stream:
    """A queue of kernels on a simulated card; work of different streams may overlap."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.card = card_of(device)
        self.priority = min(0, int(priority))  # noted, without effect: kernels start in the order of their launch
        self._entered: list[StreamContext] = []

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority."""
        return 0, -1

    @property
    def stream_id(self) -> int:
        """The stream's number on the running machine; 0 is the first card's default stream."""
        return current.session.number_of(self, self.card)

    @property
    def device(self) -> torch.device:
        """The simulated GPU."""
        return device_of(self.card)

    @property
    def device_index(self) -> int:
        """The number of the simulated GPU."""
        return self.card

    @property
    def cuda_stream(self) -> int:
        """A number in the place of CUDA's handle."""
        return self.stream_id

    def synchronize(self) -> None:
        """Wait until this stream has finished what was launched so far."""
        current.session.account(Sync("stream.synchronize", self.stream_id))

    def query(self) -> bool:
        """Whether the stream has nothing left to do at the host's present time."""
        number = self.stream_id
        current.session.account(QUERY)
        queue = current.session.player.queue
        return number >= len(queue.stream_ns) or queue.stream_ns[number] <= queue.host_ns

    def is_capturing(self) -> bool:
        """Whether a graph is being captured on this stream."""
        return current.session.capturing is not None

    def record_event(self, event: Event | None = None) -> Event:
        """An event at the end of this stream."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Start nothing more before the event is reached."""
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        """Start nothing more before `other` has finished what was launched so far."""
        self.wait_event(other.record_event())

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__()

    def __repr__(self) -> str:
        return f"<torch.simgpu.Stream device=simgpu:{self.card} number={self.stream_id}>"


class _Default(Stream):
    """A card's default stream."""

    def __init__(self, card: int) -> None:
        self.card, self.priority, self._entered = card, 0, []

    @property
    def stream_id(self) -> int:
        """The card's own number."""
        return self.card


_defaults: dict[int, _Default] = {}


def default_stream(device: Any = None) -> Stream:
    """The stream that is current on a card when none was chosen."""
    card = card_of(device)
    if card not in _defaults:
        _defaults[card] = _Default(card)
    return _defaults[card]


def current_stream(device: Any = None) -> Stream:
    """The stream of a card that later kernels join."""
    card = card_of(device)
    chosen = current.session.chosen_streams.get(card)
    return chosen if isinstance(chosen, Stream) else default_stream(card)


def set_stream(stream: Stream) -> None:
    """Let later kernels of the stream's card join it."""
    session = current.session
    session.chosen_streams[stream.card] = stream
    session.stream_numbers[stream.card] = stream.stream_id
    session.memories[stream.card].use_stream(stream.stream_id)
    session.use_card(stream.card)
    thread.card = stream.card


class StreamContext:
    """`with torch.simgpu.stream(s):` makes `s` and its card the current ones meanwhile; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: tuple[int, Stream, Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = thread.card, current_stream(), current_stream(self.stream.card)
            set_stream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            card, here, there = self._before
            set_stream(there)
            if card != there.card:
                set_stream(here)
            thread.card = card


class ExternalStream:
    """Not offered: a stream made by another library exists on a real card only."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("the simulated GPU knows no streams of other libraries; use torch.simgpu.Stream()")


class Event:
    """A mark in a stream; two of them measure virtual time."""

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        **_: Any,
    ) -> None:
        if interprocess:
            raise NotImplementedError("a simulated GPU lives in one process; make the event without interprocess=True")
        self.enable_timing = enable_timing or device is True
        self.blocking = blocking  # the host waits either way; a blocking wait would only spare its CPU
        self.event_id = current.session.new_event()
        self._at_ns: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Take the place at the end of the stream."""
        session = current.session
        session.account(RecordEvent(self.event_id, (stream or current_stream()).stream_id))
        self._at_ns = session.player.events.get(self.event_id)

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream go on only after this event."""
        current.session.account(WaitEvent(self.event_id, (stream or current_stream()).stream_id))

    def query(self) -> bool:
        """Whether the event has been reached at the host's present time; asking takes time, so a loop of it ends."""
        current.session.account(QUERY)
        return self._at_ns is None or self._at_ns <= current.session.host_ns

    def synchronize(self) -> None:
        """The host waits for the event."""
        current.session.account(WaitEvent(self.event_id, None))

    def elapsed_time(self, later: Event) -> float:
        """Virtual milliseconds from this event to `later`.

        Raises:
            RuntimeError: one of them was made without timing, was not recorded, or is not reached yet.
        """
        if not (self.enable_timing and later.enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._at_ns is None or later._at_ns is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        if max(self._at_ns, later._at_ns) > current.session.host_ns:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return (later._at_ns - self._at_ns) / 1e6


def synchronize(device: Any = None) -> None:
    """The host waits until a card (the current one by default) has finished everything."""
    session = current.session
    card = card_of(device)
    streams = [k for k, where in enumerate(session.player.queue.stream_card) if where == card]
    session.account(Sync("synchronize", None if session.machine.n_cards == 1 else tuple(streams)))
