"""Which operator launched a kernel: the innermost one around the launch call, on the call's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from gpututor.trace.categories import Role
from gpututor.trace.demand import Demand, demand_of, shared_out
from gpututor.trace.events import Event
from gpututor.trace.graphs import is_of_graph
from gpututor.trace.kernels import Part
from gpututor.trace.records import Asked

START, END = attrgetter("start_ns"), attrgetter("end_ns")
OUTSIDE = "launched outside any operator whose shapes are recorded"
IN_A_GRAPH = "run by a graph, whose operators were seen when it was captured, not here"


def parts_of(events: Sequence[Event], graphs: frozenset[int]) -> Mapping[int, Part]:
    """FLOP and bytes of kernels by `id` of their event; for traces with shapes.

    `graphs` holds the correlations that `graph_numbers` gives.
    """
    around = _around_calls(events)
    named = {e.args.external: e for e in events if e.asked is not None and type(e.args.external) is int}
    groups: dict[int, tuple[Event, list[Event]]] = {}
    out: dict[int, Part] = {}
    for e in events:
        if e.role is not Role.KERNEL:
            continue
        if is_of_graph(e, graphs):
            out[id(e)] = Part(why=IN_A_GRAPH)
            continue
        operator = around.get(e.correlation) if e.correlation is not None else None
        number = e.args.external
        if operator is None and type(number) is int and number != e.correlation:
            operator = named.get(number)
        if operator is None or operator.asked is None:
            out[id(e)] = Part(why=OUTSIDE)
        else:
            groups.setdefault(id(operator), (operator, []))[1].append(e)
    demands: dict[Asked, Demand] = {}
    for operator, kernels in groups.values():
        assert operator.asked is not None
        if operator.asked not in demands:
            demands[operator.asked] = demand_of(operator.asked)
        kernels.sort(key=lambda e: e.start_ns)
        names, durations_ns = [e.name for e in kernels], [e.end_ns - e.start_ns for e in kernels]
        for e, part in zip(kernels, shared_out(demands[operator.asked], names, durations_ns), strict=True):
            out[id(e)] = part
    return out


def _around_calls(events: Sequence[Event]) -> dict[int, Event]:
    """The innermost operator around each call that launched something, by correlation."""
    threads: dict[tuple[object, object], list[Event]] = {}
    for e in events:
        if e.role is Role.OPERATOR or (e.role is Role.CALL and e.correlation is not None):
            place = (e.pid, e.tid) if type(e.tid) is int and type(e.pid) is int else (str(e.pid), str(e.tid))
            threads.setdefault(place, []).append(e)
    out: dict[int, Event] = {}
    for thread in threads.values():
        thread.sort(key=END, reverse=True)  # of what begins at the same time, what lasts longer is around the other
        thread.sort(key=START)
        open_now: list[Event] = []
        for e in thread:
            while open_now and open_now[-1].end_ns <= e.start_ns:
                open_now.pop()
            if e.role is Role.OPERATOR:
                open_now.append(e)
                if e.correlation is not None:  # an arrow comes from it
                    out[e.correlation] = e
            elif open_now and e.correlation is not None:
                out[e.correlation] = open_now[-1]
    return out
