"""Which work on the GPU a CUDA or HIP graph ran."""

from __future__ import annotations

import re

from gpututor.trace.records import Args

GRAPH_LAUNCHES = re.compile(r"^(cuda|cu|hip)GraphLaunch")
"""Source: the API references of CUDA and HIP."""


def is_of_graph(correlation: int | None, args: Args, numbers: frozenset[int]) -> bool | None:
    """True for what a graph ran, by the call that launched it or its own number of a graph (0: none); else None."""
    if numbers and correlation in numbers:
        return True
    graph, node = args.graph, args.graph_node
    if graph is None and node is None:
        return None
    return True if any(type(number) is int and number > 0 for number in (graph, node)) else None
