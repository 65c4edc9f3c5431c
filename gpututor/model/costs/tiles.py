"""Matrix products and convolutions as tiles: how many, in how many rounds over the SMs, and how long.

A product is cut into tiles, one thread block each. The SMs take them in rounds, so
129 tiles on 128 SMs take twice as long as 128. A library picks the tile and may
split the long inner dimension over several blocks; we take the fastest choice, as its heuristics mean to,
unless the caller knows better. The form and its constants were fitted on tables of measured products
(tools/calibrate/products.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.rates import ITEMSIZE_BYTES, Rate, capability

Tiles: TypeAlias = tuple[tuple[int, int], ...]
"""Rows and columns of each tile to choose from."""

# Tiles that cuBLAS's and cuDNN's kernel names show.
TILES: Tiles = (
    (256, 128),
    (128, 256),
    (128, 128),
    (128, 64),
    (64, 128),
    (64, 64),
    (32, 128),
    (128, 32),
    (64, 32),
    (32, 32),
)
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONSTANTS = group("tiles")
# A tile of m by n reuses each loaded number m*n/(m+n) times. Small tiles starve the arithmetic, more so where the
# arithmetic is fast; from 128 by 128 on they run at the card's sustained rate. `starve` scales that, given at V100's
# fp16 rate of 1.56 TFLOP/s per SM.
STARVE_FLOP_PER_S_PER_SM = 1.56e12
REUSE_OF_128 = 64.0
AREA_OF_128 = 128 * 128
# Hopper's and data-centre Blackwell's tensor cores read operands from shared memory by themselves, in pieces of 64 rows
# and more (NVIDIA, PTX ISA, wgmma and tcgen05): small tiles starve them less.
FED_FROM_SHARED_MEMORY = (9, 10)
SPLIT_BYTES = 8  # each part writes and reads one fp32 number per result


@dataclass(frozen=True, slots=True)
class Tiling:
    """The choice made: time after the kernel's floor, thread blocks, and traffic with the parts of a split."""

    seconds: float
    n_blocks: int
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class Product:
    """`batch` products of (m, k) by (k, n) and their traffic in bytes."""

    m: int
    n: int
    k: int
    moved_bytes: int
    batch: int = 1


def fastest_tiling(product: Product, rate: Rate, card: Card, *, may_split: bool = True, tiles: Tiles = TILES) -> Tiling:
    """The fastest tiling of `product` on `card`; ties go to fewer blocks.

    Never slower for a smaller product: each choice's time grows with every dimension, so their minimum does too.
    """
    choices = tilings(product, rate, card, may_split=may_split, tiles=tiles)
    return min(choices, key=lambda choice: (choice.seconds, choice.n_blocks))


def starve(rate: Rate, card: Card) -> float:
    """How strongly small tiles starve the arithmetic, at V100's fp16 rate per SM and in this format."""
    self_fed = rate.tensor_core and int(capability(card)) in FED_FROM_SHARED_MEMORY
    constant = CONSTANTS.starve_self_fed if self_fed else CONSTANTS.starve
    return constant * ITEMSIZE_BYTES[rate.number_format] / 2


def tilings(product: Product, rate: Rate, card: Card, *, may_split: bool, tiles: Tiles = TILES) -> Iterator[Tiling]:
    """Every choice of tile and split."""
    memory_bytes_per_s = card.bandwidth_bytes_per_s * card.bandwidth_share
    extra_k, split_s = CONSTANTS.extra_k, CONSTANTS.split_us * 1e-6
    per_sm_flop_per_s = rate.peak_flop_per_s / card.n_sms
    starved = starve(rate, card) * per_sm_flop_per_s / STARVE_FLOP_PER_S_PER_SM
    for tile_m, tile_n in tiles:
        turn_s = 1e-6 * (CONSTANTS.tile_us + CONSTANTS.tile_area_us * tile_m * tile_n / AREA_OF_128)
        reuse = tile_m * tile_n / (tile_m + tile_n)
        feed = min(1.0, reuse / (reuse + starved) * (REUSE_OF_128 + starved) / REUSE_OF_128)
        tile_flop_per_s = per_sm_flop_per_s * rate.sustained_share * feed
        whole = product.batch * -(-product.m // tile_m) * -(-product.n // tile_n)
        for split in SPLITS if may_split else (1,):
            inner = -(-product.k // (split * 8)) * 8 + extra_k
            rounds = -(-whole * split // card.n_sms)
            seconds = rounds * (2 * tile_m * tile_n * inner / tile_flop_per_s + turn_s)
            seconds = max(seconds, product.moved_bytes / memory_bytes_per_s)
            parts_bytes = split * product.batch * product.m * product.n * SPLIT_BYTES if split > 1 else 0
            if split > 1:
                seconds += parts_bytes / memory_bytes_per_s + split_s
            yield Tiling(seconds, whole * split, product.moved_bytes + parts_bytes)
