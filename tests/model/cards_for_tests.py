"""A made-up card with round figures, so that expected times can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from gpututor.hardware import Card, Host

PLAIN = Card(
    name="plain",
    architecture="Volta",
    compute_capability="7.0",
    n_sms=10,
    fp32_cores_per_sm=64,
    boost_clock_hz=1e9,
    peak_flop_per_s={"fp64": 0.5e12, "fp32": 1e12, "fp16": 8e12},
    memory_bytes=16 * 2**30,
    memory_type="HBM2",
    bandwidth_bytes_per_s=100e9,
    l2_bytes=2**20,
    smem_bytes_per_sm=96 * 1024,
    max_warps_per_sm=64,
    max_blocks_per_sm=32,
    tdp_w=100.0,
    pcie_gen=3,
    pcie_lanes=16,
    nvlink_bytes_per_s=None,
    sustained={"fp32": 1.0, "fp16": 0.8},
    bandwidth_share=1.0,
    sources={},
)
AMPERE_LIKE = replace(
    PLAIN,
    name="newer",
    compute_capability="8.0",
    peak_flop_per_s={"fp64": 0.5e12, "fp32": 1e12, "tf32": 4e12, "fp16": 8e12, "bf16": 8e12},
)
SLOW_HOST = Host("slow", "a CPU", 4, {}, pinned_bytes_per_s=10e9, pageable_bytes_per_s=4e9, sync_us=20, sources={})


def twice(card: Card) -> Card:
    """The same card with every rate doubled."""
    return replace(
        card,
        peak_flop_per_s={name: 2 * rate for name, rate in card.peak_flop_per_s.items()},
        bandwidth_bytes_per_s=2 * card.bandwidth_bytes_per_s,
        boost_clock_hz=2 * card.boost_clock_hz,
    )
