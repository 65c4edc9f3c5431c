"""Time of matrix products."""

from __future__ import annotations

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.rates import Rate, product_rate
from gpututor.model.costs.tiles import Product, Tiling, fastest_tiling
from gpututor.model.kernels import Gemm
from gpututor.timeline import KernelWork

# A tile counts as alone on its SM: the model hands each SM its tiles one after another, so a round is one tile per SM.
# Small tiles share an SM in truth, which hides latency and leaves the number of tiles per SM as it is.
TILES_PER_SM = 1

CONSTANTS = group("tiles")


def product_floor_s() -> float:
    """Seconds of the shortest product."""
    return CONSTANTS.product_floor_us * 1e-6


def gemm(spec: Gemm, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a matrix product."""
    rate = product_rate(spec.number_format, spec.tf32, spec.aligned_to, card)
    tiling = fastest_tiling(Product(spec.m, spec.n, spec.k, spec.moved_bytes, spec.batch), rate, card)
    return product_floor_s() + tiling.seconds, tiled_work("gemm", spec.flop, tiling, rate)


def tiled_work(kind: str, flop: int, tiling: Tiling, rate: Rate) -> KernelWork:
    """The work of a kernel that is one product in tiles."""
    return KernelWork(
        kind,
        float(flop),
        float(tiling.moved_bytes),
        tiling.n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )
