"""Time of one recurrent step inside a cuDNN call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import TILES_PER_SM, gemm
from gpututor.model.costs.rates import ITEMSIZE_BYTES, capability, power_of_two_in, product_rate
from gpututor.model.kernels import Gemm, RnnStep
from gpututor.timeline import KernelWork

CONSTANTS = group("rnn")
VOLTA, AMPERE = 7.0, 8.0  # compute capabilities
FITTED_BATCH = 128  # the largest batch in DeepBench's table


@dataclass(frozen=True, slots=True)
class StepCost:
    """Constants of one recurrent step of cuDNN, from data/model.toml.

    `serial_s_per_unit` grows with the hidden size: the inner loop that no other block shortens. The weights are read
    at `memory_gain` times the bandwidth: some stay in L2 and registers from step to step.
    """

    fixed_s: float
    serial_s_per_unit: float
    memory_gain: float
    flop_share: float


def step_cost(number_format: str, backward: bool, gates: int, older: bool = False) -> StepCost:
    """The constants for a format, a pass and a cell (4 gates: LSTM, 3: GRU, 1: plain); `older` is before Volta."""
    short = number_format in ("fp16", "bf16")
    name = "older" if older else f"{'fp16' if short else 'fp32'}_{'backward' if backward else 'forward'}"
    cell = {3: "gru", 1: "plain"}.get(gates) if name == "fp32_forward" else None
    serial_ns: float = getattr(CONSTANTS, f"{name}_{cell}_serial_ns" if cell else f"{name}_serial_ns")
    fixed_us, gain, share = (getattr(CONSTANTS, f"{name}_{what}") for what in ("fixed_us", "memory_gain", "flop_share"))
    return StepCost(fixed_us * 1e-6, serial_ns * 1e-9, gain, share)


def charged_apart_s() -> float:
    """What the fitted time of a step holds, but is charged apart: the kernel of the gates and two gaps."""
    return CONSTANTS.charged_apart_us * 1e-6


def product_of(spec: RnnStep) -> Gemm:
    """The products of a step that run side by side, as one product with all their columns."""
    width = spec.gates * spec.hidden
    n, k = (spec.hidden, width) if spec.backward else (width, spec.hidden)
    moved_bytes = spec.at_once * (spec.batch * k + k * n + spec.batch * n) * ITEMSIZE_BYTES[spec.number_format]
    aligned_to = power_of_two_in(spec.hidden)
    return Gemm(spec.name, spec.batch, spec.at_once * n, k, moved_bytes, spec.number_format, 1, spec.tf32, aligned_to)


def fitted_s(spec: RnnStep, card: Card) -> float:
    """Seconds of one of the products that run side by side, by the fit on DeepBench's table."""
    rate = product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.hidden), card)
    cost = step_cost(spec.number_format, spec.backward, spec.gates, older=capability(card) < VOLTA)
    memory_s = moved_bytes_of(spec) / card.bandwidth_bytes_per_s
    compute_s = spec.flop / rate.peak_flop_per_s
    slower_s = max(memory_s / cost.memory_gain, compute_s / cost.flop_share)
    serial_s = cost.serial_s_per_unit * spec.hidden * CONSTANTS.fitted_clock_mhz * 1e6 / card.boost_clock_hz
    return max((cost.fixed_s - charged_apart_s() + serial_s) / spec.at_once + slower_s, memory_s, compute_s)


def moved_bytes_of(spec: RnnStep) -> int:
    """The weights, read once."""
    return spec.gates * spec.hidden**2 * ITEMSIZE_BYTES[spec.number_format]


def rnn_step(spec: RnnStep, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of one recurrent step inside a cuDNN call.

    Cards from Ampere on have never seen an older cuDNN than 8, whose steps are plain cuBLAS products: traces on an RTX
    PRO 6000 and another Blackwell card show one gemm and one elemWiseRNNcell a step. For Volta and older cards the fit
    on DeepBench's timings with cuDNN 6 and 7 holds. Larger batches than any timed there fill the card as any product.
    """
    if capability(card) >= AMPERE:
        seconds = gemm(product_of(spec), card)[0] / spec.at_once
    elif spec.batch <= FITTED_BATCH:
        seconds = fitted_s(spec, card)
    else:
        largest_s = fitted_s(replace(spec, batch=FITTED_BATCH), card)
        seconds = max(largest_s, gemm(product_of(spec), card)[0] / spec.at_once)
    rate = product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.hidden), card)
    n_blocks = max(1, -(-spec.batch // 32) * -(-spec.gates * spec.hidden // 32))
    return seconds, KernelWork(
        "rnn step",
        float(spec.flop),
        float(moved_bytes_of(spec)),
        n_blocks,
        TILES_PER_SM,
        rate.number_format,
        rate.tensor_core,
    )
