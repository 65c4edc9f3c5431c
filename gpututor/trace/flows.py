"""Arrows from a host call to what it started on the GPU, for work that has no correlation number.

Chrome's format writes an arrow as two records of one id: "s" within the call, "f" at the start of the work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from gpututor.trace.categories import ON_GPU, Role
from gpututor.trace.events import Event
from gpututor.trace.exact import whole_ns
from gpututor.trace.records import Record

Place = tuple[str, str]


def link(events: Sequence[Event], arrows: Iterable[Record]) -> None:
    """Give work without a correlation, and the call that its arrow comes from, a number that they share."""
    loose = [e for e in events if e.role in ON_GPU and e.correlation is None]
    if not loose:
        return
    begins: dict[str, tuple[Place, int]] = {}
    ends: dict[tuple[Place, int], str] = {}
    for arrow in arrows:
        at_ns, place = whole_ns(arrow.ts), (str(arrow.pid), str(arrow.tid))
        if at_ns is not None and arrow.id is not None:
            key = f"{arrow.name} {arrow.id}"
            if arrow.ph == "s":
                begins[key] = place, at_ns
            elif arrow.ph == "f":
                ends[place, at_ns] = key
    callers = _callers(events, {place for place, _ in begins.values()}) if begins else {}
    number = max((e.correlation for e in events if e.correlation is not None), default=0)
    for work in loose:
        key = ends.get(((str(work.pid), str(work.tid)), work.start_ns), "")
        caller = _around(callers.get(begins[key][0], []), begins[key][1]) if key in begins else None
        if caller is None:
            continue
        if caller.correlation is None:
            number += 1
            caller.correlation = number
        work.correlation = caller.correlation


def _callers(events: Sequence[Event], places: set[Place]) -> dict[Place, list[Event]]:
    """Driver calls and operators by thread, in order of their start."""
    out: dict[Place, list[Event]] = {place: [] for place in places}
    for e in events:
        if e.role is Role.CALL or e.role is Role.OPERATOR:
            thread = out.get((str(e.pid), str(e.tid)))
            if thread is not None:
                thread.append(e)
    for thread in out.values():
        thread.sort(key=lambda e: (e.start_ns, -e.end_ns, e.role is Role.CALL))
    return out


NEAR = 64
"""Our limit: how many records before an arrow are looked at for the one around it; operators don't nest deeper."""


def _around(thread: Sequence[Event], at_ns: int) -> Event | None:
    """The innermost call around a time, else the innermost operator."""
    last = bisect_right(thread, at_ns, key=lambda e: e.start_ns)
    near = [e for e in reversed(thread[max(0, last - NEAR) : last]) if e.end_ns >= at_ns]
    return next((e for e in near if e.role is Role.CALL), near[0] if near else None)
