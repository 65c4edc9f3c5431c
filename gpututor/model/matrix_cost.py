"""Time of kernels built on matrix products: GEMM, convolution, a recurrent step, fused attention."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Card
from gpututor.model.kernels import Attention, Conv, Gemm, RnnStep
from gpututor.model.rates import (
    ITEMSIZE_BYTES,
    Rate,
    on_tensor_cores,
    power_of_two_in,
    product_rate,
    sustained_share,
    vector_flop_per_s,
)
from gpututor.model.tiles import Product, Tiling, fastest_tiling
from gpututor.model.walk_cost import FLOOR_S, resident_blocks, walk_s
from gpututor.timeline import KernelWork

# A tile counts as alone on its SM: the model hands each SM its tiles one after another, so a round is one tile per SM.
# Small tiles share an SM in truth, which hides latency and leaves the number of tiles per SM as it is.
TILES_PER_SM = 1

# The shortest product. Recorded traces show 4 us on V100 (fp32 vector times matrix), 5 to 6 us on H100 (bf16, 141 by
# 512 by 512); DeepBench's timings, launch gap included, fit 2.5 to 6 us.
PRODUCT_FLOOR_S = 4.0e-6

# Extra traffic of a tensor-core convolution on NCHW tensors, whose data cuDNN reorders to NHWC and back: input and
# output once more, times this share. 0.60 to 0.68 when fitted on timm's published training speeds.
LAYOUT_SHARE = 0.60
# cuDNN's grouped convolutions run at this part of the rate of the same products alone (fitted on the same table).
GROUPED_SHARE = 0.72
# Depthwise convolutions run on ordinary cores: share of the fp32 rate and share of the bandwidth that they reach,
# by pass (fitted on the same table: 6.9 % mean error over 91 rows of depthwise networks).
DEPTHWISE = {"fprop": (0.13, 0.89), "dgrad": (0.20, 0.54), "wgrad": (0.08, 0.32)}
DEPTHWISE_THREADS = 256


def gemm(spec: Gemm, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a matrix product."""
    rate = product_rate(spec.number_format, spec.tf32, spec.aligned_to, card)
    tiling = fastest_tiling(Product(spec.m, spec.n, spec.k, spec.moved_bytes, spec.batch), rate, card)
    return PRODUCT_FLOOR_S + tiling.seconds, _tiled_work("gemm", spec.flop, tiling, rate)


def _tiled_work(kind: str, flop: int, tiling: Tiling, rate: Rate) -> KernelWork:
    return KernelWork(
        kind,
        float(flop),
        float(tiling.moved_bytes),
        tiling.n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )


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
        rate = Rate(rate.number_format, rate.tensor_core, rate.peak_flop_per_s, rate.sustained_share * GROUPED_SHARE)
    tiling = fastest_tiling(product, rate, card, may_split=spec.direction == "wgrad")
    seconds = PRODUCT_FLOOR_S + tiling.seconds
    if rate.tensor_core and not spec.channels_last:
        weight_bytes = spec.filter_taps * spec.c_out * channels[0] * ITEMSIZE_BYTES[spec.number_format]
        extra_bytes = round(2 * LAYOUT_SHARE * max(0, spec.moved_bytes - weight_bytes))
        seconds += extra_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
        tiling = Tiling(tiling.seconds, tiling.n_blocks, tiling.moved_bytes + extra_bytes)
    return seconds, _tiled_work("convolution", spec.flop, tiling, rate)


