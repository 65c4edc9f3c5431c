"""Which unit of a card runs a product, in which number format, and how fast at best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpututor.cards import Card
from gpututor.model.constants import group

# Share of the listed peak that large products reach, where a card's own figure is missing. fp32: the median of
# seven cards in DeepBench's and NeuSight's tables (0.74 to 0.98). fp16 and bf16: A100 and H100 reach 0.80 and 0.72
# in practice. tf32: 0.60 on A100, 0.50 on H100 in Lambda's training runs.
DEFAULT_SUSTAINED: Mapping[str, float] = {
    "fp64": 0.88,
    "fp32": 0.88,
    "tf32": 0.55,
    "fp16": 0.72,
    "bf16": 0.72,
    "int8": 0.72,
}
# Elements of which a row in memory must be a whole multiple for full speed on tensor cores: 16 bytes. Since cuBLAS 11
# and cuDNN 7.6.3 other lengths run on tensor cores too, less efficiently.
# Source: NVIDIA, "Matrix Multiplication Background User's Guide", tensor core requirements.
ALIGNMENT: Mapping[str, int] = {"tf32": 4, "fp16": 8, "bf16": 8, "int8": 16}
# Compute capability from which tensor cores multiply bytes; ordinary cores do, four at a time, from 6.1 on (dp4a).
# Source: NVIDIA, CUDA C++ Programming Guide, arithmetic instructions, and its table of tensor core formats.
BYTES_ON_TENSOR_CORES_FROM = 7.2
CONSTANTS = group("tiles")
ITEMSIZE_BYTES: Mapping[str, int] = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "int8": 1}


@dataclass(frozen=True, slots=True)
class Rate:
    """How a product runs: format, unit, the card's listed peak, and the share of it that large products reach."""

    number_format: str
    tensor_core: bool
    peak_flop_per_s: float
    sustained_share: float


def capability(card: Card) -> float:
    """The compute capability as a number; 8.0 for a card of another maker, whose capability is a word."""
    try:
        return float(card.compute_capability)
    except ValueError:
        return 8.0


def power_of_two_in(*sizes: int) -> int:
    """The largest power of two, up to 16, that divides every size.

    >>> power_of_two_in(768, 3072), power_of_two_in(64, 12), power_of_two_in(8, 7)
    (16, 4, 1)
    """
    return min(16, *(size & -size or 16 for size in sizes))


def vector_flop_per_s(number_format: str, card: Card) -> float:
    """Peak rate of the ordinary cores, which do all elementwise work; half-size formats are computed as fp32."""
    fp32 = card.peak_flop_per_s["fp32"]
    return (card.peak("fp64") or fp32 / 32) if number_format == "fp64" else fp32


def sustained_share(number_format: str, card: Card) -> float:
    """Share of the listed peak that large products reach on this card in this format."""
    return card.sustained.get(number_format, DEFAULT_SUSTAINED[number_format])


def on_tensor_cores(number_format: str, tf32: bool, card: Card) -> str | None:
    """The format in which tensor cores run this product (alignment aside), or None where they can't.

    Tensor cores exist from compute capability 7.0, their TF32 mode from 8.0 (NVIDIA's Volta and Ampere white papers).
    """
    wanted = "tf32" if number_format == "fp32" and tf32 else number_format
    first = BYTES_ON_TENSOR_CORES_FROM if wanted == "int8" else 7.0
    if wanted not in ALIGNMENT or card.peak(wanted) is None or capability(card) < first:
        return None
    return wanted


def product_rate(number_format: str, tf32: bool, aligned_to: int, card: Card) -> Rate:
    """How a matrix product runs on `card`, its rows in memory being multiples of `aligned_to` elements."""
    wanted = on_tensor_cores(number_format, tf32, card)
    if wanted is None:
        bytes_peak = card.peak("int8") if number_format == "int8" else None
        if bytes_peak is not None:
            return Rate("int8", False, bytes_peak, sustained_share("int8", card))
        plain = "fp64" if number_format == "fp64" else "fp32"
        return Rate(plain, False, vector_flop_per_s(plain, card), sustained_share(plain, card))
    share = sustained_share(wanted, card) * (1.0 if aligned_to >= ALIGNMENT[wanted] else CONSTANTS.unaligned_share)
    return Rate(wanted, True, card.peak_flop_per_s[wanted], share)
