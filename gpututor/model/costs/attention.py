"""Time of fused attention: which kernel runs, and how many clocks it needs for each score.

A kernel's block goes through the scores of its lines, piece by piece: two products, and the softmax between them.
FlashAttention-2 and the memory-efficient kernel do them one after another, cuDNN's overlaps them.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import TILES_PER_SM
from gpututor.model.costs.rates import Rate, capability, on_tensor_cores, power_of_two_in, product_rate
from gpututor.model.costs.walk import floor_s
from gpututor.model.kernels import Attention
from gpututor.timeline import KernelWork

LINES_PER_BLOCK = 128  # FlashAttention-2's
PIECE = 64  # scores are computed in pieces of at least 64 columns
PRODUCTS = {False: 2, True: 5}  # forward and backward (Dao et al. 2022, "FlashAttention", algorithms 1 and 4)
CONSTANTS = group("attention")


@dataclass(frozen=True, slots=True)
class Method:
    """How a kernel of fused attention goes through the scores.

    `flop_per_clock` is what one SM does for the products, `softmax_clocks` what it needs for one score's softmax;
    `overlapped` says that the slower of the two decides. Starting and ending a block costs as much as
    `extra_columns` more columns.
    """

    name: str
    rate: Rate
    flop_per_clock: float
    softmax_clocks: float
    overlapped: bool
    extra_columns: float

    def clocks_per_score(self, flop: float) -> float:
        """Clocks of an SM for one score that takes `flop` operations."""
        products = flop / self.flop_per_clock
        return max(products, self.softmax_clocks) if self.overlapped else products + self.softmax_clocks


def method(spec: Attention, card: Card) -> Method:
    """The kernel that torch's scaled_dot_product_attention picks.

    cuDNN's on Hopper and data-centre Blackwell, FlashAttention-2 on other cards from Ampere on, and the
    memory-efficient kernel on older ones and for fp32.
    Source: PyTorch, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp (2.11 and later; 2.0 to 2.10 took
    FlashAttention-2 on Hopper too).
    """
    rate = attention_rate(spec, card)
    per_clock = rate.peak_flop_per_s / (card.n_sms * card.boost_clock_hz)
    way = "backward" if spec.backward else "forward"

    def constant(name: str) -> float:
        value: float = getattr(CONSTANTS, f"{name}_{way}")
        return value

    flash = card.peak("bf16") is not None and spec.number_format in ("fp16", "bf16") and rate.tensor_core
    if flash and int(capability(card)) in (9, 10):
        clocks = constant("hopper_softmax_clocks" if capability(card) < 10 else "blackwell_softmax_clocks")
        share = constant("cudnn_product_share")
        return Method("cuDNN", rate, per_clock * share, clocks, True, constant("extra_columns"))
    if flash:
        per_clock = min(per_clock, CONSTANTS.flash_flop_per_clock)
        share, clocks = constant("flash_product_share"), constant("softmax_clocks")
    else:
        share, clocks = constant("efficient_product_share"), constant("efficient_softmax_clocks")
    per_clock *= min(1.0, share * rate.sustained_share)
    name = "FlashAttention-2" if flash else "memory-efficient"
    return Method(name, rate, per_clock, clocks, False, constant("extra_columns"))


def attention_rate(spec: Attention, card: Card) -> Rate:
    """Format and unit of the products.

    The memory-efficient kernel computes fp32 as three TF32 products where there are tensor cores for them (CUTLASS,
    OpMultiplyAddFastF32, which xFormers' kernels for compute capability 8.0 name).
    """
    if spec.number_format == "fp32" and on_tensor_cores("fp32", True, card):
        tf32 = product_rate("fp32", True, power_of_two_in(spec.width), card)
        return Rate("tf32", True, tf32.peak_flop_per_s / 3, tf32.sustained_share)
    return product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.width), card)


def attention(spec: Attention, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of a fused attention kernel; whole rounds of blocks over the SMs are charged."""
    how = method(spec, card)
    # Backward, a block owns keys and goes through queries; forward, the other way round.
    lines, across = (spec.columns, spec.rows) if spec.backward else (spec.rows, spec.columns)
    n_blocks = max(1, spec.heads * -(-lines // LINES_PER_BLOCK))
    block_lines = min(LINES_PER_BLOCK, -(-lines // PIECE) * PIECE)
    columns: float = -(-across // PIECE) * PIECE
    if spec.causal:  # on average half of them, and the whole of the block's own
        columns = min(columns, (columns + block_lines) / 2)
    score_flop = 2 * PRODUCTS[spec.backward] * spec.width
    block_clocks = block_lines * (columns + how.extra_columns) * how.clocks_per_score(score_flop)
    rounds = -(-n_blocks // card.n_sms)
    compute_s = max(rounds * block_clocks / card.boost_clock_hz, spec.flop / how.rate.peak_flop_per_s)
    memory_s = spec.moved_bytes / (card.bandwidth_bytes_per_s * card.bandwidth_share)
    return floor_s() + max(compute_s, memory_s), KernelWork(
        "attention",
        float(spec.flop),
        float(spec.moved_bytes),
        n_blocks,
        TILES_PER_SM,
        how.rate.number_format,
        how.rate.tensor_core,
    )
