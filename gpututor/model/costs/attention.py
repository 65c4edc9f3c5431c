"""Time of fused attention."""

from __future__ import annotations

from gpututor.cards import Card
from gpututor.model.costs.gemm import TILES_PER_SM
from gpututor.model.costs.rates import on_tensor_cores, power_of_two_in, product_rate, sustained_share
from gpututor.model.costs.walk import floor_s
from gpututor.model.kernels import Attention
from gpututor.timeline import KernelWork

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
    return floor_s() + max(compute_s, memory_s), KernelWork(
        "attention",
        float(spec.flop),
        float(spec.moved_bytes),
        n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )
