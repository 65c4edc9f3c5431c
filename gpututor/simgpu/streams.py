"""Streams and events of the simulated device, with CUDA's calls."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from gpututor.model.tape import RecordEvent, Sync, UseStream, WaitEvent
from gpututor.simgpu.forms import device_of
from gpututor.simgpu.session import current


class _Numbers:
    """Which stream is current, and the last number given out."""

    stream: Stream | None = None
    last_stream = 0
    last_event = 0


class Stream:
    """A queue of kernels on the simulated card; work of different streams may overlap."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        _Numbers.last_stream += 1
        self.stream_id = _Numbers.last_stream
        self._outer: Stream | None = None

    @property
    def device(self) -> torch.device:
        """The simulated GPU."""
        return device_of(0)

    def synchronize(self) -> None:
        """Wait until this stream has finished what was launched so far."""
        current.session.account(Sync("stream.synchronize", self.stream_id))

    def query(self) -> bool:
        """Whether the stream has nothing left to do at the host's present time."""
        queue = current.session.player.queue
        return self.stream_id >= len(queue.stream_ns) or queue.stream_ns[self.stream_id] <= queue.host_ns

    def is_capturing(self) -> bool:
        """Graph capture is not simulated yet."""
        return False

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
        self._outer = current_stream()
        set_stream(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_stream(self._outer)


_default = Stream.__new__(Stream)
_default.stream_id, _default._outer = 0, None


def current_stream(device: Any = None) -> Stream:
    """The stream that later kernels join."""
    return _Numbers.stream or _default


def default_stream(device: Any = None) -> Stream:
    """The stream that is current when none was chosen."""
    return _default


def set_stream(stream: Stream | None) -> None:
    """Let later kernels join this stream."""
    _Numbers.stream = stream
    current.session.account(UseStream((stream or _default).stream_id))


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
        _Numbers.last_event += 1
        self.event_id, self.enable_timing = _Numbers.last_event, enable_timing or bool(device is True)
        self._at_ns: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Take the place at the end of the stream."""
        which = (stream or current_stream()).stream_id
        self._at_ns = current.session.player.queue.event_ns(which)
        current.session.account(RecordEvent(self.event_id, which))

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream go on only after this event."""
        current.session.account(WaitEvent(self.event_id, (stream or current_stream()).stream_id))

    def query(self) -> bool:
        """Whether the event has been reached at the host's present time."""
        return self._at_ns is None or self._at_ns <= current.session.host_ns

    def synchronize(self) -> None:
        """The host waits for the event."""
        current.session.account(WaitEvent(self.event_id, None))

    def elapsed_time(self, later: Event) -> float:
        """Virtual milliseconds from this event to `later`."""
        if self._at_ns is None or later._at_ns is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (later._at_ns - self._at_ns) / 1e6


def synchronize(device: Any = None) -> None:
    """The host waits until the card has finished everything."""
    current.session.account(Sync("synchronize"))
