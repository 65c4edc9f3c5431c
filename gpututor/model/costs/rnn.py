"""Time of one recurrent step inside a cuDNN call."""

from __future__ import annotations

from dataclasses import dataclass

from gpututor.cards import Card
from gpututor.model.constants import group
from gpututor.model.costs.gemm import TILES_PER_SM
from gpututor.model.costs.rates import ITEMSIZE_BYTES, capability, power_of_two_in, product_rate
from gpututor.model.kernels import RnnStep
from gpututor.timeline import KernelWork

CONSTANTS = group("rnn")
VOLTA = 7.0  # compute capability


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
    """The constants for a format, a pass and a cell (4 gates: LSTM, 3: GRU, 1: a plain cell); `older` is before Volta."""
    short = number_format in ("fp16", "bf16")
    name = "older" if older else f"{'fp16' if short else 'fp32'}_{'backward' if backward else 'forward'}"
    cell = {3: "gru", 1: "plain"}.get(gates) if name == "fp32_forward" else None
    serial_ns: float = getattr(CONSTANTS, f"{name}_{cell}_serial_ns" if cell else f"{name}_serial_ns")
    fixed_us, gain, share = (getattr(CONSTANTS, f"{name}_{what}") for what in ("fixed_us", "memory_gain", "flop_share"))
    return StepCost(fixed_us * 1e-6, serial_ns * 1e-9, gain, share)


def charged_apart_s() -> float:
    """What the fitted time of a step holds, but is charged apart: the kernel of the gates and two gaps."""
    return CONSTANTS.charged_apart_us * 1e-6


def rnn_step(spec: RnnStep, card: Card) -> tuple[float, KernelWork]:
    """Seconds and work of one recurrent step inside a cuDNN call."""
    rate = product_rate(spec.number_format, spec.tf32, power_of_two_in(spec.hidden), card)
    cost = step_cost(spec.number_format, spec.backward, spec.gates, older=capability(card) < VOLTA)
    moved_bytes = spec.gates * spec.hidden**2 * ITEMSIZE_BYTES[spec.number_format]
    memory_s = moved_bytes / card.bandwidth_bytes_per_s
    compute_s = spec.flop / rate.peak_flop_per_s
    slower_s = max(memory_s / cost.memory_gain, compute_s / cost.flop_share)
    serial_s = cost.serial_s_per_unit * spec.hidden * CONSTANTS.fitted_clock_mhz * 1e6 / card.boost_clock_hz
    seconds = max(cost.fixed_s - charged_apart_s() + serial_s + slower_s, memory_s, compute_s)
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
