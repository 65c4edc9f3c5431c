"""What a run's launches say about its copies to the card: how long each kept it waiting, and whether it was waited for."""

from __future__ import annotations

from collections import defaultdict

from gpututor.exercises.on_card.ex08 import LEARNS
from gpututor.model.tape import CopyCall, HostWork, RecordEvent, Sync, Tape, TapeOp, UseStream, WaitEvent
from gpututor.timeline import COMPUTING, Activity, Timeline, covered_ns

Arrived = frozenset[int]


def exposed_ns(timeline: Timeline) -> list[tuple[int, int]]:
    """For each copy to the card, in order: its length, and how much of it no kernel ran beside; in nanoseconds."""
    kernels = [span for span in timeline.spans if span.activity in COMPUTING]
    copies = sorted((span.start_ns, span.end_ns) for span in timeline.on(Activity.COPY_TO_GPU))
    return [(end - start, end - start - covered_ns(kernels, (start, end))) for start, end in copies]


def learned_too_soon(tape: Tape, n_bytes: int) -> list[int]:
    """The numbers of the batches that kernels may use before their copy (`n_bytes` or more) has ended.

    Follows who is known to have waited for which copy: a stream for those in it, for those behind an event it waited
    for, and for all that the host knew of when it launched. Whether a too early kernel would really meet an unfinished
    copy depends on the card and the day, so the order is what counts, not the times.
    """
    streams: dict[int, Arrived] = defaultdict(frozenset)
    events: dict[int, Arrived] = {}
    host: Arrived = frozenset()
    here = n_copies = n_learned = 0
    too_soon: list[int] = []
    asked = False
    for entry in tape.entries:
        if type(entry) is UseStream:
            here = entry.stream
        elif type(entry) is CopyCall and entry.to_gpu:
            if entry.n_bytes >= n_bytes:
                streams[here] |= {n_copies}
                n_copies += 1
            host = host | streams[here] if entry.blocking else host
        elif type(entry) is CopyCall:
            host = host | streams[here] if entry.blocking else host
        elif type(entry) is RecordEvent:
            events[entry.event] = host | streams[entry.stream]
        elif type(entry) is WaitEvent and entry.stream is not None:
            streams[entry.stream] |= events.get(entry.event, frozenset())
        elif type(entry) is WaitEvent:
            host = host | events.get(entry.event, frozenset())
        elif type(entry) is Sync:
            host = frozenset.union(host, *(streams[k] for k in _waited_for(entry, streams)))
        elif type(entry) is HostWork and entry.name == LEARNS:
            asked = True
        elif type(entry) is TapeOp and entry.kernels:
            streams[here] |= host
            if asked and n_learned not in streams[here]:
                too_soon.append(n_learned)
            n_learned, asked = n_learned + asked, False
    return too_soon


def _waited_for(sync: Sync, streams: dict[int, Arrived]) -> list[int]:
    if sync.stream is None:
        return list(streams)
    return [sync.stream] if isinstance(sync.stream, int) else list(sync.stream)
