"""Which work on the GPU a CUDA or HIP graph ran."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpututor.trace.categories import Role
from gpututor.trace.events import Event

LAUNCHES = re.compile(r"^(cuda|cu|hip)GraphLaunch")
"""Source: the API references of CUDA and HIP."""


def graph_numbers(events: Sequence[Event]) -> frozenset[int]:
    """Correlations of the calls that launch a whole graph."""
    calls = (e for e in events if e.role is Role.CALL and "GraphLaunch" in e.name and LAUNCHES.match(e.name))
    return frozenset(e.correlation for e in calls if e.correlation is not None)


def is_of_graph(e: Event, numbers: frozenset[int]) -> bool | None:
    """True for what a graph ran, by the call that launched it or its own number of a graph (0: none); else None."""
    if numbers and e.correlation in numbers:
        return True
    for number in (e.args.graph, e.args.graph_node):
        if type(number) is int and number > 0:
            return True
    return None
