"""Time of convolutions: as one matrix product, by Winograd's method, or depthwise on ordinary cores."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import product_floor_s, tiled_work
from gpututor.model.costs.rates import ALIGNMENT, ITEMSIZE_BYTES, Rate, product_rate, vector_flop_per_s
from gpututor.model.costs.tiles import Product, Tiling, fastest_tiling
from gpututor.model.costs.walk import floor_s, resident_blocks, short_of_loads, walk_s
from gpututor.model.costs.winograd import winograd
from gpututor.model.kernels import Conv
from gpututor.timeline import KernelWork

CONSTANTS = group("conv")
DEPTHWISE_THREADS = 256
# cuDNN's own kernels for narrow groups, as ResNeXt has them, put several groups side by side. timm's speeds show them
# for widths of 4 to 16 channels, and of 32 where there are 32 groups (dpn68b) but not with fewer (gcresnext26ts).
NARROW_GROUPS, TOGETHER = (4, 8, 16, 32), 32


def conv(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of one pass of a convolution, reordering of its tensors included.

    cuDNN has several ways and takes the fastest: tensor cores want channels next to each other, which can cost two
    reorderings; without them, the same product runs slower. Where TF32 is allowed, the plain fp32 kernel may still win,
    and for 3x3 filters in fp32 Winograd's method.
    """
    if spec.trials:
        return tried(spec, card)
    if spec.groups > 1 and spec.c_in == spec.groups:
        return depthwise(spec, card)
    rate = product_rate(spec.number_format, spec.tf32, max(ALIGNMENT.values()), card)
    choices = [implicit_gemm(spec, card, rate)]
    if rate.tensor_core and not spec.channels_last:
        choices.append(implicit_gemm(spec, card, scaled(rate, CONSTANTS.native_share), reorders=False))
    if rate.number_format == "tf32":
        rate = product_rate(spec.number_format, False, 1, card)
        choices.append(implicit_gemm(spec, card, rate))
    choices += winograd(spec, card, rate)
    return min(choices, key=lambda choice: choice[0])


def tried(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of running it so often that cuDNN knows the quickest way; no way is quicker than that one."""
    seconds, work = conv(replace(spec, trials=0), card)
    flop, moved_bytes = (spec.trials * (each or 0.0) for each in (work.flop, work.moved_bytes))
    return spec.trials * seconds, structs.replace(work, flop=flop, moved_bytes=moved_bytes, useful_flop=0.0)


def scaled(rate: Rate, share: float) -> Rate:
    """The same unit, reaching only `share` of what it sustains."""
    return replace(rate, sustained_share=rate.sustained_share * share)


def conv_product(spec: Conv, tensor_core: bool = False) -> Product:
    """The matrix product that a pass of a convolution is, one per group; on tensor cores narrow groups share one.

    Source: Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning".
    """
    c_in, c_out = max(1, spec.c_in // spec.groups), max(1, spec.c_out // spec.groups)
    groups = spec.groups
    if tensor_core and side_by_side(spec):
        merged = TOGETHER // c_in
        c_in, c_out, groups = c_in * merged, c_out * merged, groups // merged
    flop = 2 * spec.batch * spec.pixels_out * spec.filter_taps * c_in * c_out
    m, n = {
        "fprop": (spec.batch * spec.pixels_out, c_out),
        "dgrad": (spec.batch * spec.pixels_in, c_in),
        "wgrad": (c_out, c_in * spec.filter_taps),
    }[spec.direction]
    return Product(m, n, -(-flop // (2 * m * n)), spec.moved_bytes, groups)


def side_by_side(spec: Conv) -> bool:
    """Whether the groups are so narrow, and so many, that several share a tile."""
    width = spec.c_in // spec.groups
    if width not in NARROW_GROUPS or spec.c_out != spec.c_in:
        return False
    return spec.groups % (TOGETHER if width == TOGETHER else TOGETHER // width) == 0


def implicit_gemm(spec: Conv, card: Card, rate: Rate, reorders: bool = True) -> tuple[float, KernelWork]:
    """Seconds and work of a convolution as one product; `reorders` where tensor cores get their order of channels."""
    if spec.groups > 1 and not side_by_side(spec):
        if spec.direction != "fprop" and spec.channels_last and rate.tensor_core:
            return grouped_gradient(spec, card)
        rate = scaled(rate, CONSTANTS.grouped_share)
    tiling = fastest_tiling(conv_product(spec, rate.tensor_core), rate, card, may_split=spec.direction == "wgrad")
    seconds = product_floor_s() + tiling.seconds
    if rate.tensor_core and reorders and not spec.channels_last:
        extra_bytes = reordered_bytes(spec)
        plain_s = extra_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
        seconds += plain_s * short_of_loads(spec.number_format, card)
        tiling = Tiling(tiling.seconds, tiling.n_blocks, tiling.moved_bytes + extra_bytes)
    return seconds, tiled_work("convolution", spec.flop, tiling, rate)


def reordered_bytes(spec: Conv) -> int:
    """Traffic of bringing input and output into another order of channels; in part they are read from L2."""
    n_elements = spec.batch * (spec.c_in * spec.pixels_in + spec.c_out * spec.pixels_out)
    return round(2 * CONSTANTS.layout_share * ITEMSIZE_BYTES[spec.number_format] * n_elements)


def grouped_gradient(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Gradients of grouped convolutions with channels last: cuDNN has only a slow kernel on ordinary cores for them."""
    compute_s = spec.flop / (vector_flop_per_s(spec.number_format, card) * CONSTANTS.grouped_gradient_flop_share)
    memory_s = spec.moved_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    n_blocks = max(1, -(-spec.batch * spec.pixels_out * spec.c_out // DEPTHWISE_THREADS))
    work = KernelWork(
        "convolution",
        float(spec.flop),
        float(spec.moved_bytes),
        n_blocks,
        resident_blocks(DEPTHWISE_THREADS, card),
        spec.number_format,
        False,
    )
    return floor_s() + max(compute_s, memory_s), work


def depthwise(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a convolution with one input channel per group; its kernels differ by their order."""
    order = "last" if spec.channels_last else "first"
    flop_share = getattr(CONSTANTS, f"depthwise_{spec.direction}_{order}_flop_share")
    memory_share = getattr(CONSTANTS, f"depthwise_{spec.direction}_memory_share")
    n_elements = spec.batch * (spec.pixels_in if spec.direction == "dgrad" else spec.pixels_out) * spec.c_out
    compute_s = spec.flop / (vector_flop_per_s(spec.number_format, card) * flop_share)
    resident = resident_blocks(DEPTHWISE_THREADS, card)
    walking_s = walk_s(spec.moved_bytes, n_elements, DEPTHWISE_THREADS, card, resident)
    memory_s = walking_s * card.bandwidth_share / memory_share
    if is_ragged(spec):
        compute_s, memory_s = (CONSTANTS.depthwise_ragged_gradient_times * s for s in (compute_s, memory_s))
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


def is_ragged(spec: Conv) -> bool:
    """Whether a gradient's channels, side by side in 16 bits, don't fill whole 16-byte pieces."""
    alignment = ALIGNMENT.get(spec.number_format, 1) if spec.number_format in ("fp16", "bf16") else 1
    return spec.channels_last and spec.direction != "fprop" and spec.c_out % alignment != 0
