"""Which operator launched a kernel: the innermost one around the launch call, on the call's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpututor.trace.categories import Role
from gpututor.trace.demand import Demand, demand_of, shared_out
from gpututor.trace.graphs import is_of_graph
from gpututor.trace.host import HostEvents
from gpututor.trace.kernels import Part
from gpututor.trace.on_gpu import GpuEvent

OUTSIDE = Part(why="launched outside any operator whose shapes are recorded")
IN_A_GRAPH = Part(why="run by a graph, whose operators were seen when it was captured, not here")


def parts_of(host: HostEvents, work: Sequence[GpuEvent], graphs: frozenset[int]) -> Mapping[int, Part]:
    """FLOP and bytes of kernels by `id` of their event; for traces with shapes.

    `graphs` holds the correlations of calls that launch a whole graph.
    """
    kernels = [e for e in work if e.role is Role.KERNEL]
    around = _around_calls(host, frozenset(e.correlation for e in kernels if e.correlation is not None))
    shapes = dict(zip(host.asked_at, host.asked, strict=True))
    named = {n: k for n, k in zip(host.external, host.asked_at, strict=True) if type(n) is int}
    groups: dict[int, list[GpuEvent]] = {}
    out: dict[int, Part] = {}
    for e in kernels:
        if is_of_graph(e.correlation, e.args, graphs):
            out[id(e)] = IN_A_GRAPH
            continue
        operator = around.get(e.correlation) if e.correlation is not None else None
        number = e.args.external
        if operator is None and type(number) is int and number != e.correlation:
            operator = named.get(number)
        if operator is None or operator not in shapes:
            out[id(e)] = OUTSIDE
        else:
            groups.setdefault(operator, []).append(e)
    demands: dict[int, Demand] = {}
    for operator, launched in groups.items():
        asked = shapes[operator]  # one object for the same shapes
        demand = demands.get(id(asked)) or demands.setdefault(id(asked), demand_of(asked))
        if len(launched) == len(demand.parts) == 1:
            out[id(launched[0])] = demand.parts[0]
            continue
        launched.sort(key=lambda e: e.start_ns)
        names, durations_ns = [e.name for e in launched], [e.end_ns - e.start_ns for e in launched]
        for e, part in zip(launched, shared_out(demand, names, durations_ns), strict=True):
            out[id(e)] = part
    return out


def _around_calls(host: HostEvents, wanted: frozenset[int]) -> dict[int, int]:
    """The place of the innermost operator around each call with one of these launch numbers."""
    calls = {k: number for k, number in host.numbers() if number in wanted}
    threads: list[list[int]] = [[] for _ in host.threads.texts]
    is_operator = [told.role is Role.OPERATOR for told in host.told]
    for k, thread in enumerate(host.thread):
        if is_operator[k] or k in calls:
            threads[thread].append(k)
    starts, ends = host.start_ns, host.end_ns
    out: dict[int, int] = {}
    for places in threads:
        places.sort(key=ends.__getitem__, reverse=True)  # of what begins together, the longer is around the other
        places.sort(key=starts.__getitem__)
        open_now: list[int] = []
        for k in places:
            start_ns = starts[k]
            while open_now and ends[open_now[-1]] <= start_ns:
                open_now.pop()
            if is_operator[k]:
                open_now.append(k)
            if k in calls and open_now:  # an operator where an arrow comes from it
                out[calls[k]] = open_now[-1]
    return out
