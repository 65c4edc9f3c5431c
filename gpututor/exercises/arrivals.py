"""What a run's launches say of its copies to the card: how long each kept it waiting, and who waited for it."""

from __future__ import annotations

from collections import defaultdict

from gpututor.model.kernels import Gemm
from gpututor.model.tape import CopyCall, Entry, RecordEvent, Sync, Tape, TapeOp, UseStream, WaitEvent
from gpututor.timeline import COMPUTING, Activity, Timeline, covered_ns

Arrived = frozenset[int]


def exposed_ns(timeline: Timeline) -> list[tuple[int, int]]:
    """For each copy to the card, in order: its length, and how much of it no kernel ran beside; in nanoseconds."""
    kernels = [span for span in timeline.spans if span.activity in COMPUTING]
    copies = sorted((span.start_ns, span.end_ns) for span in timeline.on(Activity.COPY_TO_GPU))
    return [(end - start, end - start - covered_ns(kernels, (start, end))) for start, end in copies]


def learned_too_soon(tape: Tape, n_bytes: int, n_values: int) -> tuple[int, list[int]]:
    """How often something was learned, and the numbers of the batches used before their copy has surely ended.

    A batch's copy has `n_bytes` or more, and learning from it begins with a product over a picture's `n_values`: that
    is read from what was launched, and needs no mark of the program's.

    Whether a kernel that is too early would really meet an unfinished copy depends on the card and the day, so the
    order is what counts here, not the times.
    """
    knows = _WhoKnows(n_bytes)
    n_learned = 0
    too_soon: list[int] = []
    for entry in tape.entries:
        if type(entry) is TapeOp and entry.kernels:
            seen = knows.launched()
            if any(isinstance(kernel, Gemm) and kernel.k == n_values for kernel in entry.kernels):
                if n_learned not in seen:
                    too_soon.append(n_learned)
                n_learned += 1
        else:
            knows.follow(entry)
    return n_learned, too_soon


class _WhoKnows:
    """Which copies are over for sure, for what comes next in each stream, after each event, and for the host."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes, self._n_copies, self._here = n_bytes, 0, 0
        self._streams: dict[int, Arrived] = defaultdict(frozenset)
        self._events: dict[int, Arrived] = {}
        self._host: Arrived = frozenset()

    def launched(self) -> Arrived:
        """The copies that are over when a kernel launched now begins: whatever the host knew, and its stream."""
        self._streams[self._here] |= self._host
        return self._streams[self._here]

    def follow(self, entry: Entry) -> None:
        """Something else than a kernel was asked for."""
        match entry:
            case UseStream():
                self._here = entry.stream
            case CopyCall():
                self._copied(entry)
            case RecordEvent():
                self._events[entry.event] = self._host | self._streams[entry.stream]
            case WaitEvent(stream=None):
                self._host |= self._events.get(entry.event, frozenset())
            case WaitEvent(stream=int(stream)):
                self._streams[stream] |= self._events.get(entry.event, frozenset())
            case Sync():
                waited = (entry.stream,) if isinstance(entry.stream, int) else entry.stream
                for stream in list(self._streams) if waited is None else waited:
                    self._host |= self._streams[stream]

    def _copied(self, copy: CopyCall) -> None:
        if copy.to_gpu and copy.n_bytes >= self._n_bytes:
            self._streams[self._here] |= {self._n_copies}
            self._n_copies += 1
        if copy.blocking:
            self._host |= self._streams[self._here]
