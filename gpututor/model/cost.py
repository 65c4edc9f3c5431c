"""How long a kernel runs on a card, and what it did there.

Every rule is "a floor, plus the slower of arithmetic and memory traffic", with the
number of thread blocks deciding how much of the card takes part. The gap to the next
kernel belongs to the queue. L2 hits are left out: traffic is charged as if it all went to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpututor.cards import Card, Host
from gpututor.model.costs import attention, conv, gemm, rnn, rnn_layer, walk
from gpututor.model.kernels import Attention, Conv, DeviceCopy, Gemm, Memset, RnnLayer, RnnStep, RowReduce, Stream
from gpututor.model.spec import KernelSpec
from gpututor.timeline import NS_PER_S, KernelWork

# What one direction of a link carries per lane, in bytes per second: 16, 31.5 and 63 GB/s for 16 lanes of
# generation 3, 4 and 5 (PCI-SIG); 80 % of it reaches a pinned copy (12.5, 25 and 50 GB/s are commonly measured).
PCIE_BYTES_PER_S_PER_LANE: Mapping[int, float] = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
PCIE_SHARE = 0.8
COPY_LATENCY_US = 1.3  # copies of 4 to 256 bytes take 1 to 2 us on V100, A100 and RTX 2080 Ti in recorded traces


@dataclass(frozen=True, slots=True)
class Priced:
    """How long a kernel runs, in whole nanoseconds (1 or more), and what it did."""

    duration_ns: int
    work: KernelWork


RULES: dict[type[KernelSpec], Callable[[Any, Card], tuple[float, KernelWork]]] = {
    Gemm: gemm.gemm,
    Conv: conv.conv,
    RnnStep: rnn.rnn_step,
    RnnLayer: rnn_layer.rnn_layer,
    Attention: attention.attention,
    Stream: walk.stream,
    RowReduce: walk.row_reduce,
    DeviceCopy: walk.device_copy,
    Memset: walk.memset,
}


def price(spec: KernelSpec, card: Card) -> Priced:
    """Duration and work of one kernel on `card`; the same on every computer, since it is rounded to nanoseconds."""
    seconds, work = RULES[type(spec)](spec, card)
    return Priced(max(1, round(seconds * NS_PER_S)), work)


def copy_ns(n_bytes: int, card: Card, host: Host, direction: str, *, pinned: bool) -> int:
    """Nanoseconds that a copy between host and card occupies the link.

    `direction` is "to GPU" or "to host"; both run at the same rate. A pageable copy first goes through a buffer of
    the driver, at the host's own slower rate. The slower of host and link decides.
    """
    lane_bytes_per_s = PCIE_BYTES_PER_S_PER_LANE.get(card.pcie_gen, PCIE_BYTES_PER_S_PER_LANE[5])
    link_bytes_per_s = lane_bytes_per_s * card.pcie_lanes * PCIE_SHARE
    host_bytes_per_s = host.pinned_bytes_per_s if pinned else host.pageable_bytes_per_s
    latency_us = host.costs.get("copy_latency", COPY_LATENCY_US)
    return max(1, round(latency_us * 1e3 + n_bytes / min(link_bytes_per_s, host_bytes_per_s) * NS_PER_S))
