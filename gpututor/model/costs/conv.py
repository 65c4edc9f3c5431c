"""Time of convolutions: as one matrix product, or depthwise on ordinary cores."""

from __future__ import annotations

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import product_floor_s, tiled_work
from gpututor.model.costs.rates import ITEMSIZE_BYTES, Rate, power_of_two_in, product_rate, vector_flop_per_s
from gpututor.model.costs.tiles import Product, Tiling, fastest_tiling
from gpututor.model.costs.walk import floor_s, resident_blocks, walk_s
from gpututor.model.kernels import Conv
from gpututor.timeline import KernelWork

CONSTANTS = group("conv")
DEPTHWISE_THREADS = 256


def conv(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of one pass of a convolution, reordering of its tensors included.

    Where TF32 is allowed, cuDNN may still take the plain fp32 kernel, which needs no reordering: the faster one runs.
    """
    if spec.groups > 1 and spec.c_in == spec.groups:
        return depthwise(spec, card)
    seconds, work = implicit_gemm(spec, card, spec.tf32)
    if work.number_format == "tf32":
        plain = implicit_gemm(spec, card, False)
        return min((seconds, work), plain, key=lambda pair: pair[0])
    return seconds, work


def conv_product(spec: Conv) -> Product:
    """The matrix product that a pass of a convolution is, one per group.

    Source: Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning".
    """
    c_in, c_out = max(1, spec.c_in // spec.groups), max(1, spec.c_out // spec.groups)
    sizes = {
        "fprop": (spec.batch * spec.pixels_out, c_out),
        "dgrad": (spec.batch * spec.pixels_in, c_in),
        "wgrad": (c_out, c_in * spec.filter_taps),
    }
    m, n = sizes[spec.direction]
    k = -(-spec.flop // (2 * spec.groups * m * n))
    return Product(m, n, k, spec.moved_bytes, spec.groups)


def implicit_gemm(spec: Conv, card: Card, tf32: bool) -> tuple[float, KernelWork]:
    """Seconds and work of a convolution as one product, on tensor cores where format and channels allow."""
    product = conv_product(spec)
    channels = (max(1, spec.c_in // spec.groups), max(1, spec.c_out // spec.groups))
    rate = product_rate(spec.number_format, tf32, power_of_two_in(*channels), card)
    if spec.groups > 1:
        rate = Rate(
            rate.number_format, rate.tensor_core, rate.peak_flop_per_s, rate.sustained_share * CONSTANTS.grouped_share
        )
    tiling = fastest_tiling(product, rate, card, may_split=spec.direction == "wgrad")
    seconds = product_floor_s() + tiling.seconds
    if rate.tensor_core and not spec.channels_last:
        weight_bytes = spec.filter_taps * spec.c_out * channels[0] * ITEMSIZE_BYTES[spec.number_format]
        extra_bytes = round(2 * CONSTANTS.layout_share * max(0, spec.moved_bytes - weight_bytes))
        seconds += extra_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
        tiling = Tiling(tiling.seconds, tiling.n_blocks, tiling.moved_bytes + extra_bytes)
    return seconds, tiled_work("convolution", spec.flop, tiling, rate)


def depthwise(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a convolution with one input channel per group."""
    flop_share = getattr(CONSTANTS, f"depthwise_{spec.direction}_flop_share")
    memory_share = getattr(CONSTANTS, f"depthwise_{spec.direction}_memory_share")
    n_elements = spec.batch * (spec.pixels_in if spec.direction == "dgrad" else spec.pixels_out) * spec.c_out
    compute_s = spec.flop / (vector_flop_per_s(spec.number_format, card) * flop_share)
    resident = resident_blocks(DEPTHWISE_THREADS, card)
    walking_s = walk_s(spec.moved_bytes, n_elements, DEPTHWISE_THREADS, card, resident)
    memory_s = walking_s * card.bandwidth_share / memory_share
    work = KernelWork(
        "convolution",
        float(spec.flop),
        float(spec.moved_bytes),
        max(1, -(-n_elements // DEPTHWISE_THREADS)),
        resident,
        spec.number_format,
        False,
    )
    return floor_s() + max(compute_s, memory_s), work
