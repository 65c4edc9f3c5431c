"""The kernels of one op as a chain: when each of them ends, from the times at which its host and its stream begin.

Kernels of one stream run one after the other, so each ends at the later of two times: as the stream's earlier work
allows, and as the host's launches do. Both are sums that don't depend on when the op comes, and are worked out once.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.model.priced import PricedOp

LONG = 8
"""From so many kernels on a chain is quicker than one kernel after the other."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Nanoseconds until each kernel of an op has ended: after the stream's earlier work, and after the host's start."""

    op: PricedOp
    after_stream_ns: tuple[int, ...]
    after_host_ns: tuple[int, ...]
    summed_ns: int

    def ends_ns(self, ready_ns: int, host_ns: int) -> list[int]:
        """When each kernel ends, for a stream that is ready then (0: it never worked) and a host that starts then."""
        by_stream, by_host = self.after_stream_ns, self.after_host_ns
        if not ready_ns or ready_ns + by_stream[0] <= host_ns + by_host[0]:  # the host stays behind from here on
            return [host_ns + after for after in by_host]
        if ready_ns + by_stream[-1] >= host_ns + by_host[-1]:
            return [ready_ns + after for after in by_stream]
        return [max(ready_ns + s, host_ns + h) for s, h in zip(by_stream, by_host, strict=True)]


def chain_of(op: PricedOp, before_ns: int, latency_ns: int, gap_ns: int) -> Chain:
    """The op's chain: `before_ns` of the host for each launch, then `latency_ns`; `gap_ns` between two kernels.

    >>> op = PricedOp("pair", 0, 0, 0, 0, (("a", 10, None), ("b", 20, None)))
    >>> chain_of(op, before_ns=5, latency_ns=1, gap_ns=2).ends_ns(ready_ns=100, host_ns=0)
    [112, 134]
    """
    by_stream: list[int] = []
    by_host: list[int] = []
    for k, (_, long_ns, _) in enumerate(op.kernels):
        launched = (k + 1) * before_ns + latency_ns
        start = max(launched, by_host[-1] + gap_ns) if by_host else launched
        by_host.append(start + long_ns)
        by_stream.append((by_stream[-1] if by_stream else 0) + gap_ns + long_ns)
    return Chain(op, tuple(by_stream), tuple(by_host), sum(long_ns for _, long_ns, _ in op.kernels))


class Chains:
    """The chains of one queue, each worked out when its op first comes."""

    def __init__(self, latency_ns: int, gap_ns: int) -> None:
        self._latency_ns, self._gap_ns = latency_ns, gap_ns
        self._known: dict[int, Chain] = {}  # by the op's identity, which the chain keeps

    def ends_ns(self, op: PricedOp, before_ns: int, ready_ns: int, host_ns: int) -> tuple[list[int], int]:
        """When each of the op's kernels ends (see `Chain.ends_ns`), and how long they take together."""
        chain = self._known.get(id(op))
        if chain is None:
            chain = self._known[id(op)] = chain_of(op, before_ns, self._latency_ns, self._gap_ns)
        return chain.ends_ns(ready_ns, host_ns), chain.summed_ns
