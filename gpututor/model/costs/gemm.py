"""Time of matrix products."""

from __future__ import annotations

from collections.abc import Mapping

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.rates import Rate, capability, product_rate
from gpututor.model.costs.tiles import TILES, Product, Tiles, Tiling, fastest_tiling
from gpututor.model.kernels import Gemm
from gpututor.timeline import KernelWork

# A tile counts as alone on its SM: the model hands each SM its tiles one after another, so a round is one tile per SM.
# Small tiles share an SM in truth, which hides latency and leaves the number of tiles per SM as it is.
TILES_PER_SM = 1
# The one tile in which cuBLAS 12.1 runs every batch of fp32 products, as rows and columns of a row-major result, by the
# first figure of the compute capability: kernel names in NeuSight's table, P100, P4, A100 and L4. A result narrower
# than the tile wastes the rest: attention heads of width 64 run at half the rate on an A100.
BATCHED_TILES: Mapping[int, Tiles] = {6: ((64, 128),), 8: ((128, 128),)}
CONSTANTS = group("tiles")


def product_floor_s() -> float:
    """Seconds of the shortest product."""
    return CONSTANTS.product_floor_us * 1e-6


def gemm(spec: Gemm, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a matrix product."""
    rate = product_rate(spec.number_format, spec.tf32, spec.aligned_to, card)
    product = Product(spec.m, spec.n, spec.k, spec.moved_bytes, spec.batch)
    if spec.batch == 1:
        tiling = fastest_tiling(product, rate, card)
    else:  # NeuSight's 13,000 launches of batches show none with a split inner dimension
        tiling = fastest_tiling(product, rate, card, may_split=False, tiles=batched_tiles(rate, card))
    return product_floor_s() + tiling.seconds, tiled_work("gemm", spec.flop, tiling, rate)


def batched_tiles(rate: Rate, card: Card) -> Tiles:
    """The tiles that cuBLAS has for a batch of products."""
    return BATCHED_TILES.get(int(capability(card)), TILES) if rate.number_format == "fp32" else TILES


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
