"""Which work on the GPU a CUDA or HIP graph ran."""

from __future__ import annotations

import re

from gpututor.trace.categories import Role
from gpututor.trace.events import Event, Events

LAUNCHES = re.compile(r"^(cuda|cu|hip)GraphLaunch")
"""Source: the API references of CUDA and HIP."""


def graph_numbers(found: Events) -> frozenset[int]:
    """Correlations of the calls that launch a whole graph."""
    names = {name for name in found.names if LAUNCHES.match(name)}
    if not names:
        return frozenset()
    calls = (e for e in found.events if e.name in names and e.role is Role.CALL)
    return frozenset(e.correlation for e in calls if e.correlation is not None)


def is_of_graph(e: Event, numbers: frozenset[int]) -> bool | None:
    """True for what a graph ran, by the call that launched it or its own number of a graph (0: none); else None."""
    if numbers and e.correlation in numbers:
        return True
    graph, node = e.args.graph, e.args.graph_node
    if graph is None and node is None:
        return None
    return True if any(type(number) is int and number > 0 for number in (graph, node)) else None
