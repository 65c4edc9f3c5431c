"""How long cards take to exchange data, and how many bytes each of them sends.

A ring all-reduce of S bytes among n cards: t = start + 2(n-1) hops + 2(n-1)/n S/B (1 + sqrt(S0/S)). Its n cards each
send 2(n-1)/n S bytes; the root stands for the size at which the link reaches half of the rest of its rate. A tree has
2 log2(n) hops and sends 2S bytes, so it wins where S is small and n large. Within a machine the ring is taken; between
machines the faster of the two. Among several machines the cards of one machine first reduce, then each machine's share
crosses the network; both go on at the same time, so the slower decides.

Source: Patarasuk and Yuan 2009 (ring), Sanders, Speck and Träff 2009 (two trees); constants in data/links.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, sqrt

from gpututor.errors import KernelSpecError
from gpututor.links import Link, Wiring

KINDS = tuple(
    "all_reduce reduce_scatter all_gather broadcast reduce all_to_all gather scatter barrier send receive".split()
)


@dataclass(frozen=True, slots=True)
class Team:
    """The cards that take part: `n` of them on `n_machines` machines, and the links between them."""

    n: int
    n_machines: int
    wiring: Wiring


def sent_share(kind: str, n: int) -> float:
    """Bytes that each card sends in a ring, over the bytes of the whole result (of the input, for reductions).

    Raises:
        KernelSpecError: the kind is not one of `KINDS`.

    >>> sent_share("all_reduce", 8), sent_share("all_gather", 8), sent_share("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if kind not in KINDS:
        raise KernelSpecError(f"no cost is known for the collective {kind!r}; known: {', '.join(KINDS)}")
    if n < 2 or kind in ("barrier", "receive"):
        return 0.0
    if kind in ("broadcast", "reduce", "send"):
        return 1.0
    return (2.0 if kind == "all_reduce" else 1.0) * (n - 1) / n


def n_hops(kind: str, n: int) -> float:
    """Steps of a ring, one after the other.

    >>> n_hops("all_reduce", 4), n_hops("all_gather", 4)
    (6, 3)
    """
    return (2 if kind in ("all_reduce", "barrier") else 1) * (n - 1)


def exchange_ns(kind: str, n_bytes: int, team: Team) -> int:
    """Nanoseconds (1 or more) from the last card's arrival until all are done; `n_bytes` as in `sent_share`.

    Raises:
        KernelSpecError: the kind is not one of `KINDS`.
    """
    sent_share(kind, team.n)  # refuses what has no cost
    if team.n < 2:
        return 1
    within, network, k = team.wiring.cards, team.wiring.network, team.n_machines
    per_machine = ceil(team.n / k)
    latency_us = link_s = 0.0
    if per_machine > 1:
        latency_us = within.start_us + within.hop_us * n_hops(kind, per_machine)
        link_s = sent_share(kind, team.n) * n_bytes / within.bus_of(per_machine) * _slow(n_bytes, within)
    if k == 1:
        return max(1, round((latency_us * 1e-6 + link_s) * 1e9))
    ways = [ring_s(kind, n_bytes, k, network)]
    if kind in ("all_reduce", "broadcast", "reduce", "barrier"):
        ways.append(tree_s(kind, n_bytes, k, network))
    across_us, across_s = min(ways, key=lambda way: way[0] * 1e-6 + way[1])
    return max(1, round(((latency_us + across_us) * 1e-6 + max(link_s, across_s)) * 1e9))


def ring_s(kind: str, n_bytes: int, n: int, link: Link) -> tuple[float, float]:
    """Latency in microseconds, and seconds at the link, of a ring of `n`."""
    moving_s = sent_share(kind, n) * n_bytes / link.bus_of(n) * _slow(n_bytes, link)
    return link.start_us + link.hop_us * n_hops(kind, n), moving_s


def tree_s(kind: str, n_bytes: int, n: int, link: Link) -> tuple[float, float]:
    """Latency in microseconds, and seconds at the link, of two trees of `n`."""
    ways = 2 if kind in ("all_reduce", "barrier") else 1
    moving_s = 0.0 if kind == "barrier" else ways * n_bytes / link.bus_of(n) * _slow(n_bytes, link)
    return link.start_us + link.hop_us * ways * ceil(log2(n)), moving_s


def _slow(n_bytes: int, link: Link) -> float:
    """How much longer than at the full rate: small messages don't fill the link."""
    return 1 + sqrt(link.half_bytes / n_bytes) if n_bytes else 1.0


def peer_copy_ns(n_bytes: int, link: Link) -> int:
    """Nanoseconds of one copy from card to card, through host memory where the link gives no peer access."""
    return max(1, round(link.copy_us * 1e3 + n_bytes / link.copy_bytes_per_s * 1e9))
