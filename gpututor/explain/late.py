"""When one rank waits for the last in collectives, and who that is.

A collective is over on all ranks at about the same time, when the last to come has done its part. What a rank spends in
it before the last one starts is a wait. In one trace the clock is the same for all, and starts are compared. Each trace
of a folder may have a clock of its own; there ends are laid over one another, and the last to start is the one whose
collective is the shortest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpututor.causes import Awaited
from gpututor.timeline import Activity, Span, Timeline

LEAST_MATCHED_SHARE = 0.5
"""Our choice: where most collectives have no partner, the traces are of different work or of different times."""

Kind = tuple[str, str | None]
"""Name of a collective, and its process group where the trace tells it."""

ByKind = Mapping[Kind, Sequence[Span]]


def collectives(timeline: Timeline, device: int | None) -> dict[Kind, list[Span]]:
    """Collectives of one GPU by name and process group, in order."""
    own = {k for k, lane in enumerate(timeline.lanes) if device is None or lane.device in (None, device)}
    found: dict[Kind, list[Span]] = {}
    for span in sorted((s for s in timeline.on(Activity.COLLECTIVE) if s.lane in own), key=lambda s: s.start_ns):
        found.setdefault((span.name, span.work.group if span.work else None), []).append(span)
    return found


def awaited(ranks: Sequence[ByKind], names: Sequence[str], own: int, *, one_clock: bool) -> Awaited | None:
    """The waits of rank `own`; None where there is one rank only, or too few collectives have partners on all.

    Collectives are partners that have the same name and process group, of which every rank has equally many, and the
    same place among them. Where the group is known, ranks without any of it aren't in it. With one clock they must also
    run at the same time.
    """
    n_own = sum(len(spans) for spans in ranks[own].values())
    if len(ranks) < 2 or not n_own:
        return None
    intervals: list[tuple[int, int]] = []
    last = Counter[str]()
    n_matched = 0
    for kind, spans in ranks[own].items():
        members = [k for k, rank in enumerate(ranks) if kind in rank or kind[1] is None]
        everywhere = [ranks[k].get(kind, ()) for k in members]
        if len(members) < 2 or any(len(each) != len(spans) for each in everywhere):
            continue
        for partners in zip(*everywhere, strict=True):
            starts = [s.start_ns if one_clock else -s.duration_ns for s in partners]
            if one_clock and max(starts) > min(s.end_ns for s in partners):
                continue
            n_matched += 1
            latest = max(range(len(starts)), key=starts.__getitem__)
            last[names[members[latest]]] += 1
            me = members.index(own)
            intervals.append((partners[me].start_ns, partners[me].start_ns + starts[latest] - starts[me]))
    if n_matched < LEAST_MATCHED_SHARE * n_own:
        return None
    return Awaited(tuple(intervals), n_matched, tuple(last.most_common()))