def depthwise(spec: Conv, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a convolution with one input channel per group."""
    flop_share, memory_share = DEPTHWISE[spec.direction]
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
    return FLOOR_S + max(compute_s, memory_s), work


@dataclass(frozen=True, slots=True)
class StepCost:
    """Constants of one recurrent step of cuDNN.

    The weights are read at `memory_gain` times the bandwidth: some stay in L2 and registers from step to step.
    """

    fixed_s: float
    serial_s_per_unit: float  # grows with the hidden size: the inner loop that no other block shortens
    memory_gain: float
    flop_share: float


# Fitted on DeepBench's cuDNN 7.6 timings of V100, LSTM forward (4.3 % and 9.5 % mean error; 7 % and 18 % with the
# hidden size left out) and gradients of all cells. The floor belongs to the library, not to the clock; the serial
# part scales with the clock here, which is an assumption. Pascal with cuDNN 6 is 30 to 49 % slower than this.
RNN_STEP = {
    ("fp32", False): StepCost(23e-6, 32e-9, 1.39, 1.0),
    ("fp16", False): StepCost(22e-6, 19e-9, 1.16, 0.77),
    ("fp32", True): StepCost(34e-6, 4e-9, 0.91, 0.93),
    ("fp16", True): StepCost(34e-6, 4e-9, 0.99, 0.32),
}
# GRU and plain cells, fp32 forward, differ in the serial part only: read off the same table's 19 and 12 rows.
SERIAL_S_PER_UNIT_FP32 = {4: 32e-9, 3: 10e-9, 1: 24e-9}
RNN_FITTED_CLOCK_HZ = 1.53e9
# The fitted time holds the kernel that applies the gates, 1.7 us, and two gaps of 0.8 us, which are charged apart.
RNN_CHARGED_APART_S = 3.3e-6


def rnn_step(spec: RnnStep, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of one recurrent step inside a cuDNN call."""
    rate = product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.hidden), card)
    short = spec.number_format in ("fp16", "bf16")
    cost = RNN_STEP["fp16" if short else "fp32", spec.backward]
    moved_bytes = spec.gates * spec.hidden**2 * ITEMSIZE_BYTES[spec.number_format]
    memory_s = moved_bytes / card.bandwidth_bytes_per_s
    compute_s = spec.flop / rate.peak_flop_per_s
    slower_s = max(memory_s / cost.memory_gain, compute_s / cost.flop_share)
    per_unit_s = cost.serial_s_per_unit if short or spec.backward else SERIAL_S_PER_UNIT_FP32.get(spec.gates, 24e-9)
    serial_s = per_unit_s * spec.hidden * RNN_FITTED_CLOCK_HZ / card.boost_clock_hz
    seconds = max(cost.fixed_s - RNN_CHARGED_APART_S + serial_s + slower_s, memory_s, compute_s)
    n_blocks = max(1, -(-spec.batch // 32) * -(-spec.gates * spec.hidden // 32))
    return seconds, KernelWork(
        "rnn step",
        float(spec.flop),
        float(moved_bytes),
        n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )


# Share of the peak that fused attention reaches, forward and backward. Tensor cores from Ampere on: Dao 2023,
# "FlashAttention-2", reports 50 to 73 % of A100's peak, forward faster than backward. Others run the
# memory-efficient kernel; that it reaches half as much is our assumption.
ATTENTION_SHARE = {False: 0.60, True: 0.50}
OLDER_ATTENTION_SHARE = {False: 0.30, True: 0.25}
ATTENTION_ROWS_PER_BLOCK = 128  # FlashAttention-2's rows per block
FLASH_CAPABILITY = "bf16"  # the cards with bf16 tensor cores are the ones that FlashAttention-2 runs on


def attention(spec: Attention, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a fused attention kernel; whole rounds of blocks over the SMs are charged."""
    wanted = on_tensor_cores(spec.number_format, spec.tf32, card)
    rate = product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.width), card)
    if wanted is not None and card.peak(FLASH_CAPABILITY) is not None and spec.number_format != "fp32":
        share = ATTENTION_SHARE[spec.backward]
    else:
        share = OLDER_ATTENTION_SHARE[spec.backward] * sustained_share(rate.number_format, card)
    n_lines = spec.columns if spec.backward else spec.rows  # backward, a block owns keys; forward, queries
    n_blocks = max(1, spec.heads * -(-n_lines // ATTENTION_ROWS_PER_BLOCK))
    block_flop = spec.flop / (spec.heads * max(1.0, n_lines / ATTENTION_ROWS_PER_BLOCK))
    rounds = -(-n_blocks // card.n_sms)
    compute_s = max(spec.flop, rounds * block_flop * card.n_sms) / (rate.peak_flop_per_s * share)
    memory_s = spec.moved_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    return FLOOR_S + max(compute_s, memory_s), KernelWork(
        "attention",
        float(spec.flop),
        float(spec.moved_bytes),
        n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )
