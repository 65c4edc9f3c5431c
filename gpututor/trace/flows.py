"""Arrows from a host call to what it started on the GPU, for work that has no correlation number.

Chrome's format writes an arrow as two records of one id: "s" within the call, "f" at the start of the work.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from gpututor.trace.categories import Role
from gpututor.trace.exact import whole_ns
from gpututor.trace.host import HostEvent, HostEvents
from gpututor.trace.on_gpu import GpuEvent
from gpututor.trace.records import Record

Thread = tuple[str, str]


def link(host: HostEvents, work: Sequence[GpuEvent], arrows: Iterable[Record]) -> None:
    """Give work without a correlation, and the call that its arrow comes from, a number that they share."""
    loose = [e for e in work if e.correlation is None]
    if not loose:
        return
    begins: dict[str, tuple[Thread, int]] = {}
    ends: dict[tuple[Thread, int], str] = {}
    for arrow in arrows:
        at_ns, place = whole_ns(arrow.ts), (str(arrow.pid), str(arrow.tid))
        if at_ns is not None and arrow.id is not None:
            key = f"{arrow.name} {arrow.id}"
            if arrow.ph == "s":
                begins[key] = place, at_ns
            elif arrow.ph == "f":
                ends[place, at_ns] = key
    if not begins:
        return
    calls = dict(zip(host.threads.texts, host.by_thread(Role.CALL, Role.OPERATOR), strict=True))
    numbers = dict(host.numbers())
    number = max([*numbers.values(), *(e.correlation for e in work if e.correlation is not None)], default=0)
    for e in loose:
        key = ends.get(((str(e.pid), str(e.tid)), e.start_ns), "")
        caller = _around(calls.get(begins[key][0], []), begins[key][1]) if key in begins else None
        if caller is None:
            continue
        if caller.at not in numbers:
            number += 1
            numbers[caller.at] = host.caller[caller.at] = number
        e.correlation = numbers[caller.at]


NEAR = 64
"""Our limit: how many records before an arrow are looked at for the one around it; operators don't nest deeper."""


def _around(thread: Sequence[HostEvent], at_ns: int) -> HostEvent | None:
    """The innermost call around a time, else the innermost operator."""
    last = bisect_right(thread, at_ns, key=lambda e: e.start_ns)
    near = [e for e in reversed(thread[max(0, last - NEAR) : last]) if e.end_ns >= at_ns]
    return next((e for e in near if e.told.role is Role.CALL), near[0] if near else None)
