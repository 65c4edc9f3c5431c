"""Time of 3x3 convolutions by Winograd's method, which needs fewer multiplications and is used in fp32.

Each tile of m by m results comes from (m + 2) squared products for every pair of channels, where the direct method
needs 9 m squared. Sources: Lavin and Gray 2015, "Fast Algorithms for Convolutional Neural Networks"; cuDNN's developer
guide, its list of algorithms (WINOGRAD for results and input gradients, WINOGRAD_NONFUSED for weight gradients too).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import product_floor_s, tiled_work
from gpututor.model.costs.rates import Rate
from gpututor.model.costs.tiles import Product, Tiling, fastest_tiling
from gpututor.model.costs.walk import floor_s
from gpututor.model.kernels import Conv
from gpututor.timeline import KernelWork

CONSTANTS = group("conv")
FUSED_TILE, UNFUSED_TILE = 2, 4  # rows and columns of results of one tile: F(2x2, 3x3) and F(4x4, 3x3)
BORDER = 2  # rows and columns that a tile's input is larger by
ITEM_BYTES = 4


def winograd(spec: Conv, card: Card, rate: Rate) -> Iterator[tuple[float, KernelWork]]:
    """Seconds and work of each way in which Winograd's method can run this pass; none where it doesn't apply."""
    if not spec.winograd_rows or spec.groups > 1 or rate.tensor_core or rate.number_format != "fp32":
        return
    if spec.direction != "wgrad":
        yield fused(spec, card, rate)
    yield unfused(spec, card, rate)


def n_tiles(spec: Conv, tile: int) -> int:
    """How many tiles of `tile` by `tile` results cover the batch's images, parts of tiles at the border included.

    >>> from gpututor.model.kernels import Conv
    >>> n_tiles(Conv("c", "fprop", 2, 8, 8, 49, 49, 9, 0, winograd_rows=7, winograd_columns=7), 4)
    8
    """
    return spec.batch * -(-spec.winograd_rows // tile) * -(-spec.winograd_columns // tile)


def fused(spec: Conv, card: Card, rate: Rate) -> tuple[float, KernelWork]:
    """One kernel that keeps tiles on the chip: a product with four results a tile and 16 products for them."""
    inner, results = (spec.c_in, spec.c_out) if spec.direction == "fprop" else (spec.c_out, spec.c_in)
    per_result = (FUSED_TILE + BORDER) ** 2 // FUSED_TILE**2
    product = Product(FUSED_TILE**2 * n_tiles(spec, FUSED_TILE), results, per_result * inner, spec.moved_bytes)
    slower = Rate(
        rate.number_format, False, rate.peak_flop_per_s, rate.sustained_share * CONSTANTS.winograd_fused_share
    )
    tiling = fastest_tiling(product, slower, card, may_split=False)
    return product_floor_s() + tiling.seconds, work_of(spec, product, tiling, rate)


def unfused(spec: Conv, card: Card, rate: Rate) -> tuple[float, KernelWork]:
    """Transforms on both sides of 36 products of plain matrices, which go through memory in between."""
    tiles = n_tiles(spec, UNFUSED_TILE)
    points = (UNFUSED_TILE + BORDER) ** 2
    sizes = {
        "fprop": (tiles, spec.c_out, spec.c_in),
        "dgrad": (tiles, spec.c_in, spec.c_out),
        "wgrad": (spec.c_out, spec.c_in, tiles),
    }
    m, n, k = sizes[spec.direction]
    between_bytes = ITEM_BYTES * points * (m * k + k * n + m * n)
    product = Product(m, n, k, between_bytes, points)
    tiling = fastest_tiling(product, rate, card)
    transforms_s = (spec.moved_bytes + between_bytes) / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    tiling = Tiling(tiling.seconds, tiling.n_blocks, tiling.moved_bytes + spec.moved_bytes + between_bytes)
    return product_floor_s() + 2 * floor_s() + transforms_s + tiling.seconds, work_of(spec, product, tiling, rate)


def work_of(spec: Conv, product: Product, tiling: Tiling, rate: Rate) -> KernelWork:
    """The work of a convolution whose arithmetic is `product`'s."""
    flop = 2 * product.batch * product.m * product.n * product.k
    return tiled_work("convolution", flop, tiling, rate)
